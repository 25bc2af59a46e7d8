"""The canary: what the machine of a run does just before and just after it.

A small program (``workflow/canary/canary.py``), started as that of the run is, computes and copies
for a second on every core of a run. A canary that fails is no failure of the run. Standard library
only.
"""

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import Order
from scalesweep.compute.program import run_apart
from scalesweep.core.record_content import MAX_NUMBER

# What a canary may take before it is given up; it takes seconds where nothing is wrong.
LIMIT_S = 60.0
KINDS = ("compute", "memory")


class Canary:
    """The canary of a run: ``measure`` before and after, then ``result`` for its record."""

    def __init__(self, spec: Order, work: Path) -> None:
        """Measure nothing yet; without ``canary`` in the order nothing ever."""
        self._spec, self._work = spec, work
        self._found: dict[str, Any] = {}

    def measure(self, when: str) -> None:
        """Run the program, ``before`` or ``after`` the run."""
        order = self._spec.get("canary")
        # A run that has removed its folder has left no place for a log either.
        if order is None or not self._work.is_dir():
            return
        folder = self._work / f"canary-{when}"
        argv = [word.replace("{out}", str(folder.resolve())) for word in order["argv"]]
        began = time.monotonic()
        why = run_apart(self._spec, argv, self._work, f"canary-{when}.log", LIMIT_S)
        seconds = time.monotonic() - began
        self._found[when] = {"seconds": seconds, **_read(folder, order["results"], why)}

    def result(self) -> dict[str, Any]:
        """What the record says of it: ``{"canary": ...}``, nothing where there was none."""
        return {"canary": self._found} if self._found else {}


def _read(folder: Path, results: int, why: str) -> dict[str, Any]:
    """Rates of each host, summed over its processes; or why there are none."""
    hosts: dict[str, dict[str, float]] = {}
    found = 0
    for path in sorted(folder.glob("*.json")):
        try:
            one = json.loads(path.read_bytes())
            host, rates = str(one["host"]), {kind: float(one[kind]) for kind in KINDS}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if all(0 < rate < MAX_NUMBER for rate in rates.values()):
            sums: Mapping[str, float] = hosts.get(host, {})
            hosts[host] = {kind: sums.get(kind, 0.0) + rate for kind, rate in rates.items()}
            found += 1
    shutil.rmtree(folder, ignore_errors=True)
    if why or found != results:
        return {"missing": why or f"{found} of {results} processes left a result"}
    names = sorted(hosts)
    return {"hosts": names, **{kind: [hosts[name][kind] for name in names] for kind in KINDS}}
