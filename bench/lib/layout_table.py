"""A table of a made-up sweep of layouts, with the columns of the Ultra-Scale Playbook's.

``resources/maps/ultrascale_playbook.yaml`` reads it. Times and memory are those of
``bench.lib.layout_truth``; no two rows are alike.
"""

import csv
import io

import numpy as np

from bench.lib.layout_truth import (
    BATCH,
    DEVICE,
    PER_NODE,
    SEQUENCE,
    bytes_of,
    draw_program,
    layouts_on,
    seconds_of,
)

NODES = (1, 2, 4, 8, 16, 32, 64)
PEAK = 989.5e12  # FLOP/s of an H100 SXM in bfloat16
COLUMNS = (
    "model", "nodes", "dp", "tp", "pp", "zero", "mbs", "gradacc", "gbs", "status", "mfu_pct",
    "tok_s_gpu", "tok_s", "gpu_memory_gb",
)  # fmt: skip


def layout_table(rows: int, seed: int = 29) -> str:
    """CSV of so many layouts, of as many models as that takes; some do not fit."""
    random = np.random.default_rng(seed)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    written, model = 0, 0
    while written < rows:
        program = draw_program(random)
        model += 1
        layouts = [(nodes, layout) for nodes in NODES for layout in layouts_on(program, nodes)]
        for place in random.permutation(len(layouts))[: rows - written]:
            nodes, layout = layouts[place]
            known = [
                f"model {model}", nodes, layout.dp, layout.tp, layout.pp, int(layout.sharded),
                layout.micro_batch, layout.accumulation, BATCH,
            ]  # fmt: skip
            held = bytes_of(program, layout)
            if held > DEVICE:
                table.writerow([*known, "failed", "", "", "", ""])
                continue
            noise = float(np.exp(random.normal(0, program.scatter)))
            seconds = seconds_of(program, layout) * noise
            ranks = nodes * PER_NODE
            rate = BATCH * SEQUENCE / seconds
            mfu = 100 * program.flop * BATCH / seconds / ranks / PEAK
            numbers = (
                round(mfu, 2),
                round(rate / ranks, 1),
                round(rate, 1),
                round(held / 2**30, 1),
            )
            table.writerow([*known, "ok", *numbers])
        written += min(len(layouts), rows - written)
    return text.getvalue()
