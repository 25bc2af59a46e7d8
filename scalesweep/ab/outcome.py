"""What pairs of runs have shown: a verdict for each point, as the history keeps it."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from scalesweep.ab.pairs import BASE, Pairs
from scalesweep.ab.targets import Target
from scalesweep.config.campaign import Campaign
from scalesweep.config.history_settings import MARGIN
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.record import RECORD
from scalesweep.history.evidence import Evidence
from scalesweep.history.series import POINT
from scalesweep.history.session import FORMULA, Numbers, head_of, usable_record
from scalesweep.history.store import METRIC
from scalesweep.judge.change import Change, corrected, paired
from scalesweep.tables.derived import with_derived
from scalesweep.tables.summary import build_summary

_PHASES = ("later", "run", "init")  # of a metric that is not the main one, the first there is


class Measured:
    """The values of a point's pairs: ``base[pair]``, ``new[pair]``, and what they are of."""

    def __init__(self, pairs: Pairs, target: Target, entry: PlanExperiment) -> None:
        """Read all pairs of a point that there are, more than were asked for too.

        Raises UserError for a metric that the runs do not have.
        """
        self.target = target
        self.head: dict[str, Any] = {}
        self.row: dict[str, Any] = {}
        self.base: list[float] = []
        self.new: list[float] = []
        self.started: list[str] = []
        self.failure = pairs.failure(target)
        places = pairs.done(target)
        sides: dict[str, list[float]] = {}
        for side in ("base", "new") if places else ():
            folders = [pairs.place(target) / side / target.run_id(n) for n in places]
            summary = build_summary([folder / RECORD for folder in folders])
            point = target.experiment.benchmark.scaled(target.point)
            measured = [{"run_id": folder.name, "point": point} for folder in folders]
            own = cast(PlanExperiment, {**entry, "runs": measured})
            summary = with_derived(summary, [own])
            numbers = Numbers(summary, entry)
            rows = [self._row(list(numbers.of(n))) for n in range(len(folders))]
            sides[side] = [row["value"] if row else math.nan for row in rows]
            record = usable_record(folders[0])
            if side == BASE and record:
                self.head = head_of(pairs.campaign, entry, record, point)
                self.started.append(str(record["started"]))
            self.row = self.row or next((row for row in rows if row), {})
        if sides:
            if not self.row:
                raise UserError(
                    f"{target.label}: its runs have no metric {target.metric or 'to judge'}; name "
                    "another with --metric NAME"
                )
            self.base, self.new = sides["base"], sides["new"]

    def _row(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """The row of the metric that is judged."""
        metrics = [row for row in rows if row["kind"] == METRIC]
        if self.target.metric is None:
            return next((row for row in metrics if row["main"]), None)
        named = {
            row["phase"]: row
            for row in metrics
            if row["metric"].partition(FORMULA)[0] == self.target.metric
        }
        return next((named[phase] for phase in _PHASES if phase in named), None)

    @property
    def worse(self) -> int:
        """1 where a larger value is worse, else -1."""
        return 1 if self.row.get("better") == "lower" else -1


def changes_of(campaign: Campaign, measured: Sequence[Measured]) -> list[Change]:
    """A verdict for each point, corrected for their number."""
    changes = []
    for entry in measured:
        metric = entry.row.get("metric", "")
        margin = campaign.history.margin_of(metric) if campaign.history else MARGIN
        pairs = np.array([entry.base, entry.new]).reshape(2, -1)
        good = np.isfinite(pairs).all(axis=0) & (pairs > 0).all(axis=0)
        base, new = pairs[:, good]
        changes.append(paired(base, new, entry.row.get("better", "lower"), margin))
    return corrected(changes)


def evidence_of(measured: Measured, change: Change, **commits: Any) -> Evidence | None:
    """A point as the history keeps it; None if no pair was measured."""
    head, row = measured.head, measured.row
    if not head or not row:
        return None
    point = {name: head[name] for name in POINT}
    point |= {name: row[name] for name in ("kind", "metric", "phase")}
    return Evidence(
        max(measured.started), **commits, label=measured.target.label, point=point, change=change
    )
