"""The accounts of an experiment's runs: where the time of their steps went."""

import json
from collections.abc import Mapping

from scalesweep.analysis.step_account import FINEST, StepAccount
from scalesweep.tables.epoch_curves import ACCOUNT
from scalesweep.tables.points import ExperimentData, Point


def stated_accounts(data: ExperimentData, name: str = ACCOUNT) -> dict[int, StepAccount]:
    """The accounts that the records of an experiment's runs hold, by row of the summary.

    ``name``: the column, ACCOUNT or FIRST_EPOCH.
    """
    texts = data.texts(name)
    return {
        row: StepAccount.from_json(json.loads(texts[row]))
        for row in data.row_of.values()
        if texts[row] is not None
    }


def finest_of(point: Point, every: Mapping[int, StepAccount]) -> dict[int, StepAccount]:
    """Those of a point's runs among ``every``, by row; of the finest form where they differ."""
    accounts = {row: every[row] for row in point.rows.tolist() if row in every}
    forms = {account.form for account in accounts.values()}
    finest = min(forms, key=FINEST.index, default=None)
    return {row: account for row, account in accounts.items() if account.form == finest}
