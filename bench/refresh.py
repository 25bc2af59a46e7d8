"""From ten new runs among 10,000 to the new report.

All of a campaign's runs but ten are in its report; then ten more end. (a) The whole call: wall and
CPU seconds of `snakemake` from its start to its end, with what its rules call: plan, summarise,
accounting, tables, figures, page. (b) The same steps as the rules call them, without Snakemake
between, each with its seconds. Both where the ten are of one experiment of five (220 runs), and
where they are spread over all five, so that nothing can be taken from the last report.

    python -m bench.refresh [--repeats 10] [--largest 1024] [--rounds 1]
"""

import contextlib
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.lib.made_runs import NEW, Made, make
from bench.lib.pairs import figure, run
from bench.lib.projects import Cost, snakemake, timed
from bench.lib.steps import PROCESSES, take_steps

SECONDS = 10.0


@contextlib.contextmanager
def without(made: Made, run_ids: Sequence[str]) -> Iterator[None]:
    """A report without these runs, which are back inside."""
    away = made.folder / "away"
    away.mkdir()
    for run_id in run_ids:
        (made.runs / run_id).rename(away / run_id)
    timed(snakemake("report", "-c", str(PROCESSES), "--configfile", made.campaign), made.folder)
    for run_id in run_ids:
        (away / run_id).rename(made.runs / run_id)
    away.rmdir()
    yield


def costs(made: Made, new: Sequence[str]) -> tuple[Cost, dict[str, Cost]]:
    """Cost of the call, and of the steps alone, once these runs have ended."""
    with without(made, new):
        words = ("-c", str(PROCESSES), "--configfile", made.campaign)
        whole = timed(snakemake(*words), made.folder, "Writing")
    with without(made, new):
        return whole, take_steps(made)


def measure(repeats: int = 10, largest: int = 1024, rounds: int = 1) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds; a tenth of 10,010 runs a repeat, of up to so many ranks."""
    with tempfile.TemporaryDirectory() as scratch:
        made = make(Path(scratch) / "large", repeats, largest)
        made.write_new()
        every = made.done + made.new
        cases = {
            "of one experiment of five": made.new,
            "of all five": every[:: len(every) // NEW][:NEW],
        }
        for name, new in cases.items():
            measured = [costs(made, new) for _ in range(rounds)]
            wall = statistics.median(whole.wall_s for whole, _ in measured)
            words = f"{NEW} new runs {name} to the report"
            yield figure(f"{words}, snakemake", wall, "s", SECONDS)
            cpu = statistics.median(whole.cpu_s for whole, _ in measured)
            yield figure("  the same in CPU seconds", cpu, "s")
            for step in measured[0][1]:
                took = statistics.median(steps[step].wall_s for _, steps in measured)
                yield figure(f"  its step {step} alone", took, "s")


if __name__ == "__main__":
    run(measure)
