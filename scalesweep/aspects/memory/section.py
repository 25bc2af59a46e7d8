"""The section of the page on memory."""

import math

from scalesweep.aspects.memory.table import GIB, WRONG, MemoryRow
from scalesweep.core.formatting import number, percent
from scalesweep.experiment.points_table import Cell, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section

_NOTE = (
    "Predicted: what the rank that needs the most memory takes, by a model fitted to all other "
    "points (docs/methods/memory.md). Measured / expected: the measured peak over what the model "
    "expects of the rank that was measured."
)


def memory_table(results: ExperimentResults, limit: int) -> Table | None:
    """Predicted and measured bytes of every point; None where there are none."""
    columns = [
        ("Weights, optimiser [GiB]", "weights", lambda row: _gib(row.weights + row.optimizer)),
        ("Gradients [GiB]", "gradients", lambda row: _gib(row.gradients)),
        ("Activations [GiB]", "activations", lambda row: _gib(row.activations)),
        ("Logits [GiB]", "logits", lambda row: _gib(row.logits)),
        ("Predicted [GiB]", "needed", lambda row: _gib(row.needed)),
        ("Measured [GiB]", "measured", lambda row: _gib(row.measured)),
        ("Measured / expected", "ratio", lambda row: number(row.ratio)),
        ("Predicted / device", "device", lambda row: percent(row.device and _share(row))),
        ("Verdict", "verdict", lambda row: _NO_START if row.obstacle else row.verdict or "–"),
        ("Outcome", "outcome", lambda row: Cell(row.outcome or "–", row.called == WRONG)),
    ]  # fmt: skip
    return declared_table(results, results.of(MemoryRow), columns, limit)


_NO_START = "will not start"


def _share(row: MemoryRow) -> float:
    return row.needed / (row.device or math.inf)


def _gib(value: float | None) -> str:
    return "–" if value is None else number(value / GIB)


SECTION = Section("Memory", memory_table, lambda _results: [_NOTE])
