"""Whether layouts fit into memory, by the memory model with constants that measured peaks give."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from scalesweep.analysis.memory_fit import FITS, TOO_LARGE, fit_memory
from scalesweep.analysis.memory_model import MemoryLayout, obstacle, rank_bytes
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.prediction.layouts.runs import Layout, Measured
from scalesweep.analysis.types import Floats


@dataclass(frozen=True, eq=False)
class MemoryJudge:
    """Says of layouts of one model whether they fit; what a layout is not known to be judged by
    is taken from one that was run.

    ``like``: shape and layout of a run that was sharded, and of one that was not; ``device``: bytes
    of a rank's; ``peaks``: bytes of runs; ``failed``: layouts of which it is stated that they ran
    out of memory; ``rank``: which rank peaks are of (``MemoryFit.needed``).
    """

    like: Mapping[bool, tuple[ModelShape, MemoryLayout]]
    device: float
    peaks: Mapping[Layout, float]
    failed: frozenset[Layout] = frozenset()
    rank: str = "most"
    _parts: dict[Layout, Floats | None] = field(default_factory=dict)

    def __call__(self, known: Measured, layouts: tuple[Layout, ...]) -> list[bool | None]:
        """Whether each fits by the peaks of the known runs; None where that is not likely either
        way."""
        ran = [x for x, ran in zip(known.layouts, known.ran, strict=True) if ran]
        there = [(parts, self.peaks[x]) for x in ran
                 if x in self.peaks and (parts := self.parts(x)) is not None]  # fmt: skip
        failed = [(parts, self.device) for x in known.layouts
                  if x in self.failed and (parts := self.parts(x)) is not None]  # fmt: skip
        fit = fit_memory(there, failed, [self.device] * len(there), self.rank)
        fits: list[bool | None] = []
        for layout in layouts:
            parts = self.parts(layout)
            if parts is None:
                fits.append(None)
                continue
            verdict = fit.verdict(parts, self.device)
            fits.append({FITS: True, TOO_LARGE: False}.get(verdict))
        return fits

    def parts(self, layout: Layout) -> Floats | None:
        """Bytes of a layout by stage and part; None where no run was sharded as it is."""
        if layout not in self._parts:
            self._parts[layout] = self._of(layout)
        return self._parts[layout]

    def obstacle(self, layout: Layout) -> str:
        """What keeps a layout from starting whatever memory there is; empty where nothing is known
        or no run was sharded as it is."""
        known = self._like(layout)
        return obstacle(*known) if known else ""

    def _of(self, layout: Layout) -> Floats | None:
        known = self._like(layout)
        return np.asarray(rank_bytes(*known), np.float64) if known else None

    def _like(self, layout: Layout) -> tuple[ModelShape, MemoryLayout] | None:
        """Shape and layout by which a layout is judged."""
        if layout.sharded not in self.like:
            return None
        shape, memory = self.like[layout.sharded]
        return (
            replace(
                shape, micro_batch=layout.micro_batch, accumulation=layout.accumulation,
                global_batch=layout.global_batch,
            ),
            replace(
                memory, shards=layout.dp, tp=layout.tp, pp=layout.pp, cp=layout.cp,
                passes=layout.accumulation,
            ),
        )  # fmt: skip
