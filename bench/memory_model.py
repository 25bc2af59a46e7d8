"""Whether the memory model tells which layouts fit, on a published sweep that the user names.

``MEMORY_TABLE`` is a CSV file with a row per run of nanotron's sweep for the Ultra-Scale Playbook
(vinjn/nanotron-ultrascale-playbook 924e4d0b, assets/data/benchmarks/benchmarks_interactive.html):
``model,nodes,dp,tp,pp,zero,mbs,gradacc,status,gpu_memory_gb``, status ``ok`` or not, memory in GiB
(rank 0's, of the first stage). Shapes are those of nanotron's scripts/scaling_benchmarks.py:
attention of as many keys as queries, 131,072 tokens, sequences of 4,096, tied weights where the
wide layers are below 10,000; they give the operations per token that the playbook's MFU implies.

Printed per split (what is fitted, what is asked): how near predicted peaks are, and how often
"fits" is right for rows that are not within 10 % of the device. Why a row failed the source does
not say, so this is counted over all rows by memory alone; where a layout that nanotron cannot start
is called failing too (its 1F1B takes stages - 1 micro-batches; a stage that gets no part of the
model); and without failures that cannot be memory, because a layout that needs no less ran. The fit
sees measured peaks only.

    MEMORY_TABLE=FILE python -m bench.memory_model
"""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.pairs import figure, run
from scalesweep.analysis.memory_fit import MemoryFit, fit_memory
from scalesweep.analysis.memory_model import (
    MemoryLayout,
    obstacle,
    rank_bytes,
)
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.types import Floats

# Layers, width, heads, width of the wide layers; tied.
SHAPES = {
    "1B": (16, 2048, 32, 8192, True),
    "3B": (28, 3072, 32, 8192, True),
    "8B": (32, 4096, 32, 14336, False),
    "80B": (80, 8192, 64, 28672, False),
}
VOCABULARY, SEQUENCE = 131072, 4096
# Sums in float32, beside the gradients of a whole backward pass in bfloat16, which are added to
# them when it is over (optim/gradient_accumulator.py).
GRADIENT_BYTES = 6.0
COLUMNS = {
    **{name: name for name in ("nodes", "dp", "tp", "pp", "zero")},
    "micro_batch": "mbs",
    "passes": "gradacc",
}
GIB = 2**30
DEVICE = 80e9  # bytes of an H100
NEAR = 0.1  # rows so near to the device are not counted
RIGHT = 0.95
SMALL = 16  # nodes


@dataclass(frozen=True)
class Row:
    """A run of the sweep."""

    model: str
    nodes: int
    dp: int
    tp: int
    pp: int
    zero: int
    micro_batch: int
    passes: int
    ran: bool
    peak: float  # bytes, NaN where it failed

    @property
    def shape(self) -> ModelShape:
        """The model and its batch."""
        layers, width, heads, wide, tied = SHAPES[self.model]
        return ModelShape(
            layers=layers, width=width, sequence=SEQUENCE, heads=heads, ffn_width=wide, gated=True,
            vocabulary=VOCABULARY, tied=tied, micro_batch=self.micro_batch,
            accumulation=self.passes, dtype="bfloat16",
        )  # fmt: skip

    @property
    def layout(self) -> MemoryLayout:
        """How its ranks share a step."""
        return MemoryLayout(
            shards=self.dp, zero=self.zero, tp=self.tp, pp=self.pp, passes=self.passes,
            stages="balanced", least_passes="stages - 1", gradient_bytes=GRADIENT_BYTES,
        )  # fmt: skip

    @cached_property
    def parts(self) -> Floats:
        """Bytes by stage and part."""
        return rank_bytes(self.shape, self.layout)

    @cached_property
    def obstacle(self) -> str:
        """What keeps the run from starting whatever memory there is."""
        return obstacle(self.shape, self.layout)

    def needs_no_more_than(self, other: "Row") -> bool:
        """Whether it cannot need more than another run in any part."""
        return (
            (self.model, self.tp, self.pp) == (other.model, other.tp, other.pp)
            and self.micro_batch <= other.micro_batch
            and min(self.passes, self.pp + 1) <= min(other.passes, self.pp + 1)
            and (other.zero == 0 or (self.zero == 1 and other.dp <= self.dp))
        )


