"""What advice can be asked of scaling series: predictions and knees."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scalesweep.adaptive.advice_points import (
    MOST_COUNTS,
    PointOf,
    between,
    derived,
    geometric_counts,
    longest_wall,
)
from scalesweep.adaptive.advice_study import Gather
from scalesweep.analysis.advice.advise import SeriesAsked
from scalesweep.analysis.advice.widths import Known, Question, Target, knee_of
from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.prediction.forecast import blocked, count_beyond, refusals
from scalesweep.analysis.prediction.series import Series, refusal
from scalesweep.core.formatting import duration, text_of
from scalesweep.core.plan_format import target_efficiency
from scalesweep.tables.points import Point
from scalesweep.tables.predictable import MeasuredSeries, predictable
from scalesweep.tables.scaling import series_of
from scalesweep.tables.wall_times import pending_groups, series_key, wall_series, wall_times

# Knees are looked for among counts up to so many times the largest measured one.
BEYOND = 4
# Runs of a new count at least where its series may be stopped.
FOR_STOP = 2


def ask_series(gather: Gather) -> None:
    """Its scaling series."""
    data, name = gather.data, gather.experiment.name
    points = data.points()
    groups = [[points[i] for i in group] for group in series_of(data, points)]
    pending = pending_groups(data, groups)
    walls = wall_times(data)
    seen = False
    for group in groups:
        there = [point for point in group if point.rows.size and gather.fits(point)]
        if not there:
            continue
        seen = True
        label = _label(gather, there[0])
        if there[0].source != "measured":
            gather.refuse(f"{label}: its points are {there[0].source}: none can be added to them")
            continue
        if (measured := _main(gather, predictable(data, [there], gather.machine))) is None:
            gather.refuse(f"{label}: no rate of all {gather.data.scale} together was measured")
        elif why := refusal(measured.series):
            gather.refuse(f"{label}: {why}")
        else:
            times = wall_series(data, there, walls, gather.machine)
            missing = pending.get(series_key(data, there[0]), [])
            if refusal(times):
                gather.refuse(f"{label}: its runs recorded no wall times")
            else:
                _ask(gather, label, measured, missing, times)
    if not seen:
        gather.refuse(
            f"{name}: no rank count has a result, and a prediction needs 3 over a factor of 4: "
            "run the campaign's smallest counts first"
        )


def _label(gather: Gather, point: Point) -> str:
    names = [name for name in series_parameters(gather.data.experiment) if name in point.values]
    settings = ", ".join(f"{name} {text_of(point.values[name])}" for name in names)
    return f"{gather.experiment.name}{f', {settings}' if settings else ''}"


def _main(gather: Gather, measured: Iterator[MeasuredSeries]) -> MeasuredSeries | None:
    """The measure that findings are about, in the phase that runs are compared in."""
    every = list(measured)
    measures = [measured_.measure for measured_ in every]
    wanted = [measure for measure in gather.measures if measure in measures] or measures[:1]
    return every[measures.index(wanted[0])] if wanted else None


def _ask(
    gather: Gather, label: str, main: MeasuredSeries, missing: Sequence[Point], times: Series
) -> None:
    """Add what is asked of a series to ``gather``: its question, and what each further run of a
    missing or measured point would narrow and cost."""
    series, largest = main.series, main.counts[-1]
    planned = {int(point.values[gather.data.scale]): point for point in missing}
    question = _question(gather, label, largest, series)
    if question is None:
        return
    text, asked = question
    known = {int(p.values[gather.data.scale]): gather.whole(p) for p in main.points}
    enclosed = None
    if isinstance(asked, Target):
        top = int(asked.count)
    else:
        top = max([BEYOND * largest, *planned])
        below = np.flatnonzero(series.cost[0] / series.cost < asked.least)
        if below.size:
            enclosed = main.counts[below[0] - 1], main.counts[below[0]]
    if enclosed:
        counts = [*between(*enclosed), *(c for c in planned if enclosed[0] < c < enclosed[1])]
    else:
        counts = [*geometric_counts(main.counts[0], largest, top), top]
        counts += [count for count in planned if count <= top]
    experiment, prices = gather.experiment, gather.prices
    # What a stop leaves out gets no further runs either.
    points: dict[float, PointOf] = {
        float(count): point for count, point in known.items() if not gather.stopped(point)
    }
    border = blocked(series, asked.count) if isinstance(asked, Target) else None
    if border is not None:
        counts, points = [count_beyond(border)], {}  # nothing else tells what lies beyond it
        gather.study.note(f"{label}: {refusals(series, [top], gather.data.scale)[0]}")
    longest = {count: longest_wall(times, count) for count in points}
    measured, new = set(points), []
    for count in sorted(set(counts) - known.keys()):
        if (point := _point(gather, planned.get(count), known, count)) is None:
            continue
        if why := gather.stopped(point):
            gather.study.stop(f"{label}: larger counts: {why}")
            continue
        wall_s, limit_s = longest_wall(times, count), prices.limit_s(experiment)
        if wall_s > limit_s:
            gather.study.left_out.append(
                f"{label} at {count:,} {gather.data.scale}: may take {duration(wall_s)}, the "
                f"limit is {duration(limit_s)}"
            )
            continue
        points[float(count)], longest[float(count)] = point, wall_s
        new.append(float(count))
    costs = {c: prices.node_hours(experiment, point, longest[c]) for c, point in points.items()}
    # One run of a count has no interval, by which a stop could go.
    least = FOR_STOP if experiment.stop else 1
    once = {c: made for c in new if (made := prices.staged_first(experiment, points[c]))}
    new = [c for c in new if least * costs[c] + once.get(c, ("", 0.0))[1] <= gather.budget]
    new = _chosen(new, planned)
    if any(count in once for count in new):
        gather.study.note(
            f"{label}: counts whose data set has files to be made cost {prices.staging:.3g} "
            "node-hours more, for the job that makes them"
        )
    costs = {count: cost for count, cost in costs.items() if count in measured or count in new}
    repeats = np.array([gather.data.repeats(p, main.measure).size for p in main.points], np.float64)
    asked_of = SeriesAsked(label, Known(series, repeats), {text: asked}, costs, new, least, once)
    gather.study.ask_series(asked_of, experiment, points, longest)


def _chosen(counts: Sequence[float], planned: Mapping[int, Point]) -> list[float]:
    """Those that are tried: of many, planned ones first, then the largest."""
    order = sorted(counts, key=lambda count: (count not in planned, -count))
    return sorted(order[:MOST_COUNTS])


def _question(
    gather: Gather, label: str, largest: int, series: Series
) -> tuple[str, Question] | None:
    scale, target = gather.data.scale, gather.wanted.count
    if target is None and not gather.wanted.knee:
        target = max((c for c in gather.experiment.predict if c >= largest), default=None)
    if target is None:
        share = target_efficiency(gather.data.experiment)
        return f"{scale} below {100 * share:g} % efficiency", knee_of(series, share)
    if target < largest:
        gather.refuse(
            f"{label}: {target:,} {scale} are fewer than the largest measured count of "
            f"{largest:,}: measure them"
        )
        return None
    return f"at {target:,} {scale}", Target(float(target))


def _point(
    gather: Gather, planned: Point | None, known: Mapping[int, PointOf], count: int
) -> PointOf | None:
    if planned is not None:
        return gather.whole(planned)
    skipped = [point for point, _ in gather.experiment.excluded]
    point = derived(gather.experiment, gather.prices.campaign.site, known, count, gather.left_out)
    if point is None or gather.stopped(point):  # of a stop the user hears why
        return point
    return None if point in skipped else point
