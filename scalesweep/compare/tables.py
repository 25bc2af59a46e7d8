"""The tables of a comparison: every number of the page and those it has no room for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import typed_values, write_csv, write_parquet
from scalesweep.compare.environment_diff import Surroundings
from scalesweep.compare.matching import Joined, Pair, SidePoint
from scalesweep.compare.significance import IMPROVED, VERDICTS, WORSE, Cell, Change, Count
from scalesweep.core.files import canonical_json

TABLES = ("points", "counts", "unmatched", "versions", "environment", "canary")
_SIDES: tuple[tuple[str, Callable[[Pair], SidePoint | None]], ...] = (
    ("base", lambda pair: pair.base),
    ("new", lambda pair: pair.new),
)

_WHO = (
    *("experiment", "benchmark", "version"),
    *(f"{role}_{name}" for role, _ in _SIDES for name in ("source", "experiments", "assumed")),
)
_CANARY = ("kind", "base_runs", "new_runs", "change", "low", "high", "clear")
_ENVIRONMENT = ("kind", "fact", "base", "new", "recorded")

Row = dict[str, Any]


def make_tables(
    changes: Sequence[Change],
    summary: Iterable[Count],
    joined: Joined,
    around: Surroundings,
) -> dict[str, pd.DataFrame]:
    """The frames by name (docs/guide/compare.md gives the columns); each may be empty."""
    counted = [_count(count) for count in summary]
    every = [*joined.both, *joined.unmatched, *joined.versions]
    names = dict.fromkeys(name for pair in every for name in pair.point.values)
    parameters = sorted(names, key=lambda name: name != "ranks")
    frames = {
        "points": _points(changes, parameters),
        "counts": _frame(counted, list(counted[0]) if counted else ["experiment"]),
        "unmatched": _unmatched(joined.unmatched, parameters),
        "versions": _versions(joined.versions, parameters),
        "environment": _frame(
            [
                dict(zip(_ENVIRONMENT, (d.kind, d.fact, d.base, d.new, d.known), strict=True))
                for d in around.differences
            ],
            _ENVIRONMENT,
        ),
        "canary": _frame(
            [
                {"kind": rate.kind, "base_runs": rate.base_runs, "new_runs": rate.new_runs}
                | asdict(rate.apart)
                for rate in around.machine
            ],
            _CANARY,
        ),
    }
    return {name: frames[name] for name in TABLES}


def write_tables(frames: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write every table as CSV in full precision and as Parquet, each by rename."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        write_csv(frame, folder / f"{name}.csv")
        write_parquet(frame, folder / f"{name}.parquet", {})


def _points(changes: Sequence[Change], parameters: Sequence[str]) -> pd.DataFrame:
    rows = [_change(change) for change in changes]
    names = list(rows[0]) if rows else _WHO
    return _with_parameters(rows, names, [change.pair for change in changes], parameters)


def _change(change: Change) -> Row:
    row = _who(change.pair) | {"metric": change.metric, "phase": change.phase}
    row |= {"unit": change.quantity.unit, "better": change.quantity.better, "main": change.main}
    row |= _cell("base", change.base) | _cell("new", change.new)
    row |= {"ratio": change.ratio, "ratio_low": change.low, "ratio_high": change.high}
    row |= {"p": change.p, "p_adjusted": change.adjusted, "p_family": change.family}
    return row | {"verdict": change.verdict, "reason": change.reason or None}


def _who(pair: Pair) -> Row:
    """What distinguishes one point from another, its parameters aside."""
    row: Row = {"experiment": pair.experiment, "benchmark": pair.point.kind[0]}
    row["version"] = pair.point.kind[1]
    for role, side in _SIDES:
        point = side(pair)
        row[f"{role}_source"] = point.source if point else None
        row[f"{role}_experiments"] = ", ".join(point.experiments) if point else None
        row[f"{role}_assumed"] = ", ".join(point.assumed) or None if point else None
    return row


def _cell(role: str, cell: Cell) -> Row:
    names = ("repeats", "mean", "low", "high")
    values = (cell.repeats, cell.mean, cell.low, cell.high)
    return {f"{role}_{name}": value for name, value in zip(names, values, strict=True)}


def _count(count: Count) -> Row:
    row: Row = {"experiment": count.experiment, "metric": count.metric, "phase": count.phase}
    row |= {"main": count.main}
    row |= {verdict.replace(" ", "_"): count.verdicts.get(verdict, 0) for verdict in VERDICTS}
    row |= {"compared": count.compared, "by_chance": count.by_chance}
    row |= {f"kept_{verdict}": count.kept.get(verdict, 0) for verdict in (IMPROVED, WORSE)}
    overall = count.overall
    for name, attribute in (("", "value"), ("_low", "low"), ("_high", "high")):
        row[f"geometric_mean{name}"] = getattr(overall, attribute) if overall else None
    return row


def _unmatched(pairs: Sequence[Pair], parameters: Sequence[str]) -> pd.DataFrame:
    rows = [
        {"side": "base" if pair.base else "new", **_who(pair), "why": pair.why} for pair in pairs
    ]
    return _with_parameters(rows, ("side", *_WHO, "why"), pairs, parameters)


def _versions(pairs: Sequence[Pair], parameters: Sequence[str]) -> pd.DataFrame:
    rows = []
    for pair in pairs:
        rows.append(_who(pair))
        for role, side in _SIDES:
            point = side(pair)
            rows[-1][f"{role}_version"] = point.kind[1] if point else None
            rows[-1][f"{role}_runs"] = len(point.rows) if point else 0
    more = [f"{role}_{name}" for role, _ in _SIDES for name in ("version", "runs")]
    names = [name for name in (*_WHO, *more) if name != "version"]
    return _with_parameters(rows, names, pairs, parameters)


def _with_parameters(
    rows: Sequence[Row], names: Sequence[str], pairs: Sequence[Pair], parameters: Sequence[str]
) -> pd.DataFrame:
    """The rows with the parameters after the benchmark; a name that is taken gets a prefix."""
    frame = _frame(rows, names)
    place = list(frame.columns).index("benchmark") + 1
    columns = {
        f"parameter_{name}" if name in frame else name: typed_values(
            [_value(pair.point.values.get(name)) for pair in pairs]
        )
        for name in parameters
    }
    before, after = frame.iloc[:, :place], frame.iloc[:, place:]
    return pd.concat([before, pd.DataFrame(columns, index=frame.index), after], axis=1)


def _value(value: Any) -> Any:
    return canonical_json(value) if isinstance(value, list | dict) else value


def _frame(rows: Sequence[Row], names: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in names})
