"""The doctor's look at the site's Python and at what Horovod was built with.

Standard library only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.compute.doctor import programs
from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING, Check, Checks
from scalesweep.compute.doctor.order import DoctorOrder

PYTHON, TENSORFLOW, HOROVOD = NAMES = ("Python", "TensorFlow", "Horovod")
_BUILDS = {"mpi": "MPI", "gloo": "Gloo", "nccl": "NCCL"}
# How Horovod is told to be built with it (docs.horovod: Installation).
_BUILD_WITH = {
    "mpi": "HOROVOD_WITH_MPI=1",
    "gloo": "HOROVOD_WITH_GLOO=1",
    "nccl": "HOROVOD_GPU_OPERATIONS=NCCL",
}


def examine(order: DoctorOrder) -> Checks:
    """The outcomes of ``NAMES``."""
    said = programs.run(order["software"])
    if not said.facts:
        python = order["software"]["argv"][0]
        yield Check(
            PYTHON, FAILED, f"{python}: {said.wrong or 'says nothing'}",
            f"correct python, prologue or env in {order['site_file']}",
        )  # fmt: skip
        for name in (TENSORFLOW, HOROVOD):
            yield Check(name, SKIPPED, f"needs {PYTHON}")
        return
    facts = said.facts[0]
    numpy = f", NumPy {facts['numpy']}" if facts["numpy"] else ", without NumPy"
    yield Check(PYTHON, OK, f"{facts['python']} ({facts['executable']}){numpy}")
    if not order["needs_horovod"]:  # then the program has looked for neither
        for name in (TENSORFLOW, HOROVOD):
            yield Check(name, SKIPPED, "no benchmark of this campaign is known to need it")
        return
    yield judge_tensorflow(facts, order["site_file"])
    yield judge_horovod(facts, order["horovod_on"], order["site_file"])


def judge_tensorflow(facts: Mapping[str, Any], site_file: str) -> Check:
    """Whether TensorFlow can be imported."""
    if facts["tensorflow"]:
        return Check(TENSORFLOW, OK, facts["tensorflow"])
    return _absent(TENSORFLOW, facts["wrong"].get("tensorflow", ""), site_file)


def judge_horovod(facts: Mapping[str, Any], wanted: Sequence[str], site_file: str) -> Check:
    """Whether Horovod can be imported, and was built with what the site asks for."""
    wrong = facts["wrong"].get("horovod") or facts["wrong"].get("horovod.tensorflow")
    if wrong or not facts["horovod"]:
        return _absent(HOROVOD, wrong or "", site_file)
    built = facts.get("built")
    if built is None:
        detail = f"{facts['horovod']}: its build is not known without TensorFlow"
        return Check(HOROVOD, WARNING, detail)
    has = [name for key, name in _BUILDS.items() if built[key]]
    lacks = [name for key, name in _BUILDS.items() if not built[key]]
    detail = f"{facts['horovod']}: built with {', '.join(has) or 'none of MPI, Gloo and NCCL'}"
    detail += f", without {', '.join(lacks)}" if lacks else ""
    for key in wanted:
        if not built[key]:
            # Without NCCL gradients go over the host: slow, but not wrong.
            state = WARNING if key == "nccl" else FAILED
            return Check(
                HOROVOD, state, f"{detail}; the site asks for {_BUILDS[key]}",
                f"build Horovod with {_BUILD_WITH[key]}, or change env in {site_file}",
            )  # fmt: skip
    return Check(HOROVOD, OK, detail)


def _absent(name: str, why: str, site_file: str) -> Check:
    """A package that is not there, which the campaign needs."""
    gone = why.startswith(("ModuleNotFoundError", "ImportError: No module"))
    mend = f"install it for this Python, or name another in {site_file} (python, prologue)"
    return Check(name, FAILED, "not installed" if gone else why, mend)
