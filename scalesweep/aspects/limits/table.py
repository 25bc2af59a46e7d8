"""The table ``limits``: samples a second that each resource would allow, and which binds.

A resource allows its measured ceiling over what a sample takes of it, as if all else took no time.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from scalesweep.analysis.best_rate import BestRate
from scalesweep.analysis.roofline import COMPUTE, Reach, reach_of, share_interval
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import finite, listed, number, scaled_unit, text_of
from scalesweep.core.joined_experiments import constants_of
from scalesweep.table.declared import Estimate, PointRow, column
from scalesweep.tables.ceilings import COPIES, MEASURED, ceiling_of, numbers_in
from scalesweep.tables.exchange_text import EXCHANGED_BY
from scalesweep.tables.layers import LAYERS
from scalesweep.tables.loading import sample_bytes
from scalesweep.tables.machine import other_carriers, sending_point, whole_point
from scalesweep.tables.machine_terms import model_of, sent_in_a_step
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout, samples_of_a_step
from scalesweep.tables.read_ceilings import WARM, reads_files

FILES, DECODE, COPY, COMPUTATION, NETWORK = "files", "decode", "copies", "compute", "network"
# Bytes of a sample as it is handed to the device, of runs that copy it there.
COPIED_BYTES = "copied_bytes_per_sample"
RATES = ("samples/s", "images/s")
_SAME_BYTES = 0.01  # samples of files of which sizes differ by less are the same


@dataclass(frozen=True)
class Limit:
    """Samples a second that a resource allows: its ceiling over what a sample takes of it."""

    ceiling: float
    low: float | None
    high: float | None
    unit: str
    per_sample: float
    per_sample_unit: str
    where: str

    @property
    def allowed(self) -> Estimate:
        """The rate with its interval."""
        return Estimate.of(self.ceiling / self.per_sample, *map(self._rate, (self.low, self.high)))

    def _rate(self, end: float | None) -> float | None:
        return None if end is None else end / self.per_sample


@dataclass(frozen=True, kw_only=True)
class LimitRow(PointRow, table="limits"):
    """A resource at a point of training, or why nothing is known of it."""

    resource: str = column("`files`, `decode`, `copies`, `compute` or `network`")
    allowed: Estimate | None = column(
        "rate that it would allow if all else took no time: `ceiling` / `per_sample`", "samples/s",
        default=None,
    )  # fmt: skip
    ceiling: float | None = column("what the ranks' share of the machine gives", default=None)
    ceiling_unit: str | None = column("its unit", default=None)
    per_sample: float | None = column("what a sample takes of it", default=None)
    per_sample_unit: str | None = column("its unit", default=None)
    where: str | None = column("the experiments that both are from", default=None)
    measured: Estimate = column("rate of training", "samples/s")
    share: Estimate | None = column("`measured` / `allowed`", "1", default=None)
    binding: bool = column("whether it allows least of those that are known")
    above: bool = column(
        "whether `measured` is above `allowed`, which contradicts its ceiling or what a sample "
        "takes"
    )
    missing: str | None = column("why nothing is known of it", default=None)


def limit_rows(inputs: TableInputs) -> Iterator[LimitRow]:
    """Rows of the points of training whose main metric is a rate of samples."""
    data = inputs.data
    main = data.experiment.get("main_metric")
    quantity = data.quantities.get(main) if main else None
    if quantity is None or quantity.unit not in RATES or quantity.better != "higher":
        return
    if reads_files(data.experiment) and "input" not in _names(data):
        return  # it loads and does not train
    for point in inputs.points:
        values = data.repeats(point, (str(main), "run"))
        layers = any(data.texts(LAYERS)[row] for row in point.rows.tolist())
        if values.size and not layers:
            limits = _limits(inputs, point)
            if any(isinstance(limit, Limit) for limit in limits.values()):
                yield from _rows(inputs, point, str(main), values, limits)


def _names(data: ExperimentData) -> set[str]:
    own = constants_of(data.experiment).values()
    return {*data.experiment["fixed"], *data.axes, *chain.from_iterable(own)}


def _limits(inputs: TableInputs, point: Point) -> dict[str, Limit | str]:
    """What each resource allows, or why that is not known."""
    return {
        FILES: _files(inputs, point),
        DECODE: _decode(inputs, point),
        COPY: _copies(inputs, point),
        COMPUTATION: _computation(inputs, point),
        NETWORK: _network(inputs, point),
    }


def _rows(
    inputs: TableInputs, point: Point, main: str, values: Floats, limits: Mapping[str, Limit | str]
) -> Iterator[LimitRow]:
    """A row for each resource, the one that allows least marked."""
    data = inputs.data
    span = data.interval(point, (main, "run"))
    measured = Estimate.of(float(values.mean()), span.low, span.high)
    known = {name: limit for name, limit in limits.items() if isinstance(limit, Limit)}
    least = min(known, key=lambda name: known[name].allowed.value)
    head = {**point_columns(point), "measured": measured}
    for name, limit in limits.items():
        if not isinstance(limit, Limit):
            yield LimitRow(**head, resource=name, binding=False, above=False, missing=limit)
            continue
        allowed = limit.allowed
        bounds = share_interval(values / allowed.value, _reach_of_least(allowed), data.level)
        share = float(values.mean()) / allowed.value
        yield LimitRow(
            **head,
            resource=name,
            allowed=allowed,
            ceiling=limit.ceiling,
            ceiling_unit=limit.unit,
            per_sample=limit.per_sample,
            per_sample_unit=limit.per_sample_unit,
            where=limit.where,
            share=Estimate.of(share, bounds.low, bounds.high),
            binding=name == least,
            above=share > 1,
        )


def _reach_of_least(allowed: Estimate) -> Reach:
    """How far the interval of the least time reaches that an allowed rate stands for."""
    known = allowed.low is not None and allowed.high is not None
    ends = (allowed.low, allowed.high) if known else (math.nan, math.nan)
    reach = reach_of(allowed.value, float(ends[0] or 0.0), float(ends[1] or 0.0))
    return Reach(reach.above, reach.below)


def _best(best: BestRate, per_sample: float, where: str) -> Limit:
    """The limit of what was measured as bytes/s of all ranks."""
    low, high = (float(end) if finite(end) else None for end in (best.low, best.high))
    return Limit(best.value, low, high, "bytes/s", per_sample, "bytes", where)


def _files(inputs: TableInputs, point: Point) -> Limit | str:
    """What plain reads of as many nodes give, over the bytes of a sample's files."""
    size = sample_bytes(inputs.data, point)
    if size is None:
        return "its runs read no files, or do not note the bytes of an epoch"
    nodes = Layout.of(whole_point(inputs.data, point)).nodes
    ceilings = [
        ceiling
        for ceiling in inputs.machine.reading
        if ceiling.nodes == nodes and ceiling.state != WARM
    ]
    if not ceilings:
        return f"nothing has measured plain reads of a cold cache on as many nodes ({nodes})"
    fastest = max(ceilings, key=lambda ceiling: ceiling.best.value)
    return _best(fastest.best, size, fastest.where)


