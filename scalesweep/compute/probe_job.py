"""The doctor's probes where runs are: in a Slurm job, or on this machine.

    python -I -S probe_job.py ORDERS

Starts each order's program as that of a run is, one after the other, and leaves ``outcome.json``
in its folder. Standard library only.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.compute.job_spec import Order
from scalesweep.compute.power.counters import host_name, nothing_here
from scalesweep.compute.program import Outcome, run_program
from scalesweep.core.files import write_atomic
from scalesweep.core.record import last_lines

OUTCOME = "outcome.json"


class ProbeOutcome(TypedDict):
    """How a probe ended."""

    wrong: str  # empty: it ended well
    power: str | None  # why no power can be sampled here; empty: it can; None: switched off


def carry_out(orders: Sequence[Order]) -> None:
    """Start the program of each order in its folder, and leave how it ended."""
    for order in orders:
        work = Path(order["folder"])
        work.mkdir(parents=True, exist_ok=True)
        wrong = _wrong(run_program(order, work, None), order, work)
        asked = order.get("power")
        power = asked and (nothing_here(asked["sysfs"], asked["sources"], host_name()) or "")
        outcome: ProbeOutcome = {"wrong": wrong, "power": power}
        write_atomic(work / OUTCOME, json.dumps(outcome))


def _wrong(outcome: Outcome, order: Order, work: Path) -> str:
    """How the program failed, with its last line on stderr; empty if it did not."""
    if outcome.ended_by_us:
        wrong = f"no end within {order['time_limit_s']:g} s"
    elif outcome.signal is not None:
        wrong = f"ended by signal {outcome.signal}"
    elif outcome.exit_code:
        wrong = f"exit code {outcome.exit_code}"
    else:
        return ""
    lines = [line.strip() for line in last_lines(work / "stderr.log") if line.strip()]
    return f"{wrong}: {lines[-1][:300]}" if lines else wrong


if __name__ == "__main__":
    carry_out(json.loads(Path(sys.argv[1]).read_bytes()))
