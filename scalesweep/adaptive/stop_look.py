"""Looks at series of experiments with ``stop``: is a count clearly on that side of the limit?

Clearly: the 95 % interval of the mean of its repeats, or of the ratio to the smallest count for
efficiency and speedup, lies wholly there. With one repeat there is no interval and no decision.

No pandas: Snakemake waits for a look.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from scalesweep.adaptive.stops import KeptStop, Scale, StopSeries
from scalesweep.analysis.metrics import (
    EPOCH_PHASES,
    EXTENSIVE,
    QUANTITIES,
    column,
    kind_of,
)
from scalesweep.analysis.repeat_rule import COVERAGE, level_of
from scalesweep.analysis.stats import Interval, mean_interval, ratio_interval
from scalesweep.config.experiment import Experiment
from scalesweep.config.stop_rule import SPEEDUP, StopRule
from scalesweep.core.formatting import counted, number
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.tables.summary import read_rows
from scalesweep.tables.summary_cache import Row

Values = dict[str, float]  # of a metric, by run


def look_at_series(series: StopSeries, folder: Path) -> KeptStop:
    """What the finished runs of a series say; ``folder``: of the site's runs."""
    rule, experiment = series.rule, series.experiment
    rows = {scale.ranks: _rows(scale, folder) for scale in series.scales}
    known = [row for scale in rows.values() for row in scale.values()]
    metric = _metric(experiment, rule, known)
    values = {count: _values(scale, metric) for count, scale in rows.items()}
    level = level_of(experiment.until_precise.least) if experiment.until_precise else COVERAGE
    measured = [scale.ranks for scale in series.scales if values[scale.ranks]]
    base = measured[0] if measured else 0
    stamps = {
        run.run_id: state.stamp
        for scale in series.scales
        for run, state in zip(scale.runs, scale.states, strict=True)
    }
    # The largest count too: beyond it others may be advised.
    for scale in series.scales:
        mine = values[scale.ranks]
        if not mine or (rule.of_ratio and scale.ranks == base):
            continue
        if rule.of_ratio:
            value, interval = _ratio(
                rule, metric, known, experiment.scaling, (base, values[base]), (scale.ranks, mine),
                level,
            )  # fmt: skip
        else:
            value = sum(mine.values()) / len(mine)
            interval = mean_interval(list(mine.values()), level)
        if interval.high < rule.limit if rule.below else interval.low > rule.limit:
            low, high = number(interval.low), number(interval.high)
            reason = (
                f"{rule.text} at {experiment.benchmark.scale} {scale.ranks:,}: {rule.metric} "
                f"{number(value)} (95 %: {low} to {high}, {counted(len(mine), 'repeat')})"
            )
            rests_on = [*(values[base] if rule.of_ratio else ()), *mine]
            evidence = [[run_id, stamps[run_id]] for run_id in rests_on]
            return KeptStop(series.seen, rule.text, scale.ranks, reason, evidence)
    return KeptStop(series.seen, rule.text, None, "", [])


def _rows(scale: Scale, folder: Path) -> dict[str, Row]:
    """Rows of the finished runs of a count, by run."""
    done = [
        run.run_id
        for run, state in zip(scale.runs, scale.states, strict=True)
        if state.status == Status.DONE
    ]
    rows = read_rows([folder / run_id / RECORD for run_id in done])
    # One that is damaged, or of no use, has no value: the inventory says so.
    return {i: row for i, row in zip(done, rows, strict=True) if isinstance(row, Row)}


def _metric(experiment: Experiment, rule: StopRule, rows: Sequence[Row]) -> str:
    """The metric that is compared: the rule's own, else the first that there is of those that the
    experiment is about (as ``adaptive.repeat_look``); empty where that has no efficiency, as a
    bandwidth or a latency has none."""
    if not rule.of_ratio:
        return rule.metric
    main = [experiment.main_metric] if experiment.main_metric else []
    others = sorted({name for row in rows for name in row.meanings})
    for metric in [*main, "total_throughput", *experiment.benchmark.metrics, *others]:
        if any(_values({"": row}, metric) for row in rows):
            return metric if _has_ideal(experiment, metric, rows) else ""
    return ""


def _has_ideal(experiment: Experiment, metric: str, rows: Sequence[Row]) -> bool:
    """Whether a metric that the experiment is about is a rate or a time of work."""
    said = next((row.meanings[metric] for row in rows if metric in row.meanings), None)
    if metric in QUANTITIES or said is None:
        return True
    kinds, scaling = experiment.benchmark.kinds, experiment.scaling
    kind = kind_of(metric, said["unit"], said["better"], kinds, scaling, main=True)
    return kind == EXTENSIVE


def _values(rows: Mapping[str, Row], metric: str) -> Values:
    """The finite values of a metric by run: of epochs after the first, where there are several."""
    numbers = {run_id: {**row.epochs, **row.plain} for run_id, row in rows.items()}
    for phase in (*reversed(EPOCH_PHASES), "run"):
        name = column(metric, "mean", phase)
        values = {
            i: value
            for i, row in numbers.items()
            if math.isfinite(value := row.get(name, math.nan))
        }
        if values:
            return values
    return {}


def _ratio(
    rule: StopRule,
    metric: str,
    rows: Sequence[Row],
    scaling: str,
    base: tuple[int, Values],
    other: tuple[int, Values],
    level: float,
) -> tuple[float, Interval]:
    """Efficiency or speedup of a count against the smallest, and its interval.

    A rate of all ranks grows by the speedup, which is the efficiency times the counts' ratio; a
    rate of one rank, and in weak scaling a time, changes by the efficiency; in strong scaling a
    time falls by the speedup.
    """
    stated: Mapping[str, str] = next((r.meanings[metric] for r in rows if metric in r.meanings), {})
    known = QUANTITIES.get(metric)
    better = known.better if known else stated.get("better", "higher")
    scope = known.scope if known else stated.get("scope", "total")
    counts = other[0] / base[0]
    speeds_up = scope == "total" if better == "higher" else scaling == "strong"
    scale = 1.0
    if speeds_up and rule.metric != SPEEDUP:
        scale = 1 / counts
    elif not speeds_up and rule.metric == SPEEDUP:
        scale = counts
    sides = [list(other[1].values()), list(base[1].values())]
    top, bottom = sides if better == "higher" else reversed(sides)
    value = scale * (sum(top) / len(top)) / (sum(bottom) / len(bottom))
    if min(*top, *bottom) <= 0:
        return value, Interval(math.nan, math.nan, "none")
    return value, ratio_interval(top, bottom, scale, level)
