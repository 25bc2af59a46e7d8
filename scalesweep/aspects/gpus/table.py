"""The table ``gpus``: a row per point, where GPUs, their clocks or links differ between points."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scalesweep.table.declared import PointRow, column
from scalesweep.tables.hardware import CORE_CLOCK, GPU_LINKS, GPUS, MEMORY_CLOCK
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.provenance import FACTS, RunFacts, read_facts

_ALIKE = re.compile(r"\d+ x (\d+(?:\.\d+)?)")
SEVERAL = "; or: "  # between what different runs of a point had


@dataclass(frozen=True, kw_only=True)
class PointGpus(PointRow, table="gpus"):
    """GPUs that the runs of a point could see (``CUDA_VISIBLE_DEVICES``), on each host."""

    gpus: str = column("their names")
    memory_clocks: str | None = column(
        "memory clocks that they are set to (MHz; the highest where none is set)", if_known=True
    )
    core_clocks: str | None = column("highest clocks of their cores (MHz)", if_known=True)
    links: str | None = column("links between them, as nvidia-smi topo -m says", if_known=True)


def clock_of(clocks: str | None) -> float | None:
    """The one clock in MHz that all GPUs have; None where they differ or it is not known."""
    match = _ALIKE.fullmatch(clocks or "")
    return float(match[1]) if match else None


def gpu_rows(inputs: TableInputs) -> Iterator[PointGpus]:
    """A row per finished point whose GPUs are known; none where all points have the same."""
    data = inputs.data
    run_ids = data.summary["run_id"].tolist()
    facts = read_facts(run_ids, data.texts(FACTS))
    rows = []
    for point in inputs.points:
        runs = [facts[run_ids[row]] for row in point.rows.tolist() if run_ids[row] in facts]
        if names := _words(runs, GPUS):
            row = PointGpus(
                **point_columns(point),
                gpus=names,
                memory_clocks=_words(runs, MEMORY_CLOCK),
                core_clocks=_words(runs, CORE_CLOCK),
                links=_words(runs, GPU_LINKS),
            )
            rows.append(row)
    if len({(row.gpus, row.memory_clocks, row.core_clocks, row.links) for row in rows}) > 1:
        yield from rows


def _words(runs: list[RunFacts], name: str) -> str | None:
    """A fact of all hosts of the runs, each text once; None where no run has it."""
    texts = {
        words for run in runs for kind, _ in run.hardware for fact, words in kind if fact == name
    }
    return SEVERAL.join(sorted(texts)) or None


MAKERS = (Maker(PointGpus, gpu_rows),)
