"""What the chart of an experiment's points is made of: its axes and measures, columns by row."""

from collections.abc import Sequence
from typing import Any

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import PHASES, finite, plain, text_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row

MAX_VALUES = 150_000  # of all charts of a page; those of an experiment keep fewer measures
Data = dict[str, Any]


def chart_data(results: ExperimentResults, rows: Sequence[Row], share: int) -> Data | None:
    """The chart over rows of points, whose measures take at most ``share`` values; None if fewer
    than two points have a result, or nothing varies."""
    finished = [row for row in rows if row.get("repeats")]
    if len(finished) < 2 or not results.columns or results.main is None:
        return None
    measures = [
        made
        for measure in results.measures.values()
        for phase in sorted(measure.phases, key=lambda phase: phase != measure.steady_phase)
        for made in _measures(measure, phase, rows)
    ]
    room = max(1, share // (4 * len(rows)))
    several = len(results.sources) > 1 or "measured" not in results.sources
    return {
        "rows": len(rows),
        "axes": _axes(results, rows),
        "measures": measures[:room],
        "sources": [row.get("source") for row in rows] if several else None,
    }


def _axes(results: ExperimentResults, rows: Sequence[Row]) -> list[Data]:
    """The varying parameters; ``leader`` is the place of the one that each follows."""
    places = {name: place for place, name in enumerate(results.columns)}
    leaders = {
        follower: places[leader]
        for leader in results.followers
        for follower in results.followers.get(leader, [])
    }
    if results.scale in places:  # what makes the scale (devices of a rank) tells no series apart
        for name in {*places} - {results.scale, *results.series_names, *leaders}:
            leaders[name] = places[results.scale]
    axes = []
    for name, place in places.items():
        values = [plain(row.get(name)) for row in rows]
        numeric = results.numeric(name)
        axes.append({
            "title": results.label(name), "scale": name == results.scale, "number": numeric,
            "leader": leaders.get(name, place), "texts": [text_of(value) for value in values],
            "values": [value if numeric and finite(value) else None for value in values],
        })  # fmt: skip
    return axes


def _measures(measure: Measure, phase: str, rows: Sequence[Row]) -> list[Data]:
    """A metric in a phase, and its efficiency and speedup where the table has them."""

    def values(name: str, factor: float = 1.0) -> list[float | None] | None:
        numbers = [row.get(name) for row in rows]
        if not any(map(finite, numbers)):
            return None
        return [float(f"{v * factor:.7g}") if finite(v) else None for v in numbers]

    name, factor = column(measure.metric, "mean", phase), measure.factor
    mean = values(name, factor)
    if mean is None:
        return []
    unit = f" [{measure.unit}]" if measure.unit else ""
    bounds = {s: values(column(measure.metric, s, phase), factor) for s in ("low", "high")}
    title = f"{measure.label}, {PHASES[phase]}{unit}"
    ideal = values(column(f"{measure.stem}_ideal", "", phase), factor)
    made: list[Data] = [{"title": title, "mean": mean, **bounds, "ideal": ideal}]
    for part, what, share in (("eff", "Efficiency", True), ("speedup", "Speedup", False)):
        names = [column(f"{measure.stem}_{end}", "", phase)
                 for end in (part, f"{part}_low", f"{part}_high")]  # fmt: skip
        mean, low, high = map(values, names)
        if mean is not None:
            title = f"{what} ({measure.label.lower()}), {PHASES[phase]}"
            line = {"title": title, "mean": mean, "low": low, "high": high, "share": share}
            made.append(line)
    return made