def _decode(inputs: TableInputs, point: Point) -> Limit | str:
    """What an input pipeline hands over of samples of the same size, on as many ranks."""
    size = sample_bytes(inputs.data, point)
    if size is None:
        return "its runs read no files, or do not note the bytes of an epoch"
    layout = Layout.of(whole_point(inputs.data, point))
    loaders = [
        loader
        for loader in inputs.machine.loaders
        if loader.layout == layout and abs(loader.bytes_per_sample / size - 1) <= _SAME_BYTES
    ]
    if not loaders:
        return "nothing has loaded samples of this size alone, on as many ranks and nodes"
    fastest = max(loaders, key=lambda loader: loader.best.value)
    low, high = (float(v) if finite(v) else None for v in (fastest.best.low, fastest.best.high))
    return Limit(fastest.best.value, low, high, "samples/s", 1.0, "samples", fastest.where)


def _copies(inputs: TableInputs, point: Point) -> Limit | str:
    """What copies to the GPUs of all ranks give, over the bytes of a sample on the device."""
    sizes = inputs.data.repeats(point, (COPIED_BYTES, "run"))
    if not sizes.size or sizes.min() != sizes.max() or not sizes[0] > 0:
        return "its runs copy no samples to a GPU, or do not note their bytes"
    ceiling = ceiling_of(inputs.machine.ceilings, COPIES, MEASURED, "")
    if ceiling is None:
        return "nothing has measured copies from host to GPU (copy_bandwidth)"
    every = whole_point(inputs.data, point)
    gpus = Layout.of(every).ranks * int(every.get("devices_per_rank") or 1)
    low, high = (None if end is None else gpus * end for end in (ceiling.low, ceiling.high))
    return Limit(
        gpus * ceiling.value, low, high, "bytes/s", float(sizes[0]), "bytes", ceiling.where
    )


def _computation(inputs: TableInputs, point: Point) -> Limit | str:
    """The ceiling of computation of its nodes, over the FLOP of a sample's gradient."""
    data, machine = inputs.data, inputs.machine
    numbers = numbers_in(data, point)
    model = model_of(data, point, numbers, machine.models)
    if model is None:
        batch = text_of(whole_point(data, point).get("batch_size"))
        return f"step_layers has not counted its model in {numbers} at a local batch of {batch}"
    ceiling = ceiling_of(machine.ceilings, COMPUTE, MEASURED, numbers)
    if ceiling is None:
        return f"nothing has measured the ceiling of computation in {numbers}"
    nodes = Layout.of(whole_point(data, point)).nodes
    low, high = (None if end is None else nodes * end for end in (ceiling.low, ceiling.high))
    flop = sum(model.flop) / model.batch
    where = f"{ceiling.where} and {model.where}"
    return Limit(nodes * ceiling.value, low, high, "FLOP/s", flop, "FLOP", where)


def _network(inputs: TableInputs, point: Point) -> Limit | str:
    """The samples of a step over the time that its exchange would take by the network's fit."""
    every = whole_point(inputs.data, point)
    layout = Layout.of(every)
    if layout.ranks == 1:
        return "a single rank exchanges nothing"
    batch = samples_of_a_step(every)
    sent = sent_in_a_step(inputs.data, point, inputs.machine)
    sending = sending_point(inputs.data, point)
    others = other_carriers(inputs.machine, sending) if sent is None else []
    if others:
        own = sending[EXCHANGED_BY]
        return f"{own} carries its messages, {listed(others)} those of the network's probe"
    if sent is None or batch is None:
        return "its exchange is not noted, or no network's fit is of such ranks (allreduce)"
    samples = layout.ranks * int(every.get("devices_per_rank") or 1) * batch
    fused, total = sent.as_fused, float(sent.exchange.total)
    rates = [total / (ms * 1e-3) for ms in (fused.value, fused.high, fused.low) if ms > 0]
    low, high = rates[1:] if len(rates) == 3 else (None, None)
    return Limit(rates[0], low, high, "bytes/s", total / samples, "bytes", fused.where)


def in_words(value: float, unit: str) -> str:
    """A ceiling, or what a sample takes of it, in a readable unit: ``20 GFLOP``."""
    factor, scaled = scaled_unit(unit, value)
    return f"{number(value * factor)} {scaled}"


MAKERS = (Maker(LimitRow, limit_rows),)
