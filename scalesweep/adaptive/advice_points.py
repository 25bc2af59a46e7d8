"""The points that advice may choose: those planned and not measured, and counts between and beyond
them; what a run of each costs at most."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.advice.widths import cost_bounds
from scalesweep.analysis.prediction.series import Series
from scalesweep.analysis.stats import t_quantile
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.jobs.dataset_staging import is_staged
from scalesweep.jobs.job_requests import LEAST_LIMIT_S, canary_s
from scalesweep.jobs.run_spec import data_folder
from scalesweep.slurm.job_shape import staging_shape
from scalesweep.slurm.job_table import JOBS, overhead_s, read_jobs

PointOf = Mapping[str, Any]
# Runs are charged the upper bound of this interval of their time: one in ten takes longer.
LEVEL = 0.8
# Of single runs, none repeated, how much longer the next one may take.
UNSEEN = 1.25
# Limits of advised runs, over the upper bound of their predicted time.
MARGIN = 1.5
# Counts of a series that may be new, so that sets of them stay few.
MOST_COUNTS = 16


def held_hours(campaign: Campaign, point: Mapping[str, Any], seconds: float) -> float:
    """Node-hours of a run whose program takes so long: with what a job takes beyond it."""
    site = campaign.site
    seconds += canary_s(campaign)
    if site.slurm is not None:
        seconds = 60 * math.ceil(seconds / 60 + site.slurm.startup_minutes)
    return site.nodes_for(point) * seconds / 3600


def limit_of(expected_s: float, experiment: Experiment) -> float:
    """The time limit of a run that is expected to take at most so long."""
    limit_s = max(MARGIN * expected_s, LEAST_LIMIT_S)
    return min(limit_s, experiment.time_limit_minutes * 60)


@dataclass(frozen=True)
class Prices:
    """What runs of a campaign cost on its site: nodes times the time for which they are held.

    ``overhead_s``: of a job beyond its program and canaries, ``measured`` or else what the site
    file says; ``by_limit``: runs are charged their time limits, which cannot be exceeded;
    ``staging``: node-hours of a job that makes a data set, 0 without Slurm.
    """

    campaign: Campaign
    overhead_s: float
    measured: bool
    by_limit: bool = False
    staging: float = 0.0

    def staged_first(self, experiment: Experiment, point: PointOf) -> tuple[str, float] | None:
        """The folder of the data set that has to be made before a run, and its node-hours."""
        folder = data_folder(self.campaign, experiment.benchmark, point)
        if folder is None or not self.staging or is_staged(self.campaign, experiment, point):
            return None
        return folder, self.staging

    def node_hours(self, experiment: Experiment, point: PointOf, wall_s: float) -> float:
        """Node-hours of a run whose program takes so long at most."""
        if self.by_limit:
            return held_hours(self.campaign, point, limit_of(wall_s, experiment))
        seconds = wall_s + self.overhead_s + canary_s(self.campaign)
        return self.campaign.site.nodes_for(point) * seconds / 3600

    def limit_s(self, experiment: Experiment) -> float:
        """The longest time that a run of an experiment may be given."""
        limit, slurm = experiment.time_limit_minutes, self.campaign.site.slurm
        if slurm is not None and not self.by_limit:
            limit = max(limit, slurm.max_minutes)
        return limit * 60


def prices_of(campaign: Campaign, by_limit: bool = False) -> Prices:
    """The prices of a campaign, with what its jobs have held their nodes for so far."""
    if campaign.site.slurm is None:
        return Prices(campaign, 0.0, True, by_limit)
    jobs = read_jobs(campaign.results / JOBS)
    seen = overhead_s(jobs)
    # Those that have no run stage data.
    made = [row["node_hours"] or 0.0 for row in jobs if not row["run_id"]]
    most = staging_shape(campaign.site).node_hours
    staging = most if by_limit else max(made, default=most)
    beyond = campaign.site.slurm.startup_minutes * 60 if seen is None else seen
    return Prices(campaign, beyond, seen is not None, by_limit, staging)


def longest_wall(walls: Series, count: float) -> float:
    """Upper bound of the ``LEVEL`` interval of the wall time of a run at a count, in seconds.

    ``walls``: as ``tables.wall_times.wall_series`` makes them.
    """
    high = cost_bounds(walls, count, LEVEL)[1]
    return high / count if walls.scaling == "strong" else high


def longest_of(walls: Sequence[float], others: Sequence[Sequence[float]]) -> float:
    """The same of a point whose runs took ``walls``, by the scatter of these and of ``others``, the
    times of each other point, from their own means."""
    logs = [np.log(values) for values in (walls, *others) if values]
    degrees = sum(len(values) - 1 for values in logs)
    mean, count = float(logs[0].mean()), len(logs[0])
    if not degrees:
        return float(np.exp(mean)) * UNSEEN
    spread = np.sqrt(sum(float(((v - v.mean()) ** 2).sum()) for v in logs) / degrees)
    return float(np.exp(mean + t_quantile(degrees, level=LEVEL) * spread * np.sqrt(1 + 1 / count)))


def geometric_counts(first: int, low: float, high: float) -> list[int]:
    """Counts above ``low`` up to ``high`` that are ``first`` times a power of two, or 1.25, 1.5 or
    1.75 of that."""
    counts, count = set(), first
    while count <= high:
        counts |= {count * part // 4 for part in (4, 5, 6, 7) if count * part % 4 == 0}
        count *= 2
    return sorted(number for number in counts if low < number <= high)


def between(low: float, high: float) -> list[int]:
    """Up to three counts that part the space between two others evenly, in logarithms."""
    inner = [round(low * (high / low) ** share) for share in (0.25, 0.5, 0.75)]
    return sorted({number for number in inner if low < number < high})


def derived(
    experiment: Experiment,
    site: Site,
    known: Mapping[int, PointOf],
    count: int,
    left_out: Callable[[PointOf], bool],
) -> dict[str, Any] | None:
    """The point of a series at a rank count that is not planned; None where there can be none.

    ``known``: points of the series by rank count; a parameter that changes along it has to follow
    the ranks, in proportion or inversely. ``left_out``: whether the campaign excludes a point.
    """
    benchmark, derivation = experiment.benchmark, experiment.derivation
    if benchmark.workers is not None:
        return None
    last = known[max(known)]
    point = {**last, "ranks": count}
    try:
        for name in sorted(point.keys() - derivation.derived.keys()):
            values = {ranks: point[name] for ranks, point in known.items()}
            if name != "ranks" and any(value != last[name] for value in values.values()):
                point[name] = _followed(values, count)
            point[name] = benchmark.parameter(name, "").normalise(point[name], "")
        point = derivation.of(point)
        if derivation.broken(point):
            return None
        benchmark.check_point(point, "")
        site.check_point(point, "")
    except (UserError, ValueError):
        return None
    share = benchmark.total_work(point), benchmark.total_work(last)
    if share[0] is not None and share[1] is not None:
        each = experiment.scaling == "weak"
        old, new = share[1] * (count if each else 1), share[0] * (last["ranks"] if each else 1)
        if old != new:
            return None
    return None if left_out(point) else point


def _followed(values: Mapping[int, Any], count: int) -> Any:
    """The value that continues a parameter along the ranks. Raises ValueError if nothing does."""
    if any(isinstance(value, bool) or not isinstance(value, int) for value in values.values()):
        raise ValueError("follows no rank count")
    ranks, value = next(iter(values.items()))
    if all(value * other == known_value * ranks for other, known_value in values.items()):
        followed, rest = divmod(value * count, ranks)
    elif all(value * ranks == known_value * other for other, known_value in values.items()):
        followed, rest = divmod(value * ranks, count)
    else:
        raise ValueError("follows no rank count")
    if rest:
        raise ValueError("does not divide")
    return followed
