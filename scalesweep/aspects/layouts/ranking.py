"""A ranking of the layouts at ranks at which none was run (docs/methods/layout_prediction.md)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scalesweep.analysis.layout_cost import (
    TRIALS,
    Layout,
    Measured,
    expected_s,
    layouts_like,
    refusal,
    rolled,
)
from scalesweep.analysis.memory_model import (
    TOO_LARGE,
    MemoryLayout,
    fit_memory,
    obstacle,
    rank_bytes,
)
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.aspects.layouts.table import LayoutStudy, study_of
from scalesweep.config.shapes import value_at
from scalesweep.core.formatting import number
from scalesweep.planning.plan_text import aligned
from scalesweep.planning.planned_shapes import memory_layout, planned, planned_shape
from scalesweep.tables.comparisons import main_measures
from scalesweep.tables.peaks import peak_bytes, peak_of
from scalesweep.tables.points import ExperimentData, Measure

# Parameters that say whether what a rank holds is split over its replicas, if the benchmark does
# not (``memory.zero``); and ``dp_shard``.
SHARDING = ("zero", "zero_stage", "zero1")
PER_NODE = 8  # ranks of a node that is not known
SHOWN = 10
# Says of a layout why it cannot run; empty if nothing does.
Bar = Callable[[Layout], str]


def ranking_texts(data: ExperimentData, counts: Sequence[int]) -> list[str]:
    """The layouts that counts allow, the fastest first, of each thing that is computed; empty if an
    experiment is no study of layouts, or micro-batches and accumulation are not known."""
    study = study_of(data.experiment)
    rates = [m for m in main_measures(data) if data.quantities[m[0]].unit.endswith("/s")]
    measure = next((m for m in rates if m[1] != "init"), None)
    if study is None or measure is None:
        return []
    name, runs = data.experiment["name"], _runs(data, study, measure)
    quantity, texts = data.quantities[measure[0]], []
    for setting, measured in runs.items():
        bar = memory_bar(data, study, setting)
        about, per_rank = f"{name}, {setting}" if setting else name, quantity.scope == "rank"
        texts += [
            f"{about}: layouts at {ranks:,} ranks by {measure[0]}\n"
            + ranking_text(measured, ranks, quantity.unit, per_rank, bar)
            for ranks in counts
        ]
    return texts


def ranking_text(measured: Measured, ranks: int, unit: str, per_rank: bool, bar: Bar | None) -> str:
    """The ranking at one count, without layouts that are said not to run (``bar``)."""
    if why := refusal(measured, ranks):
        return f"  refused: {why}"
    barred: Counter[str] = Counter()
    fitting = []
    for layout in layouts_like(measured, ranks):
        why = "more stages than layers" if 1 < layout.layers < layout.pp else ""
        if why := why or (bar(layout) if bar else ""):
            barred[why] += 1
        else:
            fitting.append(layout)
    left_out = [f"left out: {n:,} layouts: {why}" for why, n in barred.items()]
    if not fitting:
        return "\n".join([f"  refused: no further layout of {ranks:,} ranks can run", *left_out])
    batches = np.array([layout.global_batch for layout in fitting])
    rates = batches / expected_s(measured, fitting) / (ranks if per_rank else 1)
    order = np.argsort(-rates, kind="stable")
    rows = [(fitting[i].words, f"{number(rates[i])} {unit}") for i in order[:SHOWN]]
    lines = aligned([("layout", "expected"), *rows], left={0, 1})
    lines += [f"and {len(order) - SHOWN:,} slower ones"] * (len(order) > SHOWN)
    lines += left_out
    if bar is None:
        lines.append("whether they fit into memory is not known: the benchmark declares no memory")
    if last := rolled(measured):
        lines.append(
            f"the last such ranking, of {last.ranks:,} ranks from fewer: steps were "
            f"{100 * last.error:.0f} % off in the median, and the best of its first {TRIALS} was "
            f"{100 * last.loss:.0f} % slower than the best there"
        )
    return "\n".join(lines)


def _runs(
    data: ExperimentData, study: LayoutStudy, measure: Measure
) -> dict[str, dict[Layout, float]]:
    """By what is computed the layouts that ran and samples of a step over the rate of all ranks; of
    those that differ in other choices the fastest."""
    runs: dict[str, dict[Layout, float]] = {}
    of_a_rank = data.quantities[measure[0]].scope == "rank"
    sources = [point.source for point in data.points() if point.source]
    source = "measured" if "measured" in sources else next(iter(sources), None)
    for point in data.points():
        rates, layout = data.repeats(point, measure), layout_at(study, point.values)
        if layout and rates.size and rates.min() > 0 and point.source == source:
            rate = float(rates.mean()) * (layout.ranks if of_a_rank else 1)
            known = runs.setdefault(study.setting_text(point.values), {})
            known[layout] = min(layout.global_batch / rate, known.get(layout, np.inf))
    return runs


def layout_at(study: LayoutStudy, values: Mapping[str, Any]) -> Layout | None:
    """The layout of a point; None where part of it is not known."""
    point, mesh = study.at(values), study.mesh_at(values)
    shape, memory = planned_shape(study.entry, point), planned(study.entry).memory
    if not mesh or shape is None or not shape.micro_batch or not shape.accumulation:
        return None
    if shape.layers is None or shape.width is None:
        return None
    replicas = mesh.get("dp", mesh.get("dp_replicate", 1) * mesh.get("dp_shard", 1))
    sharded = mesh.get("dp_shard", 1) > 1 or any(point.get(name) for name in SHARDING)
    if memory is not None and memory.zero:
        sharded = bool(value_at(memory.zero, point))
    ranks, nodes = int(point["ranks"]), point.get("nodes")
    # One rank for each node is what a source gives that says nothing of nodes.
    per_node = ranks // nodes if nodes else int(point.get("ranks_per_node") or 1)
    weights = float(shape.parameters or 0.0)
    # PaLM's convention (arXiv 2204.02311): only the proportion of layouts to each other matters.
    flop = (6 * weights + 12 * shape.layers * shape.width * shape.sequence) * shape.sequence
    return Layout(
        dp=replicas, tp=mesh.get("tp", 1), pp=mesh.get("pp", 1), cp=mesh.get("cp", 1),
        ep=mesh.get("ep", 1), micro_batch=shape.micro_batch, accumulation=shape.accumulation,
        per_node=per_node if per_node > 1 or nodes else PER_NODE, sharded=sharded,
        work=flop if weights else 1.0, layers=float(shape.layers),
        traffic=float(shape.sequence * shape.width), weights=weights or 1.0,
    )  # fmt: skip


def memory_bar(data: ExperimentData, study: LayoutStudy, setting: str) -> Bar | None:
    """What the memory model says of layouts, with constants that the peaks of those that compute
    the same give; None if the benchmark declares no memory."""
    entry, shapes = data.experiment, planned(data.experiment)
    peaks = peak_bytes(data, shapes.memory) if shapes.memory else None
    like: dict[bool, tuple[ModelShape, MemoryLayout, float]] = {}
    measured = []
    for point in data.points():
        layout = layout_at(study, point.values)
        known = memory_layout(shapes, study.at(point.values), entry["benchmark"])
        same = study.setting_text(point.values) == setting
        if not same or layout is None or not isinstance(known, tuple) or known[2] is None:
            continue
        like.setdefault(layout.sharded, (*known[:2], known[2]))
        if (peak := peak_of(peaks, point)) is not None:
            measured.append((rank_bytes(*known[:2]), peak))
    if shapes.memory is None or not like:
        return None
    fit = fit_memory(measured, shapes.memory.rank)

    def bar(layout: Layout) -> str:
        if layout.sharded not in like:
            return ""
        shape, split, device = like[layout.sharded]
        shape = replace(
            shape, micro_batch=layout.micro_batch, accumulation=layout.accumulation,
            global_batch=layout.global_batch,
        )  # fmt: skip
        split = replace(
            split, shards=layout.dp, tp=layout.tp, pp=layout.pp, cp=layout.cp,
            passes=layout.accumulation,
        )  # fmt: skip
        large = fit.verdict(rank_bytes(shape, split), device) == TOO_LARGE
        return obstacle(shape, split) or ("expected not to fit into memory" if large else "")

    return bar
