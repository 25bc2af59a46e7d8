"""What pairs of runs have shown: a verdict for each point, said, tabulated and kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from scalesweep.ab.commits import say
from scalesweep.ab.pairs import BASE, NEW, Pairs, Target
from scalesweep.analysis.table_io import write_table
from scalesweep.analysis.types import Floats
from scalesweep.config.campaign import Campaign
from scalesweep.config.campaign_keys import MARGIN
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import PHASES as PHASE_WORDS
from scalesweep.core.formatting import counted
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.record import RECORD
from scalesweep.history.page import PAGE, write_history
from scalesweep.history.session import head_of, usable_record
from scalesweep.history.store import SESSIONS, VERDICT, keep_alternate
from scalesweep.judge.change import INCONCLUSIVE, Change, corrected, paired
from scalesweep.judge.metrics import FORMULA, PHASES, metrics_of
from scalesweep.judge.words import sentence, why
from scalesweep.tables.derived import with_derived
from scalesweep.tables.summary import build_summary


@dataclass(frozen=True)
class Measured:
    """What the pairs of a point have shown: ``logs[pair]``, logarithms of new over base.

    ``head``: what a history knows the point and its metric by, empty if nothing was measured;
    ``failure``: the side and the cause of a run that has failed.
    """

    target: Target
    logs: Floats
    head: Mapping[str, Any]
    failure: tuple[str, str] | None = None

    @property
    def worse(self) -> Floats:
        """The logarithms, above 0 if new is worse."""
        return self.logs if self.head.get("better") == "lower" else -self.logs


def read_pairs(pairs: Pairs, target: Target, entry: PlanExperiment) -> Measured:
    """Read all pairs of a point that there are, more than were asked for too. Raises UserError for
    a metric that the runs do not have."""
    places, failure = pairs.done(target), pairs.failure(target)
    if not places:
        return Measured(target, np.empty(0), {}, failure)
    point = target.experiment.benchmark.scaled(target.point)
    ids = [target.run_id(n) for n in places]
    own = cast(PlanExperiment, {**entry, "runs": [{"run_id": i, "point": point} for i in ids]})
    sides = []
    for side in (BASE, NEW):
        records = [pairs.place(target) / side / run_id / RECORD for run_id in ids]
        numbers = metrics_of(with_derived(build_summary(records), [own]), own)
        sides.append(_chosen(numbers, target.metric).set_index("run_id"))
    values = [side["value"].reindex(ids).to_numpy(np.float64) for side in sides]
    if not any(map(len, sides)):
        raise UserError(
            f"{target.label}: its runs have no metric {target.metric or 'to judge'}; name "
            "another with --metric NAME"
        )
    record = usable_record(pairs.place(target) / BASE / ids[0])
    assert record is not None  # its summary has been read
    row = next(side for side in sides if len(side)).iloc[0]
    good = np.isfinite(values).all(axis=0) & (np.array(values) > 0).all(axis=0)
    logs = np.log(values[1][good] / values[0][good])
    return Measured(
        target, logs, head_of(pairs.campaign, entry, record, point) | dict(row), failure
    )


def _chosen(metrics: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    """Of each run the row of the metric that is judged: the main one, unless another is named."""
    if metric is None:
        return metrics[metrics["main"]]
    named = metrics[metrics["metric"].str.partition(FORMULA)[0] == metric]
    order = named["phase"].map(PHASES.index).sort_values().index
    return named.loc[order].drop_duplicates("run_id")


def margin_of(campaign: Campaign) -> float:
    """The relative change of a metric that matters."""
    return campaign.history.margin if campaign.history else MARGIN


def report(
    measured: Sequence[Measured], pairs: Pairs, first_bad: bool = False, fail_on: str | None = None
) -> None:
    """Print the verdicts, a line for each point, corrected for their number; write their table and
    keep them in the history. Raises UserError if no point was measured, and in the end if a run of
    one has failed, or a verdict is ``fail_on``."""
    campaign, subject = pairs.campaign, pairs.repository.subject(pairs.new)
    changes = corrected(
        paired(entry.logs, entry.head.get("better", "lower"), margin_of(campaign))
        for entry in measured
    )
    folder = pairs.folder
    rows = []
    for entry, change in zip(measured, changes, strict=True):
        label, head = entry.target.label, entry.head
        if entry.failure:
            say(f"failed: {label}: {': '.join(entry.failure)}")
        if head:
            say(_line(entry, change))
            rows.append({
                **head, **vars(change), "started": str(head["started"]), "base": pairs.base,
                "new": pairs.new, "subject": subject, "label": label,
                "pairs": entry.logs.size, "first_bad": first_bad,
            })  # fmt: skip
    if not rows:
        raise UserError(f"{folder}: no pair of runs has been finished; call it again to go on")
    table = pd.DataFrame(rows)[VERDICT]
    write_table(table, folder / "verdicts")
    say(f"verdicts: {folder / 'verdicts.csv'}")
    if campaign.history and pairs.base != pairs.new:
        keep_alternate(campaign.history.folder, table)
        if (campaign.history.folder / SESSIONS).is_dir():
            write_history(campaign.history)
            say(f"history: {campaign.history.folder / PAGE}")
    if failed := sum(entry.failure is not None for entry in measured):
        raise UserError(f"{counted(failed, 'point')} failed; the logs are in {folder}")
    if worse := fail_on and sum(change.verdict == fail_on for change in changes):
        raise UserError(counted(worse, fail_on))


def _line(entry: Measured, change: Change) -> str:
    """``regression: steps, ranks 2: step_time +49.8 [48.9, 50.7] % in 5 pairs.``"""
    phase = entry.head["phase"]
    metric = entry.head["metric"] + (f", {PHASE_WORDS[phase]}" if phase != "run" else "")
    text = f"{change.verdict}: {sentence(f'{entry.target.label}: {metric}', change)[:-1]}"
    more = why(change, 0.0) if change.verdict == INCONCLUSIVE else ""
    return f"{text} in {counted(entry.logs.size, 'pair')}. {more}".rstrip()
