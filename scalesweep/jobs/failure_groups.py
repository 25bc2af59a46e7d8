"""Failures that are alike, in one line for people."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scalesweep.core.formatting import counted, text_of

SHOWN = 20  # lines


class Failure(NamedTuple):
    """A run that failed: ``point`` has the parameters that vary in its ``experiment``."""

    run_id: str
    cause: str
    detail: str
    experiment: str
    point: Mapping[str, Any]


def failure_lines(failures: Iterable[Failure], limit: int = SHOWN) -> list[str]:
    """``NON_ZERO_EXIT: exit code 3: mode=exit3, ranks 1, 2, 4 (9 runs)``, the most runs first.

    A line names values whose combinations have all failed, and a single run by its id. The
    experiment is named where there are several among the failures.
    """
    unique = list({failure.run_id: failure for failure in failures}.values())
    several = len({failure.experiment for failure in unique}) > 1
    groups: dict[tuple[str, str, str], list[Failure]] = {}
    for failed in unique:
        # Alike is what differs in measured numbers and its own paths alone.
        kind = re.sub(r"\d+\.\d+|\battempt-\d+", "#", _shared(failed))
        groups.setdefault((failed.cause, kind, failed.experiment), []).append(failed)
    ordered = sorted(groups.values(), key=len, reverse=True)
    lines = [_line(runs, several) for runs in ordered[:limit]]
    if more := sum(map(len, ordered[limit:])):
        lines.append(f"{counted(more, 'run')} more, see plan.csv")
    return lines


def _line(runs: Sequence[Failure], several: bool) -> str:
    first, alone = runs[0], len(runs) == 1
    detail = first.detail if alone else _shared(first)
    where = [first.experiment] if several else []
    where += shared_values([run.point for run in runs])
    who = f" ({first.run_id if alone else counted(len(runs), 'run')})"
    return ": ".join(filter(None, [first.cause, detail, ", ".join(where)])) + who


def shared_values(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Values of the parameters to name, ``mode=exit3`` and ``ranks 1, 2, 4``: of all, if points
    have every combination of their values, else of those that have one value."""
    values = {name: _unique(point[name] for point in points) for name in points[0]}
    different = {tuple(str(point[name]) for name in values) for point in points}
    full = len(different) == math.prod(map(len, values.values()))
    return [
        f"{name}={text_of(of[0])}" if len(of) == 1 else f"{name} {', '.join(map(text_of, of))}"
        for name, of in values.items()
        if full or len(of) == 1
    ]


def _unique(values: Iterable[Any]) -> list[Any]:
    """Values in the order in which they appear, numbers by size."""
    unique = list({str(value): value for value in values}.values())
    numbers = all(isinstance(value, int | float) for value in unique)
    return sorted(unique) if numbers else unique


def _shared(failure: Failure) -> str:
    """A detail without what differs between runs that failed for one reason: the run, the job, the
    node it lost, and which rank was first on which node."""
    detail = re.sub(r" \(ranks? [\d,-]+ on [^()]+\)$", "", failure.detail)
    detail = re.sub(r"\b(lost a node of|a node of) \S+", r"\1 its allocation", detail)
    return re.sub(r"\b([Jj]ob) \d+", r"\1", detail).replace(failure.run_id, "*")