def read_rows(path: Path) -> list[Row]:
    """The rows of a table, equal ones once. Raises SystemExit with a line for a faulty one."""
    rows: dict[Row, None] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for place, cells in enumerate(csv.DictReader(lines), start=2):
            try:
                rows[row_of(cells)] = None
            except (KeyError, ValueError) as error:
                raise SystemExit(f"{path}:{place}: {error}") from None
    return list(rows)


def row_of(cells: Mapping[str, str]) -> Row:
    """The row of a line of the table. Raises KeyError and ValueError for a faulty one."""
    ran = cells["status"] == "ok"
    counts = {name: int(cells[of]) for name, of in COLUMNS.items()}
    peak = float(cells["gpu_memory_gb"]) * GIB if ran else float("nan")
    if cells["model"] not in SHAPES:
        raise ValueError(f"model {cells['model']!r} is none of {', '.join(SHAPES)}")
    return Row(model=cells["model"], ran=ran, peak=peak, **counts)


def judged(fit: MemoryFit, rows: Sequence[Row]) -> tuple[float, float]:
    """Share of the rows beyond ``NEAR`` that are called right: by memory alone, and if what will
    not start is called failing too."""
    share = np.array([fit.needed(row.parts) for row in rows]) * fit.fragments / DEVICE
    ran = np.array([row.ran for row in rows])
    starts = np.array([not row.obstacle for row in rows])
    far = np.abs(share - 1) > NEAR
    by_memory, both = (share < 1) == ran, ((share < 1) & starts) == ran
    return float(by_memory[far].mean()), float(both[far].mean())


def splits(rows: Sequence[Row]) -> list[tuple[str, list[Row], list[Row]]]:
    """What is fitted and what is asked: nothing; all; small scales; each model without the rest."""
    models = list(dict.fromkeys(row.model for row in rows))
    result: list[tuple[str, list[Row], list[Row]]] = [
        ("defaults, all rows", [], list(rows)),
        ("fitted to all rows, the same", list(rows), list(rows)),
    ]
    small = [row for row in rows if row.nodes <= SMALL]
    if large := [row for row in rows if row.nodes > SMALL]:
        result.append((f"<= {SMALL} nodes, larger ones", small, large))
    for model in models if len(models) > 1 else ():
        others = [row for row in rows if row.model != model]
        result.append((f"without {model}, {model}", others, [r for r in rows if r.model == model]))
    return result


def measure() -> Iterator[dict[str, Any]]:
    """Fit and ask every split; nothing if ``MEMORY_TABLE`` names no table."""
    file = os.environ.get("MEMORY_TABLE")
    if not file:
        print("skipped: MEMORY_TABLE names no table (a CSV file; see bench/memory_model.py)")
        return
    rows = read_rows(Path(file))
    failed, ran = ([row for row in rows if row.ran is ran] for ran in (False, True))
    other = {row for row in failed if any(map(row.needs_no_more_than, ran))}
    for name, fitted, asked in splits(rows):
        fit = fit_memory([(r.parts, r.peak) for r in fitted if r.ran], of="first")
        logs = np.log([r.peak / fit.needed(r.parts, "first") for r in asked if r.ran])
        yield figure(f"{name}: median error", 100 * float(np.median(np.abs(logs))), "%")
        every = judged(fit, asked)
        memory = judged(fit, [row for row in asked if row not in other])
        yield figure(f"{name}: called right by memory alone", every[0], "")
        words = f"{name}: called right, with what will not start"
        yield figure(words, every[1], "", RIGHT, "higher")
        words = f"{name}: called right, without failures that are not memory"
        yield figure(words, memory[1], "", RIGHT, "higher")


if __name__ == "__main__":
    run(measure)
