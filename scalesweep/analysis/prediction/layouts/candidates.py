"""The layouts that a number of ranks allows, by what was measured at others."""

from dataclasses import replace
from itertools import product

from scalesweep.analysis.prediction.layouts.runs import Layout, Measured


def layouts_like(measured: Measured, ranks: int) -> list[Layout]:
    """Every layout of so many ranks with values of tp, pp, cp, ep, sharding and micro-batch that
    were run, and as many replicas as are left; without those that were run.

    The global batch is the measured one, or grows with the ranks as it did.
    """
    seen = measured.layouts
    largest = max(seen, key=lambda layout: layout.ranks)
    batches = {layout.global_batch for layout in seen}
    batch = largest.global_batch
    if len(batches) > 1:
        batch = batch * ranks // largest.ranks
    sizes = [sorted({getattr(x, name) for x in seen}) for name in ("tp", "pp", "cp", "ep")]
    micro_batches = sorted({layout.micro_batch for layout in seen})
    sharded = sorted({layout.sharded for layout in seen})
    run = set(seen)
    made = []
    for tp, pp, cp, ep in product(*sizes):
        dp, rest = divmod(ranks, tp * pp * cp)
        if rest or not dp or (dp * cp) % ep:
            continue
        for micro_batch, split in product(micro_batches, sharded):
            accumulation, rest = divmod(batch, micro_batch * dp)
            if rest or not accumulation:
                continue
            layout = replace(
                largest, dp=dp, tp=tp, pp=pp, cp=cp, ep=ep, sharded=split,
                micro_batch=micro_batch, accumulation=accumulation,
            )  # fmt: skip
            if layout not in run:
                made.append(layout)
    return made
