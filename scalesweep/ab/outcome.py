"""What pairs of runs have shown: a verdict for each point, as the history keeps it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from scalesweep.ab.pairs import BASE, Pairs
from scalesweep.ab.targets import Target
from scalesweep.analysis.multiple import adjusted_p
from scalesweep.analysis.paired import Paired, paired_verdict, pairs_for
from scalesweep.analysis.stats import CONFIDENCE
from scalesweep.analysis.verdicts import IMPROVEMENT, INCONCLUSIVE, LEVEL, REGRESSION
from scalesweep.config.campaign import Campaign
from scalesweep.config.history_settings import MARGIN
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import finite
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.record import RECORD
from scalesweep.history.series_head import POINT
from scalesweep.history.session import FORMULA, Numbers, head_of, usable_record
from scalesweep.history.settled import SettledPoint
from scalesweep.history.store import METRIC
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
            folders = [pairs.folder / side / target.run_id(n) for n in places]
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


def verdicts_of(campaign: Campaign, measured: Sequence[Measured]) -> list[Paired]:
    """A verdict for each point, corrected for their number (Benjamini and Hochberg 1995)."""
    verdicts = []
    for entry in measured:
        metric = entry.row.get("metric", "")
        margin = campaign.history.margin_of(metric) if campaign.history else MARGIN
        better = entry.row.get("better", "lower")
        verdicts.append(paired_verdict(entry.base, entry.new, better, margin))
    tested = [place for place, entry in enumerate(verdicts) if finite(entry.p)]
    for place, p in zip(tested, adjusted_p([verdicts[at].p for at in tested]), strict=True):
        verdict = verdicts[place]
        if verdict.kind in (REGRESSION, IMPROVEMENT) and p > LEVEL:
            level = 1 - (1 - CONFIDENCE) / len(tested)
            step = abs(math.log(verdict.ratio))
            needed = pairs_for(verdict.noise, step, level, verdict.pairs + 1)
            why = f"one of {len(tested)} points: by chance alone one of them may look like this"
            verdict = replace(verdict, kind=INCONCLUSIVE, reason=why, needed=needed)
        verdicts[place] = replace(verdict, p=p)
    return verdicts


def settled_point(measured: Measured, verdict: Paired) -> SettledPoint | None:
    """A point as the history keeps it; None where no pair was measured."""
    head, row = measured.head, measured.row
    if not head or not row:
        return None
    fields: dict[str, Any] = {name: head[name] for name in (*POINT, "scaling", "label")}
    fields |= {name: row[name] for name in ("metric", "phase", "unit", "better")}
    for name in ("ratio", "low", "high", "p"):
        value = getattr(verdict, name)
        fields[name] = value if finite(value) else None
    fields |= {name: getattr(verdict, name) for name in ("kind", "reason", "pairs", "needed")}
    return SettledPoint(**fields, base=_mean(measured.base), new=_mean(measured.new))


def _mean(values: Sequence[float]) -> float | None:
    good = np.array([value for value in values if finite(value) and value > 0])
    return float(np.exp(np.log(good).mean())) if good.size else None
