"""Which runs train, and which of them say what energy they took."""

import json
from typing import Any

from scalesweep.analysis.metrics import ENERGY
from scalesweep.tables.points import ExperimentData


def texts_of(data: ExperimentData, name: str) -> dict[int, Any]:
    """What a bookkeeping column says of the experiment's runs, by row of the summary."""
    texts = data.texts(name)
    return {row: json.loads(texts[row]) for row in data.row_of.values() if texts[row] is not None}


def trains(data: ExperimentData) -> bool:
    """Whether runs keep a loss, an accuracy or the time of training."""
    metrics = {metric for metric, _ in data.measures}
    return bool(texts_of(data, "_epochs")) or bool(metrics & {"training_time", "time_to_target"})


def knows_energy(data: ExperimentData) -> bool:
    """Whether runs say what energy they took."""
    metrics = {metric for metric, _ in data.measures}
    return bool(metrics & set(ENERGY)) or bool(texts_of(data, "_energy"))
