"""The doctor's look at the site's Pythons and at what Horovod and PyTorch were built with.

Standard library only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.compute.doctor import programs
from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING, Check, Checks
from scalesweep.compute.doctor.order import HOROVOD as NEEDS_HOROVOD
from scalesweep.compute.doctor.order import TORCH, DoctorOrder, Part
from scalesweep.compute.doctor.packages import BUILDS, absent, built_with, python_text
from scalesweep.compute.doctor.torch_checks import PYTORCH, judge_build

PYTHON, TENSORFLOW, HOROVOD = "Python", "TensorFlow", "Horovod"
# How Horovod is told to be built with it (docs.horovod: Installation).
_BUILD_WITH = {
    "mpi": "HOROVOD_WITH_MPI=1",
    "gloo": "HOROVOD_WITH_GLOO=1",
    "nccl": "HOROVOD_GPU_OPERATIONS=NCCL",
}


def names(needs: str) -> tuple[str, ...]:
    """The checks of the Python of a part."""
    return (PYTORCH,) if needs == TORCH else (PYTHON, TENSORFLOW, HOROVOD)


def examine(order: DoctorOrder, part: Part) -> Checks:
    """The outcomes of ``names``."""
    needs, site_file = part["needs"], order["site_file"]
    first, *others = names(needs)
    if part["lacks"]:
        yield Check(first, FAILED, part["lacks"])
        return
    said = programs.run(part["software"])
    if not said.facts:
        python = part["software"]["argv"][0]
        yield Check(
            first, FAILED, f"{python}: {said.wrong or 'says nothing'}",
            f"correct python, prologue or env in {site_file}",
        )  # fmt: skip
        for name in others:
            yield Check(name, SKIPPED, f"needs {first}")
        return
    facts = said.facts[0]
    if needs == TORCH:
        yield judge_build(facts, order["gpus_per_node"], site_file)
        return
    yield Check(PYTHON, OK, python_text(facts))
    if needs != NEEDS_HOROVOD:  # then the program has looked for neither
        for name in others:
            yield Check(name, SKIPPED, "no benchmark of this campaign is known to need it")
        return
    yield judge_tensorflow(facts, site_file)
    yield judge_horovod(facts, order["horovod_on"], site_file)


def judge_tensorflow(facts: Mapping[str, Any], site_file: str) -> Check:
    """Whether TensorFlow can be imported."""
    if facts["tensorflow"]:
        return Check(TENSORFLOW, OK, facts["tensorflow"])
    return absent(TENSORFLOW, facts["wrong"].get("tensorflow", ""), site_file)


def judge_horovod(facts: Mapping[str, Any], wanted: Sequence[str], site_file: str) -> Check:
    """Whether Horovod can be imported, and was built with what the site asks for."""
    wrong = facts["wrong"].get("horovod") or facts["wrong"].get("horovod.tensorflow")
    if wrong or not facts["horovod"]:
        return absent(HOROVOD, wrong or "", site_file)
    built = facts.get("built")
    if built is None:
        detail = f"{facts['horovod']}: its build is not known without TensorFlow"
        return Check(HOROVOD, WARNING, detail)
    detail = f"{facts['horovod']}: {built_with(built)}"
    for key in wanted:
        if not built[key]:
            # Without NCCL gradients go over the host: slow, but not wrong.
            state = WARNING if key == "nccl" else FAILED
            return Check(
                HOROVOD, state, f"{detail}; the site asks for {BUILDS[key]}",
                f"build Horovod with {_BUILD_WITH[key]}, or change env in {site_file}",
            )  # fmt: skip
    return Check(HOROVOD, OK, detail)
