"""POP efficiencies as BSC's modelfactors.py leaves them: ``modelfactors.csv``.

A line for each quantity, a column for each number of processes, separated by semicolons: first what
was computed (in per cent), then, behind ``#``, the durations in microseconds that it was computed
of. The durations count; what is printed must agree with them.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from scalesweep.analysis.pop import (
    MODELFACTORS,
    VARIANTS,
    PopFactors,
    Replay,
    computation_scaling,
    pop_factors,
)
from scalesweep.analysis.profile import Profile
from scalesweep.analysis.profile_account import IDEAL_RUNTIME
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import (
    ReadResult,
    lines_of,
    metric,
    number,
    read_each,
    text_of,
)
from scalesweep.importers.table_file import half_unit

TOOL = "modelfactors"
_PROCESSES = "number of processes"
_RUNTIME, _IDEAL = "runtime (us)", "runtime (ideal)"
_MEAN, _MAX = "useful duration (average)", "useful duration (maximum)"
_TOTAL, _IDEAL_MAX = "useful duration (total)", "useful duration (ideal, max)"
_AGREE = 1e-9  # besides half of the last digit of what is printed
# Printed line -> metric, as a share (per cent) or plain.
_PRINTED = {
    "parallel efficiency": "parallel_efficiency",
    "load balance": "load_balance",
    "communication efficiency": "communication_efficiency",
    "serialization efficiency": "serialisation_efficiency",
    "transfer efficiency": "transfer_efficiency",
    "computation scalability": "computation_scaling",
    "global efficiency": "global_efficiency",
    "ipc scalability": "ipc_scaling",
    "instruction scalability": "instruction_scaling",
    "frequency scalability": "frequency_scaling",
}
_PLAIN = {
    "speedup": ("speedup", "1"),
    "average ipc": ("instructions_per_cycle", "1"),
    "average frequency (ghz)": ("frequency", "GHz"),
}


def recognise(head: str) -> bool:
    """Whether a file begins as a modelfactors.csv does."""
    return head.lstrip().lower().startswith(f"{_PROCESSES};")


def read(files: Sequence[Path]) -> ReadResult:
    """A profile for each number of processes of each file."""
    return read_each(files, _profiles)


def _profiles(file: Path) -> list[Profile]:
    counts, rows, halves = _rows(text_of(file))
    base = min(range(len(counts)), key=lambda place: counts[place])
    missing = [name for name in (_RUNTIME, _MEAN, _MAX, _TOTAL) if name not in rows]
    if missing:
        raise ImportRefusedError(f"has no line '{missing[0]}': cut off?")
    return [_profile(file, counts, rows, halves, place, base) for place in range(len(counts))]


_Rows = dict[str, list[float]]


def _rows(text: str) -> tuple[list[int], _Rows, _Rows]:
    """The numbers of processes, and by its name in small letters the values of every line, and
    half of the last digit of each."""
    counts: list[int] = []
    rows: _Rows = {}
    halves: _Rows = {}
    for line, content in enumerate(lines_of(text), 1):
        name, *cells = [cell.strip() for cell in content.lstrip("#").split(";")]
        key = name.lower()
        if not key and not cells:
            continue
        if key in rows or (key == _PROCESSES and counts):
            raise ImportRefusedError(f"a second line '{name}'", line)
        if key == _PROCESSES:
            counts = [_count(cell, line) for cell in cells]
            if not counts or len(set(counts)) < len(counts):
                raise ImportRefusedError("no number of processes, or one of them twice", line)
        elif len(cells) != len(counts):
            raise ImportRefusedError(
                f"{len(cells)} values of '{name[:40]}' for {len(counts)} numbers of processes: "
                "cut off?",
                line,
            )
        else:
            rows[key] = [
                math.nan if cell.lower() in ("nan", "") else number(cell, name, line)
                for cell in cells
            ]
            halves[key] = [half_unit(cell) for cell in cells]
    return counts, rows, halves


def _count(cell: str, line: int) -> int:
    value = number(cell, "number of processes", line)
    if not 1 <= value < 1e7 or not value.is_integer():
        raise ImportRefusedError(f"{cell[:20]!a} is not a number of processes", line)
    return int(value)


def _profile(
    file: Path, counts: Sequence[int], rows: _Rows, halves: _Rows, place: int, base: int
) -> Profile:
    """The profile of the run at ``place`` in the tables of all runs; ``base`` is the run scaled
    against.

    ``rows``: durations and printed values by line; ``halves``: half of their last printed digit.
    Raises ImportRefusedError if the durations contradict each other or a printed factor.
    """

    def seconds(name: str, at: int = place) -> float:
        return rows[name][at] * 1e-6 if name in rows else math.nan

    replay = Replay(seconds(_IDEAL), seconds(_IDEAL_MAX))
    known = math.isfinite(replay.runtime) and math.isfinite(replay.max_useful)
    where = f"{counts[place]} processes"
    try:
        factors = pop_factors(
            seconds(_MEAN), seconds(_MAX), seconds(_RUNTIME), replay if known else None
        )
    except ValueError as error:
        raise ImportRefusedError(f"{where}: {error}") from None
    if not math.isclose(seconds(_MEAN) * counts[place], seconds(_TOTAL), rel_tol=1e-4):
        raise ImportRefusedError(f"{where}: average and total useful duration do not agree")
    values, scaling = _computed(factors, rows, halves, counts, place, base)
    metrics: dict[str, dict[str, object]] = {
        "runtime": metric(seconds(_RUNTIME), "s", "lower"),
        **{name: metric(value, "1", "higher") for name, value in values.items()},
    }
    if known:
        metrics[IDEAL_RUNTIME] = metric(replay.runtime, "s", "lower")
    as_printed: list[str] = []
    for line, name in _PRINTED.items():
        printed = rows[line][place] / 100 if line in rows else math.nan
        if not math.isfinite(printed):
            continue
        if name not in values:
            metrics[name] = metric(printed, "1", "higher")
            as_printed.append(name)
        elif abs(printed - values[name]) > _AGREE + halves[line][place] / 100:
            raise ImportRefusedError(
                f"{where}: {line} is printed as {printed:.6f}, the durations give "
                f"{values[name]:.6f}"
            )
    for line, (name, unit) in _PLAIN.items():
        printed = rows[line][place] if line in rows else math.nan
        if math.isfinite(printed) and name not in metrics:
            metrics[name] = metric(printed, unit, "higher")
    notes: dict[str, object] = {"scaling": scaling, "as_printed": as_printed}
    if factors.variant:
        notes["communication_split"] = f"{factors.variant}: {VARIANTS[MODELFACTORS]}"
    return Profile(
        tool=TOOL,
        file=file,
        ranks=counts[place],
        elapsed_s=seconds(_RUNTIME),
        factors=factors,
        metrics=metrics,
        notes=notes,
    )


def _computed(
    factors: PopFactors,
    rows: _Rows,
    halves: _Rows,
    counts: Sequence[int],
    place: int,
    base: int,
) -> tuple[dict[str, float], str]:
    """Efficiencies by metric, and whether they are those of strong or weak scaling.

    As printed: the work is the same in all (strong), or grows with the processes (weak).
    """
    growth = counts[place] / counts[base]
    useful = rows[_TOTAL][place], rows[_TOTAL][base]
    line = "computation scalability"
    printed, half = (it[line][place] / 100 if line in it else math.nan for it in (rows, halves))
    weak = computation_scaling(*useful, weak_factor=growth)
    scaling = "strong"
    if growth > 1 and abs(printed - weak) <= _AGREE + half:
        scaling = "weak"
    factor = growth if scaling == "weak" else 1.0
    computation = computation_scaling(*useful, weak_factor=factor)
    values = {
        "load_balance": factors.load_balance,
        "communication_efficiency": factors.communication,
        "parallel_efficiency": factors.parallel,
        "computation_scaling": computation,
        "global_efficiency": factors.parallel * computation,
        "speedup": rows[_RUNTIME][base] / rows[_RUNTIME][place] * factor,
    }
    if factors.serialisation is not None and factors.transfer is not None:
        values["serialisation_efficiency"] = factors.serialisation
        values["transfer_efficiency"] = factors.transfer
    return values, scaling
