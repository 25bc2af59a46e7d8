"""Programs of the doctor (``workflow/doctor``), started as the program of a run is.

Standard library only.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute.job_spec import Order
from scalesweep.compute.program import run_program
from scalesweep.core.record import last_lines

# In front of what a program has to say, whatever a launcher puts in front of that.
MARK = "@doctor "


class Said(NamedTuple):
    """What a program has said, a mapping per process, and how it has failed (empty: it has not)."""

    facts: list[dict[str, Any]]
    wrong: str


def run(order: Order) -> Said:
    """Start the program of an order, wait for its end, and collect what it says."""
    work = Path(order["folder"])
    work.mkdir(parents=True, exist_ok=True)
    outcome = run_program(order, work, None)
    facts = said_in((work / "stdout.log").read_text(errors="replace"))
    if outcome.ended_by_us:
        wrong = f"no end within {order['time_limit_s']:g} s"
    elif outcome.signal is not None:
        wrong = f"ended by signal {outcome.signal}"
    elif outcome.exit_code:
        wrong = f"exit code {outcome.exit_code}"
    else:
        wrong = ""
    if wrong and (lines := _complaint(work)):
        wrong = f"{wrong}: {lines}"
    return Said(facts, wrong)


def said_in(text: str) -> list[dict[str, Any]]:
    """The facts in the output of processes."""
    facts_of = []
    for part in text.split(MARK)[1:]:
        try:
            facts, _ = json.JSONDecoder().raw_decode(part)
        except ValueError:
            continue
        if isinstance(facts, dict):
            facts_of.append(facts)
    return facts_of


def _complaint(work: Path) -> str:
    """The last line of standard error that says something."""
    lines = [line.strip() for line in last_lines(work / "stderr.log") if line.strip()]
    return lines[-1][:300] if lines else ""
