"""The layouts of an experiment whose benchmark declares a mesh and its transformer's batch.

What was measured of each, and the ranking of those at ranks at which none was run.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scalesweep.analysis.factors import determined, planned_points
from scalesweep.analysis.layout_cost import (
    Layout,
    Measured,
    Rolled,
    layouts_like,
    measured_of,
    ranking,
    refusal,
    rolled,
)
from scalesweep.analysis.memory_fit import TOO_LARGE, fit_memory
from scalesweep.analysis.memory_model import MemoryLayout, obstacle, rank_bytes
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.config.memory import memory_layout
from scalesweep.config.shapes import Memory, planned, planned_mesh, planned_shape, value_at
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.tables.comparisons import main_measures
from scalesweep.tables.peaks import peak_bytes
from scalesweep.tables.points import ExperimentData, Measure

# Parameters that say whether what a rank holds is split over its replicas, if the benchmark does
# not (``memory.zero``); and ``dp_shard``.
SHARDING = ("zero", "zero_stage", "zero1")
ZERO = "zero"
PER_NODE = 8  # ranks of a node that is not known
_BATCH = ("micro_batch", "accumulation", "global_batch")
NEEDED = (
    "a ranking of layouts takes the benchmark's mesh, and of its transformer micro_batch and "
    "accumulation"
)
# Says of a layout why it cannot run; empty if nothing does.
Bar = Callable[[Layout], str]


@dataclass(frozen=True, eq=False)
class LayoutStudy:
    """The layouts of one model, source and global batch.

    ``words`` tell it from others. ``measured``: seconds are samples of a step over the rate of all
    ranks; rates are of ``metric``, in ``unit``, of each rank if ``of_a_rank``. ``bar``: by the
    memory model; None if the benchmark declares none.
    """

    words: str
    metric: str
    unit: str
    of_a_rank: bool
    measured: Measured
    bar: Bar | None = None


@dataclass(frozen=True, eq=False)
class Ranking:
    """The layouts at so many ranks with their expected rates, the highest first; how many of others
    were left out and why; how the last such forecast did; or why there is none (``refused``)."""

    layouts: Sequence[tuple[Layout, float]] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    last: Rolled | None = None
    refused: str = ""


def rank_layouts(study: LayoutStudy, ranks: int) -> Ranking:
    """Rank the layouts that so many ranks allow and that are not said not to fit into memory."""
    if why := refusal(study.measured, ranks):
        return Ranking(refused=why)
    left: Counter[str] = Counter()
    fitting = []
    for layout in layouts_like(study.measured, ranks):
        why = "more stages than layers" if 1 < layout.layers < layout.pp else ""
        if why := why or (study.bar(layout) if study.bar else ""):
            left[why] += 1
        else:
            fitting.append(layout)
    if not fitting:
        words = "; ".join(f"{n:,}: {why}" for why, n in left.items())
        return Ranking(refused=f"no further layout of {ranks:,} ranks can run ({words or 'none'})")
    rates = [
        (layout, layout.global_batch / seconds / (layout.ranks if study.of_a_rank else 1))
        for layout, seconds in ranking(study.measured, fitting)
    ]
    return Ranking(rates, left, rolled(study.measured))


def is_layout_study(entry: PlanExperiment) -> bool:
    """Whether the points of an experiment split equal ranks in several ways."""
    if "mesh" not in entry or entry["control"]:
        return False
    splits: dict[Any, set[tuple[int, ...]]] = {}
    for point in planned_points(entry):
        whole = parameters_at(entry, point)
        if mesh := planned_mesh(entry, whole):
            splits.setdefault(whole["ranks"], set()).add(tuple(mesh.values()))
    return any(len(of) > 1 for of in splits.values())


def layout_from(
    mesh: Mapping[str, int] | None,
    shape: ModelShape | None,
    memory: Memory | None,
    point: Mapping[str, Any],
) -> Layout | None:
    """The layout of a point with all its parameters; None where part of it is not known.

    ``memory``: what the benchmark says of it, by which a layout is sharded or not.
    """
    if mesh is None or shape is None or not shape.micro_batch or not shape.accumulation:
        return None
    if shape.layers is None or shape.width is None:
        return None
    replicas = mesh.get("dp", mesh.get("dp_replicate", 1) * mesh.get("dp_shard", 1))
    sharded = mesh.get("dp_shard", 1) > 1 or any(point.get(name) for name in SHARDING)
    if memory is not None and memory.zero:
        sharded = bool(value_at(memory.zero, point))
    weights = float(shape.parameters or 0.0)
    known = weights > 0
    # PaLM's convention (arXiv 2204.02311): only the proportion of layouts to each other matters.
    flop = (6 * weights + 12 * shape.layers * shape.width * shape.sequence) * shape.sequence
    return Layout(
        dp=replicas, tp=mesh.get("tp", 1), pp=mesh.get("pp", 1), cp=mesh.get("cp", 1),
        ep=mesh.get("ep", 1), micro_batch=shape.micro_batch, accumulation=shape.accumulation,
        per_node=_per_node(point), sharded=sharded, work=flop if known else 1.0,
        layers=float(shape.layers), traffic=float(shape.sequence * shape.width),
        weights=weights if known else 1.0,
    )  # fmt: skip


def _per_node(point: Mapping[str, Any]) -> int:
    ranks, nodes = int(point["ranks"]), point.get("nodes")
    if isinstance(nodes, int) and nodes > 0:
        return max(1, ranks // nodes)
    per_node = int(point.get("ranks_per_node") or 1)
    # One rank for each node is what a source gives that says nothing of nodes.
    return per_node if per_node > 1 else PER_NODE


def layout_studies(data: ExperimentData) -> list[LayoutStudy]:
    """The studies of an experiment, in the order of the plan; none if nothing was measured."""
    measure = _rate(data)
    if measure is None or not is_layout_study(data.experiment):
        return []
    quantity, names = data.quantities[measure[0]], study_parameters(data.experiment)
    runs: dict[tuple[Any, ...], list[tuple[Layout, float]]] = {}
    values: dict[tuple[Any, ...], dict[str, Any]] = {}
    for point in data.points():
        rates, layout = data.repeats(point, measure), _layout_at(data.experiment, point.values)
        if layout is None or not rates.size or rates.min() <= 0:
            continue
        key = (point.source, *(text_of(point.values[name]) for name in names))
        values.setdefault(key, {name: point.values[name] for name in names})
        every = rates * (layout.ranks if quantity.scope == "rank" else 1)
        runs.setdefault(key, []).extend((layout, layout.global_batch / rate) for rate in every)
    studies = []
    for key, of in runs.items():
        bar, words = _bar(data, values[key]), [f"{n} {text_of(v)}" for n, v in values[key].items()]
        for batch, measured in _by_batch(of):
            of_batch = [] if batch is None else [f"global batch {batch:,}"]
            studies.append(
                LayoutStudy(
                    ", ".join([*words, *of_batch]), measure[0], quantity.unit,
                    quantity.scope == "rank", measured, bar,
                )
            )  # fmt: skip
    return studies


def _bar(data: ExperimentData, values: Mapping[str, Any]) -> Bar | None:
    """What the memory model says of the layouts of a study, with constants that its peaks give."""
    entry, memory = data.experiment, planned(data.experiment).memory
    peaks = peak_bytes(data, memory) if memory else None
    like: dict[bool, tuple[ModelShape, MemoryLayout, float]] = {}
    measured = []
    for point in data.points():
        layout = _layout_at(entry, point.values)
        if layout is None or any(point.values[n] != v for n, v in values.items()):
            continue
        known = memory_layout(
            planned(entry), parameters_at(entry, point.values), entry["benchmark"]
        )
        if not isinstance(known, tuple) or known[2] is None:
            continue
        like.setdefault(layout.sharded, (*known[:2], known[2]))
        if peaks is not None and point.rows.size and np.isfinite(peaks[point.rows]).all():
            measured.append((rank_bytes(*known[:2]), float(peaks[point.rows].mean())))
    if memory is None or not like:
        return None
    fit = fit_memory(measured, of=memory.rank)

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


def study_parameters(entry: PlanExperiment) -> list[str]:
    """Varying parameters that tell one study from another: neither the layout, nor the batch, nor
    what follows the ranks."""
    points = [parameters_at(entry, point) for point in planned_points(entry)]
    texts = [*entry.get("mesh", {}).values()]
    texts += [text for key, text in entry.get("transformer", {}).items() if key in _BATCH]
    layout = {name for text in texts for name in Expression(text, entry["name"]).names}
    ways = {name: Expression(name, entry["name"]) for name in SHARDING if name in entry["axes"]}
    if ZERO in (of_memory := entry.get("memory", {})):
        ways[ZERO] = Expression(of_memory[ZERO], entry["name"])
    for way in ways.values():
        # A layout is sharded or it is not: sharded in several ways (ZeRO 1 and 3) it is studied
        # in each of them apart.
        if len({text_of(value) for point in points if (value := value_at(way, point))}) < 2:
            layout |= way.names
    layout |= {"ranks", "ranks_per_node", entry["scale"], *entry.get("derived_parameters", {})}
    return [
        name
        for name in entry["axes"]
        if name not in layout and not determined(entry["scale"], name, points)
    ]


def _layout_at(entry: PlanExperiment, values: Mapping[str, Any]) -> Layout | None:
    point = parameters_at(entry, values)
    mesh, shape = planned_mesh(entry, point), planned_shape(entry, point)
    return layout_from(mesh, shape, planned(entry).memory, point)


def _rate(data: ExperimentData) -> Measure | None:
    """The rate that the experiment is about, else the first that it has; in the later epochs where
    it has some."""
    main = main_measures(data)
    order = {"later": 0, "run": 1, "first": 2}
    rates = [
        measure
        for measure in data.measures
        if data.quantities[measure[0]].better == "higher"
        and data.quantities[measure[0]].unit.endswith("/s")
    ]
    return min(rates, key=lambda m: (m not in main, order.get(m[1], 3)), default=None)


def _by_batch(runs: Sequence[tuple[Layout, float]]) -> Iterator[tuple[int | None, Measured]]:
    """The runs of each global batch that was measured at several scales; all of them if none was,
    because the batch grows with the ranks."""
    scales: dict[int, set[int]] = {}
    for layout, _ in runs:
        scales.setdefault(layout.global_batch, set()).add(layout.ranks)
    batches = sorted(batch for batch, ranks in scales.items() if len(ranks) > 1)
    if not batches:
        yield None, measured_of(runs)
    for batch in batches:
        yield batch, measured_of(run for run in runs if run[0].global_batch == batch)
