"""Whether layouts fit, by the memory model."""

import numpy as np

from scalesweep.analysis.memory_model import MemoryLayout
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.prediction.layouts.memory import MemoryJudge
from scalesweep.analysis.prediction.layouts.runs import Layout, Measured

SHAPE = ModelShape(
    layers=32, width=4096, sequence=4096, parameters=8e9, vocabulary=131072, tied=False,
    dtype="bfloat16", micro_batch=1, accumulation=1,
)  # fmt: skip
NONE = Measured((), np.empty(0), np.empty(0, np.bool_))


def test_layouts_are_judged_by_what_a_rank_holds() -> None:
    judge = MemoryJudge({False: (SHAPE, MemoryLayout()), True: (SHAPE, MemoryLayout(zero=1))}, 8e10,
                        {})  # fmt: skip
    whole = Layout(8, 1, 1, 1, 1, 8)
    split = Layout(8, 8, 2, 1, 1, 8)
    fits = judge(NONE, (whole, split, Layout(64, 1, 1, 64, 1, 8, sharded=True)))
    assert fits == [False, True, False]
    parts = judge.parts(whole)
    assert parts is not None and parts.sum() > 8e9 * 10


def test_a_layout_unlike_any_that_was_run_is_not_judged() -> None:
    judge = MemoryJudge({False: (SHAPE, MemoryLayout())}, 8e10, {})
    assert judge(NONE, (Layout(8, 8, 2, 1, 1, 8, sharded=True),)) == [None]


def test_measured_peaks_change_what_is_said() -> None:
    """Runs that took three times what the model says make a layout that fitted one that may not."""
    layouts = tuple(Layout(dp, 8, 2, mb, 1, 8) for dp in (1, 2, 4, 8) for mb in (1, 2))
    bare = MemoryJudge({False: (SHAPE, MemoryLayout())}, 2.4e10, {})
    assert bare(NONE, layouts[:1]) == [True]
    sizes = [
        float(parts.sum(axis=1).max()) for x in layouts if (parts := bare.parts(x)) is not None
    ]
    peaks = {layout: 3 * size for layout, size in zip(layouts, sizes, strict=True)}
    judge = MemoryJudge(bare.like, bare.device, peaks)
    known = Measured(layouts, np.ones(len(layouts)), np.zeros(len(layouts), np.bool_))
    assert judge(known, layouts[:1]) != [True]
