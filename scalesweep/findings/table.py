"""The findings as a table: written after an experiment's other tables, read by the report.

A row per sentence; what has parts (numbers, row, runs, evidence) is JSON text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.core.formatting import plain
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding, Number

TABLE = "findings"
COLUMNS = (
    *("rule", "state", "subject", "sentence", "numbers", "p", "reason", "flags", "next"),
    *("table", "row", "runs", "evidence"),
)
_BETWEEN = "; "  # flags


def findings_table(results: ExperimentResults, findings: Sequence[Finding]) -> pd.DataFrame:
    """A row per finding, in the order of the report; COLUMNS of text, empty where nothing is."""
    rows = [
        {
            "rule": finding.rule,
            "state": finding.state,
            "subject": finding.subject or None,
            "sentence": finding.sentence,
            "numbers": _json(finding.numbers),
            "p": finding.p,
            "reason": finding.reason or None,
            "flags": _BETWEEN.join(finding.flags) or None,
            "next": finding.next or None,
            "table": str(finding.evidence.get("table") or ""),
            "row": _json(finding.evidence.get("key") or {}),
            "runs": _json(runs_of(results, finding.evidence)),
            "evidence": _json(finding.evidence),
        }
        for finding in findings
    ]
    kinds = dict.fromkeys(COLUMNS, str) | {"p": float}
    frame = pd.DataFrame(
        {name: typed_values([row[name] for row in rows], kind) for name, kind in kinds.items()}
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
            orjson.loads(row["evidence"]),
            tuple(Number(**value) for value in orjson.loads(row["numbers"])),
            subject=row["subject"] or "",
            reason=row["reason"] or "",
            flags=tuple(filter(None, (row["flags"] or "").split(_BETWEEN))),
            next=row["next"] or "",
            p=row["p"],
        )
        for row in results.rows(TABLE, COLUMNS)
    ]


def runs_of(results: ExperimentResults, evidence: Mapping[str, Any]) -> list[str]:
    """Ids of the finished runs that a sentence rests on; none are named where it is all of them."""
    rows = [evidence, evidence.get("runner_up") or {}]
    keys = [row["key"] for row in rows if row.get("key")]
    if named := [key["run_id"] for key in keys if "run_id" in key]:
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


def _json(value: Any) -> str:
    """JSON text; what is not finite is null."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY).decode()
