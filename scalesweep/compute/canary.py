"""The canary: what the machine of a run does just before and just after it.

A small program (``workflow/canary/canary.py``), started as that of the run is, computes and copies
for a second on every core of a run. A canary that fails is no failure of the run. Standard library
only.
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
KINDS = ("compute", "memory")


def look(spec: Order, work: Path, when: str) -> dict[str, Any]:
    """The rates of each host ``before`` or ``after`` the run, or why there are none; nothing if the
    order asks for none."""
    if (order := spec.get("canary")) is None:
        return {}
    folder = work / f"canary-{when}"
    argv = [word.replace("{out}", str(folder.resolve())) for word in order["argv"]]
    began = time.monotonic()
    why = run_apart(spec, argv, work, f"canary-{when}.log", LIMIT_S)
    return {when: {"seconds": time.monotonic() - began, **_read(folder, order, why)}}


def _read(folder: Path, order: CanaryOrder, why: str) -> dict[str, Any]:
    """The rates of each host, those of its processes added up, or why there are none; ``why`` the
    program failed, empty if it did not."""
    hosts: dict[str, dict[str, float]] = {}
    complete = 0
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_bytes())
            rates = {kind: float(content[kind]) for kind in KINDS}
            host = hosts.setdefault(str(content["host"]), dict.fromkeys(KINDS, 0.0))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if all(0 < rate < MAX_NUMBER for rate in rates.values()):
            complete += 1
            for kind, rate in rates.items():
                host[kind] += rate
    shutil.rmtree(folder, ignore_errors=True)
    if complete != order["results"]:
        return {"missing": why or f"{complete} of {order['results']} processes left a result"}
    names = sorted(hosts)
    return {"hosts": names, **{kind: [hosts[name][kind] for name in names] for kind in KINDS}}
