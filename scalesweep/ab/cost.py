"""What a measurement of commits costs, before it begins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from scalesweep.ab.targets import Target
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, duration
from scalesweep.history.store import load
from scalesweep.planning.plan import hours

_UNKNOWN = "an unknown time (nothing like it has been measured yet)"


@dataclass
class Cost:
    """Runs, their seconds one after the other (None: not known), node-seconds, and the node-hours
    that Slurm's limits allow at most."""

    runs: int = 0
    seconds: float | None = 0.0
    node_seconds: float = 0.0
    limit: float = 0.0

    def add(self, runs: int, each_s: float | None, nodes: int, limit: float) -> None:
        """Count so many runs of a point that take so long each."""
        self.runs += runs
        self.limit += limit
        if each_s is None or self.seconds is None:
            self.seconds = None
            return
        self.seconds += runs * each_s
        self.node_seconds += runs * each_s * nodes

    def text(self, cores_per_node: int, in_slurm: bool) -> str:
        """``36 runs, about 12 min, 3.2 core-hours``."""
        if not self.runs:
            return "nothing: all of it has been measured"
        if self.seconds is None:
            text = f"{counted(self.runs, 'run')}, {_UNKNOWN}"
        else:
            core_hours = self.node_seconds * cores_per_node / 3600
            text = (
                f"{counted(self.runs, 'run')}, about {duration(self.seconds)}, "
                f"{core_hours:.3g} core-hours"
            )
        if in_slurm:
            expected = None if self.seconds is None else self.node_seconds / 3600
            text += f"; {hours(expected)} node-hours expected, {hours(self.limit)} at most"
        return text


def history_seconds(campaign: Campaign, targets: Sequence[Target]) -> Mapping[str, float]:
    """Median seconds of the runs of the targets' points in the campaign's history, by the id of a
    point's first run; of those that are in it."""
    if campaign.history is None:
        return {}
    columns = ["site", "benchmark", "run_id", "started", "ended", "repeat"]
    try:
        rows = load(campaign.history.folder, columns).rows.to_pandas()
    except UserError:
        return {}  # none yet
    rows = rows[rows["site"] == campaign.site.name].drop_duplicates(["run_id", "started"])
    seconds = (rows["ended"] - rows["started"]).dt.total_seconds()
    medians = {}
    for target in targets:
        ids = {target.run_id(repeat) for repeat in range(target.repeats)}
        own = seconds[rows["run_id"].isin(ids)].dropna()
        if len(own):
            medians[target.run_id(0)] = float(median(own))
    return medians
