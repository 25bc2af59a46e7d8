"""What the benchmarks of this folder share: taking turns, ratios of pairs, and their figures.

``python -m bench.NAME [--json FILE]`` writes ``{"figures": [...]}``, rows that bench/table.py
prints as one table: ``{"name": str, "value": float, "unit": str, "bound": float|null, "better":
"lower"|"higher"}``. A row without a bound is for information.
"""

import argparse
import inspect
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any


def take_turns(
    jobs: Mapping[str, Callable[[], Any]],
    rounds: int,
    steps: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time every job once per round, in a new order each; seconds a step by job.

    Each is done once before, untimed. A job takes `steps` steps. `clock` reads seconds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(rounds):
        for name in random.sample(list(jobs), len(jobs)):
            began = clock()
            jobs[name]()
            seconds[name].append((clock() - began) / steps)
    return seconds


def ratio(ones: list[float], others: list[float]) -> float:
    """Return the median over rounds of one / other."""
    return statistics.median(a / b for a, b in zip(ones, others, strict=True))


def median_interval(values: list[float]) -> tuple[float, float]:
    """Return a 95 % interval of the median: from and to an observation, whatever they are spread
    like."""
    ordered, half = sorted(values), 0.98 * math.sqrt(len(values))
    middle = (len(values) - 1) / 2
    last = len(ordered) - 1
    return (
        ordered[max(0, math.floor(middle - half))],
        ordered[min(last, math.ceil(middle + half))],
    )


def figure(
    name: str, value: float, unit: str, bound: float | None = None, better: str = "lower"
) -> dict[str, Any]:
    """One row of the table that bench/table.py prints.

    ``bound`` is what ``value`` must not exceed, or with ``better`` = "higher" not fall below.
    """
    assert better in ("lower", "higher"), better
    return {"name": name, "value": float(value), "unit": unit, "bound": bound, "better": better}


def within(row: Mapping[str, Any]) -> bool | None:
    """Whether a row keeps its bound; None if it has none."""
    if row["bound"] is None:
        return None
    value, bound = row["value"], row["bound"]
    return bool(value >= bound if row["better"] == "higher" else value <= bound)


def line(row: Mapping[str, Any]) -> str:
    """A row for people: name, value, and its bound with whether it is kept."""
    kept = {True: "kept", False: "NOT KEPT", None: ""}[within(row)]
    bound = "" if row["bound"] is None else f"bound {row['bound']:.4g}"
    return f"{row['name']:66} {row['value']:9.4g} {row['unit']:3} {bound:12} {kept}".rstrip()


def run(measure: Callable[..., Iterable[dict[str, Any]]]) -> None:
    """Run a bench from the command line: its figures are printed as they come.

    The arguments of ``measure`` are options, of their defaults' types; ``--json FILE`` takes the
    figures too.
    """
    doc = sys.modules[measure.__module__].__doc__ or ""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, parameter in inspect.signature(measure).parameters.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(parameter.default), default=parameter.default)
    parser.add_argument("--json", type=Path, help="file for the figures")
    given = vars(parser.parse_args())
    path, rows = given.pop("json"), []
    for row in measure(**given):
        print(line(row), flush=True)
        rows.append(row)
    if path:
        path.write_text(json.dumps({"figures": rows}, indent=1) + "\n")
