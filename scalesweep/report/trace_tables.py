"""What the page says of traces of PyTorch's profiler: exchange by group, late ranks, and the trace
beside time stamps."""

from collections.abc import Iterable, Mapping
from typing import Any

from scalesweep.aspects.profiles.collectives import CollectiveTime, RankLateness
from scalesweep.aspects.profiles.trace_stamps import TraceBeside
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.results import ExperimentResults

MAX_TABLES = 4
MAX_ROWS = 24
_GIGA = 1e9
_QUANTITIES = {
    "step": "Step",
    "computation": "Computation",
    "exchange": "Exchange that computation does not hide",
}


def trace_tables(results: ExperimentResults) -> dict[str, list[dict[str, Any]]]:
    """Of each traced run: calls by group and operation over its ranks, how late its ranks are, the
    latest first, and what its stamps say."""
    return {
        "collectives": [_collectives(results, rows) for rows in _runs(results.of(CollectiveTime))],
        "lateness": [_lateness(results, rows) for rows in _runs(results.of(RankLateness))],
        "trace_stamps": [_beside(results, rows) for rows in _runs(results.of(TraceBeside))],
    }


def _runs(rows: Iterable[Any]) -> list[list[Any]]:
    """The rows of the first runs, run by run."""
    runs: dict[str, list[Any]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    return list(runs.values())[:MAX_TABLES]


def _group(row: CollectiveTime | RankLateness) -> str:
    """A group in words."""
    name = row.group or "not named"
    return f"{name} (ranks {row.members})" if row.members else name


def _collectives(results: ExperimentResults, rows: list[CollectiveTime]) -> dict[str, Any]:
    kinds: dict[tuple[str, str], list[CollectiveTime]] = {}
    for row in rows:
        kinds.setdefault((_group(row), row.collective), []).append(row)

    def exposed(of_kind: list[CollectiveTime]) -> float:
        return sum(row.exposed_ms for row in of_kind) / len(of_kind)

    ordered = sorted(kinds.items(), key=lambda item: -exposed(item[1]))
    return {
        "where": results.describe(rows[0].point) if results.axes else "",
        "steps": min(row.steps for row in rows),
        "rows": [_kind(*names, of_kind) for names, of_kind in ordered[:MAX_ROWS]],
        "left_out": max(len(ordered) - MAX_ROWS, 0),
    }


def _kind(group: str, collective: str, rows: list[CollectiveTime]) -> dict[str, str]:
    """An operation of a group over its ranks."""
    exposed = [row.exposed_ms for row in rows]
    overlapped = [row.overlapped_ms for row in rows]
    sizes = [row.bytes for row in rows if row.bytes is not None]
    rates = [row.bus_bandwidth for row in rows if row.bus_bandwidth is not None]
    waiting = any(row.waiting for row in rows)
    return {
        "group": group,
        "collective": collective,
        "ranks": str(len(rows)),
        "calls": number(_mean([row.calls for row in rows])),
        "megabytes": number(_mean(sizes) / 1e6) if sizes else "–",
        "bandwidth": f"{number(_mean(rates) / _GIGA)}{' (with waiting)' if waiting else ''}"
        if rates else "–",
        "exposed": f"{number(_mean(exposed))} ({number(min(exposed))} to {number(max(exposed))})",
        "overlapped": number(_mean(overlapped)),
    }  # fmt: skip


def _lateness(results: ExperimentResults, rows: list[RankLateness]) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: (not row.latest, -row.late_mean_ms))
    return {
        "where": results.describe(rows[0].point) if results.axes else "",
        "rows": [
            {
                "group": _group(row),
                "rank": f"{row.rank}{' (late throughout)' if row.latest else ''}",
                "calls": f"{row.calls:,}",
                "median": number(row.late_median_ms),
                "p95": number(row.late_p95_ms),
                "last": percent(row.last_share),
                "clock": number(row.clock_ahead_ms),
            }
            for row in ordered[:MAX_ROWS]
        ],
        "left_out": max(len(ordered) - MAX_ROWS, 0),
    }


def _beside(results: ExperimentResults, rows: list[TraceBeside]) -> dict[str, Any]:
    whole: Mapping[str, TraceBeside] = {row.quantity: row for row in rows}
    step = whole.get("step")
    slower = ""
    if step is not None and step.measured_ms:
        ratio = step.stamps_ms / step.measured_ms
        slower = f"By its stamps a step took {number(ratio)} times as long as in the measured run."
    return {
        "where": results.describe(rows[0].point) if results.axes else "",
        "steps": rows[0].steps,
        "ranks": rows[0].traced_ranks,
        "slower": slower,
        "rows": [
            {
                "quantity": _QUANTITIES.get(row.quantity, row.quantity),
                "trace": number(row.trace_ms),
                "stamps": number(row.stamps_ms),
                "difference": percent(row.difference),
                "measured": number(row.measured_ms),
                "why": row.why or "agree",
            }
            for row in rows
        ],
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
