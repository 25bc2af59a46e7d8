"""Points without a result, by the reason."""

from collections.abc import Iterable, Mapping
from typing import Any

from scalesweep.core.formatting import listed
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults

MAX_REASON_POINTS = 12


def excluded_points(results: ExperimentResults) -> list[dict[str, Any]]:
    """What the campaign leaves out."""
    excluded = results.entry["excluded"]
    return _by_reason(results, ((str(entry["reason"]), entry["point"]) for entry in excluded))


def points_without_result(results: ExperimentResults, status: str) -> list[dict[str, Any]]:
    """The points of runs that have no result and are not to be run."""
    runs = (run for run in results.entry["runs"] if run["status"] == status)
    return _by_reason(results, ((str(run["detail"]), run["point"]) for run in runs))


def accepted_points(results: ExperimentResults) -> list[dict[str, Any]]:
    """The points of runs that count although they differ from the plan, by how they differ."""
    runs = (run for run in results.entry["runs"] if run["status"] == Status.DONE and run["detail"])
    return _by_reason(results, ((str(run["detail"]), run["point"]) for run in runs))


def _by_reason(
    results: ExperimentResults, points: Iterable[tuple[str, Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Points in words by the reason why they have no result, each once."""
    reasons: dict[str, dict[str, None]] = {}
    for reason, point in points:
        reasons.setdefault(reason, {})[results.describe(point)] = None
    return [
        {"reason": reason, "count": len(named), "points": listed([*named], MAX_REASON_POINTS)}
        for reason, named in reasons.items()
    ]
