"""POP efficiencies as BSC's modelfactors.py leaves them: ``modelfactors.csv``.

A line for each quantity, a column for each number of processes, separated by semicolons: first what
was computed (in per cent), then, behind ``#``, the durations in microseconds that it was computed
of. The durations count; what is printed must agree with them.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from scalesweep.analysis.pop import SPLIT, pop_factors
from scalesweep.analysis.profile import Profile
from scalesweep.analysis.profile_account import IDEAL_RUNTIME
from scalesweep.importers.imported_run import ImportRefusedError, metric
from scalesweep.importers.made_benchmark import declared
from scalesweep.importers.profiles.base import each, lines_of, number, shares_of

_PROCESSES = "number of processes"
_RUNTIME, _IDEAL = "runtime (us)", "runtime (ideal)"
_MEAN, _MAX = "useful duration (average)", "useful duration (maximum)"
_TOTAL, _IDEAL_MAX = "useful duration (total)", "useful duration (ideal, max)"
_SCALING = "computation scalability"
_AGREE = 0.01  # of what is printed, and of sums
_PLAIN = {
    "average ipc": ("instructions_per_cycle", "1"),
    "average frequency (ghz)": ("frequency", "GHz"),
}


def sign(head: str) -> bool:
    """Whether a file begins as a modelfactors.csv does."""
    return head.lstrip().lower().startswith(f"{_PROCESSES};")


def _profiles(file: Path, ranks: int | None) -> list[Profile]:
    """A profile for each number of processes."""
    rows: dict[str, list[float]] = {}
    for line, content in enumerate(lines_of(file), 1):
        name, *cells = [cell.strip() for cell in content.lower().lstrip("#").split(";")]
        if name in rows:
            raise ImportRefusedError(f"a second line '{name[:40]}'", line)
        if cells:
            rows[name] = [number(cell or "nan", name, line, nan=True) for cell in cells]
            if len(cells) != len(rows[_PROCESSES]):
                raise ImportRefusedError(f"{len(cells)} values of '{name[:40]}': cut off?", line)
    counts = rows.pop(_PROCESSES)
    if missing := [name for name in (_RUNTIME, _MEAN, _MAX, _TOTAL) if name not in rows]:
        raise ImportRefusedError(f"has no line '{missing[0]}': cut off?")
    return [_profile(file, counts, rows, place) for place in range(len(counts))]


read = each(_profiles)


def _profile(
    file: Path, counts: Sequence[float], rows: Mapping[str, list[float]], place: int
) -> Profile:
    """The profile of the run at ``place`` in the tables of all runs; that of the fewest processes
    is what it is scaled against. Raises ImportRefusedError if the durations contradict each other
    or a printed factor."""
    base = counts.index(min(counts))

    def seconds(name: str, at: int = place) -> float:
        return rows[name][at] * 1e-6 if name in rows else math.nan

    def printed(name: str) -> float:
        return rows[name][place] / 100 if name in rows else math.nan

    replay = seconds(_IDEAL), seconds(_IDEAL_MAX)
    known = all(map(math.isfinite, replay))
    where = f"{counts[place]:.0f} processes"
    try:
        times = seconds(_MEAN), seconds(_MAX), seconds(_RUNTIME)
        factors = pop_factors(*times, replay if known else None)
    except ValueError as error:
        raise ImportRefusedError(f"{where}: {error}") from None
    if not math.isclose(seconds(_MEAN) * counts[place], seconds(_TOTAL), rel_tol=_AGREE):
        raise ImportRefusedError(f"{where}: average and total useful duration do not agree")
    # The work is the same in all (strong), or grows with the processes (weak): as is printed.
    growth = counts[place] / counts[base]
    computation = seconds(_TOTAL, base) / seconds(_TOTAL)
    weak = abs(computation * growth - printed(_SCALING)) <= _AGREE
    factor = growth if weak and growth > 1 else 1.0
    computation *= factor
    values = {
        **factors,
        "computation_scaling": computation,
        "global_efficiency": factors["parallel_efficiency"] * computation,
        "speedup": seconds(_RUNTIME, base) / seconds(_RUNTIME) * factor,
    }
    for line, name in declared("profiles")["modelfactors"].items():
        share = printed(line)
        if math.isfinite(share) and abs(values.setdefault(name, share) - share) > _AGREE:
            raise ImportRefusedError(
                f"{where}: {line} is printed as {share:.6f}, the durations give {values[name]:.6f}"
            )
    metrics: dict[str, dict[str, object]] = {
        "runtime": metric(seconds(_RUNTIME), "s", "lower"),
        **shares_of(values),
    }
    if known:
        metrics[IDEAL_RUNTIME] = metric(replay[0], "s", "lower")
    for line, (name, unit) in _PLAIN.items():
        if math.isfinite(printed(line)):
            metrics[name] = metric(rows[line][place], unit, "higher")
    notes: dict[str, object] = {"scaling": "weak" if factor > 1 else "strong"}
    if known:
        notes["communication_split"] = SPLIT
    return Profile(
        tool="modelfactors", file=file, ranks=int(counts[place]),
        metrics=metrics, notes=notes,
    )  # fmt: skip
