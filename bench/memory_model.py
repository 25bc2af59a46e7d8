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

    MEMORY_TABLE=FILE python -m bench.memory_model [--json FILE]
"""

import argparse
import csv
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bench.lib.pairs import figure, write_json
from scalesweep.analysis.memory_fit import FITS, UNCERTAIN, MemoryFit, fit_memory
from scalesweep.analysis.memory_model import (
    EMPTY_STAGE,
    FEW_PASSES,
    MemoryLayout,
    obstacle,
    rank_bytes,
)
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.types import Floats
from scalesweep.planning.plan_text import aligned

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


@dataclass(frozen=True)
class Called:
    """How "fits" was called for rows beyond ``NEAR``: by memory alone (``memory``), and where what
    will not start is called failing too (``both``), as shares; by the latter, failures called
    running (``fitting``) and runs called failing (``failing``); of all rows the share of likely
    verdicts (``likely``, by memory alone) and how many of these are right (``sure``)."""

    count: int
    memory: float
    both: float
    fitting: int
    failing: int
    likely: float
    sure: float


def judged(fit: MemoryFit, rows: Sequence[Row]) -> Called:
    """How a fit calls rows."""
    share = np.array([fit.needed(row.parts) for row in rows]) * fit.fragments / DEVICE
    ran = np.array([row.ran for row in rows])
    starts = np.array([not row.obstacle for row in rows])
    far = np.abs(share - 1) > NEAR
    verdicts = np.array([fit.verdict(row.parts, DEVICE) for row in rows])
    likely = verdicts != UNCERTAIN
    runs = (share < 1) & starts
    return Called(
        int(far.sum()), float(((share < 1) == ran)[far].mean()), float((runs == ran)[far].mean()),
        int((runs & ~ran & far).sum()), int((~runs & ran & far).sum()), float(likely.mean()),
        float(((verdicts == FITS) == ran)[likely].mean()),
    )  # fmt: skip


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


def main() -> None:
    """Fit and ask every split, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    file = os.environ.get("MEMORY_TABLE")
    if not file:
        print("skipped: MEMORY_TABLE names no table (a CSV file; see bench/memory_model.py)")
        sys.exit(0)
    rows = read_rows(Path(file))
    failed = [row for row in rows if not row.ran]
    ran = [row for row in rows if row.ran]
    other = {row for row in failed if any(map(row.needs_no_more_than, ran))}
    print(f"{len(rows):,} rows, {len(failed):,} failed; {len(other):,} of these not for memory (a "
          "layout that needs no less ran)")  # fmt: skip
    for why in (EMPTY_STAGE, FEW_PASSES):
        there = [row for row in rows if row.obstacle == why]
        print(f"{why}: {sum(not row.ran for row in there):,} failed, "
              f"{sum(row.ran for row in there):,} ran")  # fmt: skip
    head: tuple[str, ...] = (
        *("fitted, asked", "constants", "spread", "error", "90 % within", "memory alone"),
        *("and what starts", "failed, called running", "of these not memory"),
        *("ran, called failing", "without not memory", "likely: share, right"),
    )
    table: list[tuple[str, ...]] = [head]
    figures = []
    for name, fitted, asked in splits(rows):
        fit = fit_memory([(r.parts, r.peak) for r in fitted if r.ran], of="first")
        logs = np.log([r.peak / fit.needed(r.parts, "first") for r in asked if r.ran])
        every = judged(fit, asked)
        memory = judged(fit, [row for row in asked if row not in other])
        can_be = judged(fit, [r for r in asked if r not in other and not r.obstacle])
        table.append(
            (
                name,
                f"{fit.states:.2f} {fit.activations:.2f} {fit.logits:.2f} {fit.overhead / 1e9:.2f}",
                f"{fit.spread:.2f}",
                f"{np.median(np.abs(logs)):.1%}",
                f"{np.quantile(np.abs(logs), 0.9):.1%}",
                f"{every.memory:.1%} of {every.count:,}",
                f"{every.both:.1%}",
                f"{every.fitting:,}",
                f"{every.fitting - memory.fitting:,}",
                f"{every.failing:,}",
                f"{memory.both:.1%} of {memory.count:,}",
                f"{can_be.likely:.1%} {can_be.sure:.1%}",
            )
        )
        figures += [
            figure(f"memory, {name}: called right, {how}", value, "", bound, "higher")
            for how, value, bound in (
                ("all rows, memory alone", every.memory, None),
                ("all rows, with what will not start", every.both, RIGHT),
                ("without failures that are not memory", memory.both, RIGHT),
            )
        ]
    print("\n".join(aligned(table, left={0, 1})))
    write_json({"figures": figures}, args.json)


if __name__ == "__main__":
    main()
