"""The findings as a table: written after an experiment's other tables, read by the report.

A row per sentence; what has parts (numbers, row, runs, evidence) is JSON text.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from scalesweep.analysis.metrics import column, split_column
from scalesweep.analysis.table_io import typed_values
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import PHASES, finite, plain
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding, Number, number_of

TABLE = "findings"
# Tables that hold values of the main metric in columns of these names.
_ON_MAIN_METRIC = frozenset({"best", "comparisons", "sites", "prediction"})
_OF_MAIN = frozenset({"mean", "next_mean", "value"})
# Units of other numbers that rules state, where no column of a table has them; what is not here
# is a ratio, a share or a count.
_UNITS: Mapping[str, str] = {
    "loss": "ms", "least": "ms", "ms": "ms", "flops": "FLOP/s",
    "latency": "s", "typical": "s", "seconds": "s", "time": "s", "epoch_seconds": "s",
    "bandwidth": "bytes/s", "rate": "bytes/s", "ceiling": "bytes/s",
    "best": "s", "worst": "s", "score": "s", "models_per_minute": "1/min",
    "node_hours": "h", "budget": "h",
}  # fmt: skip
COLUMNS = (
    *("rule", "state", "subject", "sentence", "numbers", "p", "reason", "flags", "next"),
    *("table", "row", "runs", "evidence"),
)
_BETWEEN = "; "  # flags
# Columns that bound another one: `low`, `ratio_high`, `total_time_low_later`.
_BOUND = re.compile(rf"(?:^|_)(?:low|high)(?:_(?:{'|'.join(PHASES)}))?$")


def findings_table(results: ExperimentResults, findings: Sequence[Finding]) -> pd.DataFrame:
    """A row per finding, in the order of the report; COLUMNS of text, empty where nothing is."""
    rows = [
        {
            "rule": finding.rule,
            "state": finding.state,
            "subject": finding.subject or None,
            "sentence": finding.sentence,
            "numbers": canonical_json([asdict(value) for value in finding.numbers]),
            "p": finding.p,
            "reason": finding.reason or None,
            "flags": _BETWEEN.join(finding.flags) or None,
            "next": finding.next or None,
            "table": str(finding.evidence.get("table") or ""),
            "row": canonical_json(finding.evidence.get("key") or {}),
            "runs": canonical_json(runs_of(results, finding.evidence)),
            "evidence": canonical_json(_as_json(finding.evidence)),
        }
        for finding in findings
    ]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    frame = pd.DataFrame(
        {name: typed_values(columns[name], float if name == "p" else str) for name in COLUMNS}
    )
    frame.attrs["units"] = {}
    return frame


def findings_in(results: ExperimentResults) -> list[Finding] | None:
    """The findings in an experiment's table of them; None where it has no such table."""
    if results.tables.get(TABLE) is None:
        return None
    return [
        Finding(
            results.name,
            row["rule"],
            row["state"],
            row["sentence"],
            json.loads(row["evidence"]),
            tuple(Number(**value) for value in json.loads(row["numbers"])),
            subject=row["subject"] or "",
            reason=row["reason"] or "",
            flags=tuple(filter(None, (row["flags"] or "").split(_BETWEEN))),
            next=row["next"] or "",
            p=row["p"],
        )
        for row in results.rows(TABLE, COLUMNS)
    ]


def numbers_stated(results: ExperimentResults, finding: Finding) -> tuple[Number, ...]:
    """What a finding states: the numbers of its rule, else those of its evidence.

    Units of the latter are those of the columns of its table.
    """
    return finding.numbers or tuple(_of_evidence(results, finding.evidence))


def _of_evidence(results: ExperimentResults, evidence: Mapping[str, Any]) -> Iterable[Number]:
    numbers = evidence.get("numbers") or {}
    table = str(evidence.get("table"))
    values = [str(name) for name in numbers if not _BOUND.search(str(name))]
    for name in values:
        value = numbers[name]
        if finite(value):
            low, high = (_bound(numbers, name, end, name == values[0]) for end in ("low", "high"))
            yield number_of(name, value, _unit(results, table, name), low, high)


def _unit(results: ExperimentResults, table: str, name: str) -> str:
    """Unit of a number of a table, or of one that rules work out."""
    if unit := results.unit_of(table, name):
        return unit
    bare = name.removeprefix(f"{table}_")
    if bare in _OF_MAIN and table in _ON_MAIN_METRIC:
        main = results.main
        of = column(main.metric, "mean", main.steady_phase) if main else ""
        return results.unit_of("points", of)
    ending = bare.rpartition("_")[2]
    return _UNITS.get(bare) or (ending if ending in ("ms", "s") else "1")


def _bound(numbers: Mapping[str, Any], name: str, end: str, first: bool) -> Any:
    """The end of a number's interval, by the names that tables and rules give it."""
    parts = split_column(name)
    if parts is not None:
        return numbers.get(column(parts.metric, end, parts.phase))
    stem = name.removesuffix("mean").removesuffix("_")
    return numbers.get(f"{stem}_{end}" if stem else end, numbers.get(end) if first else None)


def runs_of(results: ExperimentResults, evidence: Mapping[str, Any]) -> list[str]:
    """Ids of the finished runs that a sentence rests on; none are named where it is all of them."""
    rows = [evidence, evidence.get("runner_up") or {}]
    keys = [row["key"] for row in rows if row.get("key")]
    named = [key["run_id"] for key in keys if "run_id" in key]
    if named:
        return [run_id for ids in named for run_id in (ids if isinstance(ids, list) else [ids])]
    points = [{name: key[name] for name in results.axes if name in key} for key in keys]
    points = [point for point in points if point]
    return [
        str(run["run_id"])
        for run in results.entry["runs"]
        if run["status"] == Status.DONE
        and any(
            all(plain(run["point"].get(name)) == value for name, value in point.items())
            for point in points
        )
    ]


def _as_json(value: Any) -> Any:
    """The same with what JSON lacks made plain: NaN is missing, tuples are lists."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    value = plain(value)
    return None if isinstance(value, float) and not finite(value) else value
