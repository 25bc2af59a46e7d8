"""The canary: what the machine of a run does just before and just after it.

A small program (``workflow/canary/canary.py``), started as that of the run is, computes and copies
for a second on every core of a run, reads a file on each host, and sums up an array over all ranks.
A canary that fails is no failure of the run. Standard library only.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import CanaryOrder, Order
from scalesweep.compute.program import run_apart
from scalesweep.core.record_check import MAX_NUMBER

# What a canary may take before it is given up; it takes seconds where nothing is wrong.
LIMIT_S = 60.0
SUMMED = ("compute", "memory")
READ, ALLREDUCE = "read", "allreduce"
KINDS = (*SUMMED, ALLREDUCE, READ)
MAX_WHY = 300  # characters


class Canary:
    """The canary of a run: ``measure`` before and after, then ``result`` for its record."""

    def __init__(self, spec: Order, work: Path) -> None:
        """Measure nothing yet; without ``canary`` in the order nothing ever."""
        self._spec, self._work = spec, work
        self._results: dict[str, Any] = {}

    def measure(self, when: str) -> None:
        """Run the program, ``before`` or ``after`` the run."""
        order = self._spec.get("canary")
        # A run that has removed its folder has left no place for a log either.
        if order is None or not self._work.is_dir():
            return
        folder = self._work / f"canary-{when}"
        argv = [word.replace("{out}", str(folder.resolve())) for word in order["argv"]]
        failed = self._results.get("before", {}).get("left_out", {}).get(ALLREDUCE)
        if failed is not None:  # what did not start, or hung, does not cost its time again
            argv = [word for word in argv if not word.startswith("--allreduce")]
        began = time.monotonic()
        why = run_apart(self._spec, argv, self._work, f"canary-{when}.log", LIMIT_S)
        result = {"seconds": time.monotonic() - began, **_read(folder, order, why)}
        if failed is not None and "left_out" in result:
            result["left_out"][ALLREDUCE] = failed
        self._results[when] = result

    def result(self) -> dict[str, Any]:
        """What the record says of it: ``{"canary": ...}``, nothing where there was none."""
        return {"canary": self._results} if self._results else {}


def _read(folder: Path, order: CanaryOrder, why: str) -> dict[str, Any]:
    """Rates of each host, or why there are none.

    Those of its processes are summed up (``SUMMED``); an allreduce has that of its slowest rank. A
    kind that not all hosts or ranks have is left out, with the reason; ``why`` the program failed,
    empty if it did not, counts where its first part is not whole.
    """
    hosts: dict[str, dict[str, list[float]]] = {}
    whys: dict[str, str] = {}
    complete = 0
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_bytes())
            rates = hosts.setdefault(str(content.pop("host")), {})
            for kind, reason in content.pop("left_out", {}).items():
                whys.setdefault(str(kind), str(reason)[:MAX_WHY])
            known = {kind: float(content[kind]) for kind in KINDS if kind in content}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if all(0 < rate < MAX_NUMBER for rate in known.values()):
            complete += known.keys() >= set(SUMMED)
            for kind, rate in known.items():
                rates.setdefault(kind, []).append(rate)
    shutil.rmtree(folder, ignore_errors=True)
    if complete != order["results"]:
        return {"missing": why or f"{complete} of {order['results']} processes left a result"}
    names = sorted(hosts)
    result: dict[str, Any] = {"hosts": names}
    asked = {READ: order.get("read", False), ALLREDUCE: order.get("ranks", 0) > 0}
    for kind in KINDS:
        every = [hosts[name].get(kind, []) for name in names]
        if kind in SUMMED:
            result[kind] = [sum(rates) for rates in every]
        elif asked[kind]:
            whole = sum(map(len, every)) == order["ranks"] if kind == ALLREDUCE else all(every)
            if whole and all(every):
                result[kind] = [min(rates) for rates in every]
            else:
                result.setdefault("left_out", {})[kind] = whys.get(kind, why or "not all have one")
    return result
