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
    groups: dict[tuple[tuple[str, str], str], list[Failure]] = {}
    for failed in unique:
        kind = kind_of(failed.run_id, failed.cause, failed.detail)
        groups.setdefault((kind, failed.experiment), []).append(failed)
    ordered = sorted(groups.values(), key=len, reverse=True)
    lines = [_line(runs, several) for runs in ordered[:limit]]
    if more := sum(map(len, ordered[limit:])):
        lines.append(f"{counted(more, 'run')} more, see plan.csv")
    return lines


def _line(runs: Sequence[Failure], several: bool) -> str:
    first = runs[0]
    detail = first.detail
    if len(runs) > 1:
        detail = _without_job(detail).replace(first.run_id, "*")
    where = [first.experiment] if several else []
    where += [_values(name, [run.point[name] for run in runs]) for name in _names(runs)]
    head = f"{first.cause}: {detail}" if detail else first.cause
    who = first.run_id if len(runs) == 1 else counted(len(runs), "run")
    return f"{head}: {', '.join(where)} ({who})" if where else f"{head} ({who})"


def _values(name: str, values: Sequence[Any]) -> str:
    unique = _unique(values)
    if len(unique) == 1:
        return f"{name}={text_of(unique[0])}"
    return f"{name} {', '.join(map(text_of, unique))}"


def _unique(values: Iterable[Any]) -> list[Any]:
    """Values in the order in which they appear, numbers by size."""
    unique = list({str(value): value for value in values}.values())
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in unique)
    return sorted(unique) if numbers else unique


def _names(runs: Sequence[Failure]) -> list[str]:
    """The parameters to name: all, if runs have every combination of their values, else those that
    have one value."""
    values = {name: _unique(run.point[name] for run in runs) for name in runs[0].point}
    points = {tuple(str(run.point[name]) for name in values) for run in runs}
    full = len(points) == math.prod(map(len, values.values()))
    return [name for name, distinct in values.items() if full or len(distinct) == 1]


def _without_job(detail: str) -> str:
    """A detail without what differs between runs that failed for one reason: the job, the node it
    lost, and which rank was first on which node."""
    detail = re.sub(r" \(ranks? [\d,-]+ on [^()]+\)$", "", detail)
    detail = re.sub(r"\b(lost a node of|a node of) \S+", r"\1 its allocation", detail)
    return re.sub(r"\b([Jj]ob) \d+", r"\1", detail)


def kind_of(run_id: str, cause: str, detail: str) -> tuple[str, str]:
    """What failures of one kind have in common: all but jobs, measured numbers and own paths."""
    plain = _without_job(detail).replace(run_id, "")
    return cause, re.sub(r"\d+\.\d+|\battempt-\d+", "#", plain)
