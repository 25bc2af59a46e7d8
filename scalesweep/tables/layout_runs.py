"""The layouts of an experiment whose benchmark declares a mesh and its transformer's batch: what
was measured of each, by which those at other scales are forecast."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.factors import determined, planned_points
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.prediction.layouts.runs import Layout, Measured, measured_of
from scalesweep.config.expressions import Expression
from scalesweep.config.point_shape import planned_mesh, planned_shape
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.status import Status
from scalesweep.tables.pairwise import main_measures
from scalesweep.tables.points import ExperimentData, Measure

# Parameters that say whether what a rank holds is split over its replicas, beside ``dp_shard``.
SHARDING = ("zero", "zero_stage", "zero1")
# Where a source does not say why a run failed, another one of this layout is not worth trying
# either: in published sweeps it is memory nearly always.
TOO_LARGE = (Cause.OUT_OF_MEMORY, Cause.GPU_OUT_OF_MEMORY, Cause.NOT_STATED)
# Ranks of a node that is not known.
PER_NODE = 8
_BATCH = ("micro_batch", "accumulation", "global_batch")
NEEDED = (
    "a forecast of layouts takes the benchmark's mesh, and of its transformer micro_batch and "
    "accumulation"
)


@dataclass(frozen=True, eq=False)
class LayoutStudy:
    """The layouts of one model, source and global batch: ``values`` tell it from others, ``batch``
    is the global batch where that does not grow with the ranks.

    ``measured``: seconds are samples of a step over the rate of all ranks; what was measured is in
    ``unit``, of each rank where ``of_a_rank``.
    """

    values: Mapping[str, Any]
    batch: int | None
    source: str
    measure: Measure
    unit: str
    of_a_rank: bool
    measured: Measured

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
    mesh: Mapping[str, int] | None, shape: ModelShape | None, point: Mapping[str, Any]
) -> Layout | None:
    """The layout of a point with all its parameters; None where part of it is not known."""
    if mesh is None or shape is None or not shape.micro_batch or not shape.accumulation:
        return None
    replicas = mesh.get("dp", mesh.get("dp_replicate", 1) * mesh.get("dp_shard", 1))
    sharded = mesh.get("dp_shard", 1) > 1 or any(point.get(name) for name in SHARDING)
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
    """The studies of an experiment, in the order of the plan; none where nothing was measured."""
    entry = data.experiment
    measure = _rate(data)
    if measure is None or not is_layout_study(entry):
        return []
    reader = _reader(entry)
    quantity = data.quantities[measure[0]]
    names = study_parameters(entry)
    runs: dict[tuple[Any, ...], list[tuple[Layout, float | None, bool]]] = {}
    values: dict[tuple[Any, ...], dict[str, Any]] = {}
    for point in data.points():
        rates = data.repeats(point, measure)
        layout = reader(point.values)
        if layout is None or not rates.size or rates.min() <= 0:
            continue
        every = layout.ranks if quantity.scope == "rank" else 1
        key = (point.source, *(text_of(point.values[name]) for name in names))
        values.setdefault(key, {name: point.values[name] for name in names})
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
            values[key], batch, str(key[0]), measure, unit, quantity.scope == "rank", measured
        )
        for key, of in runs.items()
        for batch, measured in _by_batch(of)
    ]


def study_parameters(entry: PlanExperiment) -> list[str]:
    """Varying parameters that tell one study from another: neither the layout, nor the batch, nor
    what follows the ranks."""
    points = [parameters_at(entry, point) for point in planned_points(entry)]
    texts = [*entry.get("mesh", {}).values()]
    texts += [text for key, text in entry.get("transformer", {}).items() if key in _BATCH]
    layout = {name for text in texts for name in Expression(text, entry["name"]).names}
    layout |= {"ranks", "ranks_per_node", entry["scale"], *entry.get("derived_parameters", {})}
    return [
        name
        for name in entry["axes"]
        if name not in layout
        and name not in SHARDING
        and not determined(entry["scale"], name, points)
    ]


def _reader(entry: PlanExperiment) -> Callable[[Mapping[str, Any]], Layout | None]:
    def read(values: Mapping[str, Any]) -> Layout | None:
        point = parameters_at(entry, values)
        return layout_from(planned_mesh(entry, point), planned_shape(entry, point), point)

    return read


def _rate(data: ExperimentData) -> Measure | None:
    """The rate that the experiment is about, in the later epochs where it has some."""
    order = {"later": 0, "run": 1, "first": 2}
    measures = sorted(main_measures(data), key=lambda measure: order.get(measure[1], 3))
    rates = [
        measure
        for measure in measures
        if data.quantities[measure[0]].better == "higher"
        and "/s" in data.quantities[measure[0]].unit
    ]
    return rates[0] if rates else None


def _by_batch(
    runs: Iterable[tuple[Layout, float | None, bool]],
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
        return [(None, measured_of(every))]
    return [
        (batch, measured_of([run for run in every if run[0].global_batch == batch]))
        for batch in batches
    ]
