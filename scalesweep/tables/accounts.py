"""The accounts of a point's runs, of one form."""

import json

from scalesweep.analysis.step_account import StepAccount
from scalesweep.tables.epoch_curves import ACCOUNT
from scalesweep.tables.points import ExperimentData, Point


def accounts_of(data: ExperimentData, point: Point) -> dict[int, StepAccount]:
    """By row of the summary; those of the finer form where they differ."""
    texts = data.texts(ACCOUNT)
    found = {
        row: StepAccount.from_json(json.loads(texts[row]))
        for row in point.rows.tolist()
        if texts[row] is not None
    }
    finest = max((account.form for account in found.values()), default="")
    return {row: account for row, account in found.items() if account.form == finest}
