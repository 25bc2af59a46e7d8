"""The layouts of an experiment whose benchmark declares a mesh and its transformer's batch: what
was measured of each, by which those at other scales are forecast."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.factors import determined, planned_points
from scalesweep.analysis.memory_model import EMPTY_STAGE, MemoryLayout
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.pipeline_stages import EVEN, stages_of
from scalesweep.analysis.prediction.layouts.fits import fits_as_neighbours
from scalesweep.analysis.prediction.layouts.forecast import Fits
from scalesweep.analysis.prediction.layouts.memory import MemoryJudge
from scalesweep.analysis.prediction.layouts.runs import Layout, Measured, measured_of
from scalesweep.config.memory import Memory, planned_memory, planned_memory_layout
from scalesweep.config.mesh import value_at
from scalesweep.config.point_shape import planned_mesh, planned_shape
from scalesweep.core.causes import Cause
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.status import Status
from scalesweep.tables.layout_links import probed_costs
from scalesweep.tables.machine import UNKNOWN, Machine, sending_point
from scalesweep.tables.pairwise import main_measures
from scalesweep.tables.peaks import peak_bytes
from scalesweep.tables.points import ExperimentData, Measure, Point

# Parameters that say whether what a rank holds is split over its replicas, where the benchmark does
# not (``memory.zero``); and ``dp_shard``.
SHARDING = ("zero", "zero_stage", "zero1")
ZERO = "zero"
# Where a source does not say why a run failed, another one of this layout is not worth trying
# either: in published sweeps it is memory nearly always.
OUT_OF_MEMORY = (Cause.OUT_OF_MEMORY, Cause.GPU_OUT_OF_MEMORY)
TOO_LARGE = (*OUT_OF_MEMORY, Cause.NOT_STATED)
# Ranks of a node that is not known.
PER_NODE = 8
MEASURED = "measured"  # source
_BATCH = ("micro_batch", "accumulation", "global_batch")
NEEDED = (
    "a forecast of layouts takes the benchmark's mesh, and of its transformer micro_batch and "
    "accumulation"
)


def empty_stage(layout: Layout) -> str:
    """Why a layout would not start of which nothing but its layers is known: a stage that has no
    block, neither the first nor the last one."""
    known = layout.layers > 1 and not all(
        stage.busy for stage in stages_of(int(layout.layers), layout.pp, EVEN, 1.0, 0.0)
    )
    return EMPTY_STAGE if known else ""


@dataclass(frozen=True, eq=False)
class LayoutStudy:
    """The layouts of one model, source and global batch: ``values`` tell it from others, ``batch``
    is the global batch where that does not grow with the ranks.

    ``measured``: seconds are samples of a step over the rate of all ranks; what was measured is in
    ``unit``, of each rank where ``of_a_rank``. ``fits``: what says whether a layout fits: the
    memory model where the benchmark states what that takes, else the nearest measured layouts;
    ``obstacle``: what keeps one from starting, in words, or nothing.
    """

    values: Mapping[str, Any]
    batch: int | None
    source: str
    measure: Measure
    unit: str
    of_a_rank: bool
    measured: Measured
    fits: Fits
    obstacle: Callable[[Layout], str] = empty_stage

    def rate(self, layout: Layout, seconds: float) -> float:
        """The rate, in ``unit``, of a layout whose steps take so long."""
        return layout.global_batch / seconds / (layout.ranks if self.of_a_rank else 1)

    @property
    def words(self) -> str:
        """What tells it from others."""
        batch = [] if self.batch is None else [f"global batch {self.batch:,}"]
        return ", ".join([*(f"{n} {text_of(v)}" for n, v in self.values.items()), *batch])


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
    if memory is not None and ZERO in memory.fields:
        sharded = bool(value_at(memory.fields[ZERO], point))
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


def layout_studies(data: ExperimentData, machine: Machine = UNKNOWN) -> list[LayoutStudy]:
    """The studies of an experiment, in the order of the plan; none where nothing was measured.

    ``machine``: what probes say of it; only studies that were measured on it heed that.
    """
    entry = data.experiment
    measure = _rate(data)
    if measure is None or not is_layout_study(entry):
        return []
    reader = _reader(entry)
    quantity = data.quantities[measure[0]]
    names = study_parameters(entry)
    runs: dict[tuple[Any, ...], list[tuple[Layout, float | None, bool]]] = {}
    values: dict[tuple[Any, ...], dict[str, Any]] = {}
    probed: dict[tuple[Any, ...], Mapping[str, float]] = {}
    for point in data.points():
        rates = data.repeats(point, measure)
        layout = reader(point.values)
        if layout is None or not rates.size or rates.min() <= 0:
            continue
        every = layout.ranks if quantity.scope == "rank" else 1
        key = (point.source, *(text_of(point.values[name]) for name in names))
        values.setdefault(key, {name: point.values[name] for name in names})
        if key not in probed:
            probed[key] = _probed(data, machine, point, layout, quantity.unit)
        for rate in rates.tolist():
            runs.setdefault(key, []).append((layout, layout.global_batch / (rate * every), False))
    for run in entry["runs"]:
        layout = reader(run["point"])
        if layout is None or run["status"] != Status.FAILED:
            continue
        here = tuple(text_of(run["point"][name]) for name in names)
        for key, of in runs.items():
            if key[1:] == here:
                of.append((layout, None, run["cause"] in TOO_LARGE))
    unit = quantity.unit
    return [
        LayoutStudy(
            values[key],
            batch,
            str(key[0]),
            measure,
            unit,
            quantity.scope == "rank",
            measured,
            fits,
            fits.obstacle if isinstance(fits, MemoryJudge) else empty_stage,
        )
        for key, of in runs.items()
        for fits in (_fits(data, values[key], str(key[0])),)
        for batch, measured in _by_batch(of, probed[key])
    ]


def _probed(
    data: ExperimentData, machine: Machine, point: Point, layout: Layout, unit: str
) -> Mapping[str, float]:
    """What probes say of the exchange of a study, by a point of it."""
    shape = planned_shape(data.experiment, parameters_at(data.experiment, point.values))
    if point.source != MEASURED or shape is None:
        return {}
    return probed_costs(machine, sending_point(data, point), layout.per_node, shape, unit)


def _fits(data: ExperimentData, values: Mapping[str, Any], source: str) -> Fits:
    """What says of the layouts of a study whether they fit."""
    entry = data.experiment
    memory = planned_memory(entry)
    if memory is None:
        return fits_as_neighbours
    read = _reader(entry)
    rows = peak_bytes(data, memory)
    like: dict[bool, tuple[ModelShape, MemoryLayout]] = {}
    devices: list[float] = []
    peaks: dict[Layout, float] = {}
    for point in data.points():
        layout = read(point.values)
        if layout is None or any(point.values[n] != v for n, v in values.items()):
            continue
        known = planned_memory_layout(entry, parameters_at(entry, point.values))
        if not isinstance(known, tuple) or known[2] is None:
            continue
        like.setdefault(layout.sharded, known[:2])
        devices.append(known[2])
        if rows is not None and point.source == source and np.isfinite(rows[point.rows]).all():
            peaks[layout] = float(rows[point.rows].mean())
    if not devices:
        return fits_as_neighbours
    failed = frozenset(
        layout
        for run in entry["runs"]
        if run["status"] == Status.FAILED
        and run["cause"] in OUT_OF_MEMORY
        and (layout := read(run["point"])) is not None
    )
    return MemoryJudge(like, min(devices), peaks, failed, memory.rank)


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


def _reader(entry: PlanExperiment) -> Callable[[Mapping[str, Any]], Layout | None]:
    memory = planned_memory(entry)

    def read(values: Mapping[str, Any]) -> Layout | None:
        point = parameters_at(entry, values)
        mesh, shape = planned_mesh(entry, point), planned_shape(entry, point)
        return layout_from(mesh, shape, memory, point)

    return read


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


def _by_batch(
    runs: Iterable[tuple[Layout, float | None, bool]], probed: Mapping[str, float]
) -> list[tuple[int | None, Measured]]:
    """The runs of each global batch that was measured at several scales; all of them where none
    was, because the batch grows with the ranks."""
    every = list(runs)
    scales: dict[int, set[int]] = {}
    for layout, seconds, _ in every:
        if seconds is not None:
            scales.setdefault(layout.global_batch, set()).add(layout.ranks)
    batches = sorted(batch for batch, ranks in scales.items() if len(ranks) > 1)
    if not batches:
        return [(None, measured_of(every, probed))]
    return [
        (batch, measured_of([run for run in every if run[0].global_batch == batch], probed))
        for batch in batches
    ]
