"""The table ``headroom``: what share of each resource a point takes, and which one binds.

A share is what a point takes of a resource over what a probe reaches of it, on as many ranks and
nodes: the best of enough undisturbed runs, with its interval (docs/methods/machine.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from scalesweep.analysis.exchange import Exchange, exchange_seconds
from scalesweep.analysis.metrics import EPOCH_PHASES
from scalesweep.analysis.roofline import COMPUTE, MEMORY, share_of
from scalesweep.analysis.stats import mean_of
from scalesweep.core.formatting import PHASES, counted, listed, scaled_unit, text_of, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.points_table import Table, declared_table, share_text
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import (
    ATTENTION,
    NOTE,
    Finding,
    Rule,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import Estimate, PointRow, column, numbers_of
from scalesweep.tables.bookkeeping import EXCHANGE, EXCHANGED_BY
from scalesweep.tables.file_rates import (
    COLD,
    FILES,
    LOADING,
    TRAINING,
    Rate,
    fastest,
    only_reads,
    reads_files,
    sample_bytes,
    state_of,
)
from scalesweep.tables.layers import LAYERS
from scalesweep.tables.machine import (
    COPIES,
    MEASURED,
    Model,
    agree,
    numbers_in,
    ways_of,
    whole_point,
)
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import Measure, Point
from scalesweep.tables.rank_layout import Layout, samples_of_a_step, splits_the_network

DECODE, NETWORK = "decode", "network"
# Bytes of a sample as it is handed to the device, of runs that copy it there.
COPIED_BYTES = "copied_bytes_per_sample"
MODEL_PARAMETERS = "model_parameters"  # metric: values of a model's trainable variables
RATES = ("samples/s", "images/s")
_READ, _SAMPLES = "read_rate", "total_throughput"
# Share of an epoch's bytes below which they come from a cache of the pipeline's own.
_FROM_FILES = 0.5
_NO_BYTES = "its runs read no files, or do not note the bytes of an epoch"
_SAME_BYTES = 0.01  # samples of files of which sizes differ by less are the same


class _Limit(NamedTuple):
    """What the machine gives of a resource to the point's ranks, and what a sample takes of it."""

    ceiling: Estimate
    unit: str
    per_sample: float
    where: str


@dataclass(frozen=True, kw_only=True)
class Headroom(PointRow, table="headroom"):
    """A resource at a point in a phase, or why nothing is known of it."""

    phase: str = column("`init` (the first epoch), `later` or `run`")
    resource: str = column(
        "`files`, `decode` (an input pipeline without a consumer), `copies`, `compute`, `memory`, "
        "`network`; of points that only read `training`, on dummy input"
    )
    rate: Estimate | None = column("what the point takes of it, of all ranks", default=None)
    ceiling: float | None = column("the most that probes reach on such ranks", default=None)
    unit: str | None = column("unit of `rate` and `ceiling`", default=None)
    share: Estimate | None = column("`rate` / `ceiling`", "1", default=None)
    allowed: float | None = column(
        "samples that it would allow if all else took no time", "samples/s", default=None
    )
    binding: bool = column(
        "whether its share is the largest of those that are known", default=False
    )
    where: str | None = column("the experiments that the ceiling is from", default=None)
    missing: str | None = column("why nothing is known of it", default=None)


def headroom_rows(inputs: TableInputs) -> Iterator[Headroom]:
    """The rows of points that train or read files; none where no probe is there to hold one
    against."""
    data = inputs.data
    entry = data.experiment
    alone = only_reads(entry)
    main = str(entry.get("main_metric"))
    quantity = data.quantities.get(main)
    trains = quantity is not None and quantity.unit in RATES and quantity.better == "higher"
    for point in inputs.points:
        if reads_files(entry):
            for phase in EPOCH_PHASES:
                yield from _marked(_reading(inputs, point, phase, not alone))
        values = data.repeats(point, (main, "run"))
        layers = any(row in data.notes(LAYERS) for row in point.rows.tolist())
        if trains and values.size and not layers and not alone:
            yield from _marked(_training(inputs, point, main))


def _marked(rows: Iterator[Headroom]) -> Iterator[Headroom]:
    """The rows of a point with the largest share marked; none where no share is known."""
    every = list(rows)
    largest = max((row.share.value for row in every if row.share), default=None)
    for row in every if largest is not None else ():
        yield replace(row, binding=row.share is not None and row.share.value == largest)


def _row(
    inputs: TableInputs, point: Point, resource: str, measure: Measure, limit: _Limit
) -> Headroom:
    """What a point takes of a resource by one of its rates, of samples or (files) of bytes."""
    data, per, most = inputs.data, limit.per_sample or 1.0, limit.ceiling.value
    return Headroom(
        **point_columns(point),
        phase=measure[1],
        resource=resource,
        rate=data.mean(point, measure).times(per),
        ceiling=most,
        unit=limit.unit,
        share=share_of(
            data.repeats(point, measure) * per / most, limit.ceiling.over(1.0), data.level
        ),
        allowed=most / limit.per_sample if limit.per_sample else None,
        where=limit.where,
    )


def _plain(inputs: TableInputs, point: Point, *states: str | None) -> Rate | None:
    """The fastest plain reads on as many nodes, of files in one of these states of the cache."""
    nodes = Layout.of(whole_point(inputs.data, point)).nodes
    alike = [r for r in inputs.machine.rates if (r.kind, r.layout.nodes) == (FILES, nodes)]
    return fastest([rate for rate in alike if rate.state in states])


def _reading(inputs: TableInputs, point: Point, phase: str, trains: bool) -> Iterator[Headroom]:
    """What a point reads of what plain reads reach, and what training would take of that."""
    data, every = inputs.data, whole_point(inputs.data, point)
    plain = _plain(inputs, point, state_of(every, phase))
    again = data.repeats(point, ("bytes_read_per_byte", "run"))
    cached = phase == "later" and again.size and again.mean() < _FROM_FILES
    if data.repeats(point, (_READ, phase)).size and plain is not None and not cached:
        limit = _Limit(plain.best, "bytes/s", 0.0, plain.where)
        yield _row(inputs, point, FILES, (_READ, phase), limit)
    read = data.repeats(point, (_SAMPLES, phase))
    if trains or every.get("step_gflop") or not (read.size and read.mean() > 0):
        return
    for rate in inputs.machine.rates:
        if (rate.kind, rate.layout, rate.source) != (TRAINING, Layout.of(every), point.source):
            continue
        differs = [
            name
            for name in sorted(rate.point.keys() & every)
            if parameter_of(data.experiment, name).get("workload")
            and rate.point[name] != every[name]
        ]
        known: dict[str, Any] = {"missing": f"samples differ in {', '.join(differs)}"}
        if not differs:
            used, most = mean_of(rate.values), float(read.mean())
            share = replace(share_of(used.value / read, used, data.level), value=used.value / most)
            known = {"rate": used, "ceiling": most, "unit": "samples/s", "share": share}
        yield Headroom(
            **point_columns(point), **known, phase=phase, resource=TRAINING, where=rate.where
        )


def _training(inputs: TableInputs, point: Point, main: str) -> Iterator[Headroom]:
    """What training takes of each resource, or why that is not known."""
    limits = {
        **_input(inputs, point),
        COPIES: _copies(inputs, point),
        **_computation(inputs, point),
        NETWORK: _network(inputs, point),
    }
    for name, limit in limits.items():
        if isinstance(limit, str):
            yield Headroom(**point_columns(point), phase="run", resource=name, missing=limit)
        else:
            yield _row(inputs, point, name, (main, "run"), limit)


def _input(inputs: TableInputs, point: Point) -> dict[str, _Limit | str]:
    """What plain reads of a cold cache on as many nodes give, and what an input pipeline hands over
    of samples of the same size, on as many ranks."""
    size = sample_bytes(inputs.data, point)
    if size is None:
        return dict.fromkeys((FILES, DECODE), _NO_BYTES)
    layout = Layout.of(whole_point(inputs.data, point))
    plain = _plain(inputs, point, COLD, None)
    loads = [r for r in inputs.machine.rates
             if (r.kind, r.layout, r.source) == (LOADING, layout, "measured")
             and abs((r.bytes_per_sample or 0.0) / size - 1) <= _SAME_BYTES]  # fmt: skip
    loading = fastest(loads)
    return {
        FILES: _Limit(plain.best, "bytes/s", size, plain.where) if plain else
        f"nothing has measured plain reads of a cold cache on as many nodes ({layout.nodes})",
        DECODE: _Limit(loading.best, "samples/s", 1.0, loading.where) if loading else
        "nothing has loaded samples of this size alone, on as many ranks and nodes",
    }  # fmt: skip


def _copies(inputs: TableInputs, point: Point) -> _Limit | str:
    """What copies to the GPUs of all ranks give."""
    sizes = inputs.data.repeats(point, (COPIED_BYTES, "run"))
    if not sizes.size or sizes.min() != sizes.max() or not sizes[0] > 0:
        return "its runs copy no samples to a GPU, or do not note their bytes"
    every = whole_point(inputs.data, point)
    gpus = Layout.of(every).ranks * int(every.get("devices_per_rank") or 1)
    why = "nothing has measured copies from host to GPU (copy_bandwidth)"
    return _ceiling(inputs, COPIES, "", gpus, float(sizes[0]), why)


def _computation(inputs: TableInputs, point: Point) -> dict[str, _Limit | str]:
    """What the nodes compute and move in memory, over what the layers take of it for a sample."""
    data, every = inputs.data, whole_point(inputs.data, point)
    numbers = numbers_in(data, point)
    model = _model(inputs, point, numbers)
    if model is None:
        batch = text_of(every.get("batch_size"))
        why = f"step_layers has not counted its model in {numbers} at a local batch of {batch}"
        return dict.fromkeys((COMPUTE, MEMORY), why)
    nodes, also = Layout.of(every).nodes, f" and {model.where}"
    flop, moved = sum(model.flop) / model.batch, sum(model.moved) / model.batch
    no_peak = f"nothing has measured the ceiling of computation in {numbers}"
    no_bandwidth = "nothing has measured the bandwidth of memory"
    return {
        COMPUTE: _ceiling(inputs, COMPUTE, numbers, nodes, flop, no_peak, also),
        MEMORY: _ceiling(inputs, MEMORY, "", nodes, moved, no_bandwidth, also),
    }


def _ceiling(
    inputs: TableInputs, kind: str, numbers: str, times: int, per: float, why: str, also: str = ""
) -> _Limit | str:
    """A measured ceiling, so many times; ``why`` there is nothing to say where there is none."""
    ceiling = inputs.machine.ceiling(kind, MEASURED, numbers)
    if ceiling is None:
        return why
    grows = " (still growing)" if ceiling.growing else ""
    where = f"{ceiling.where}{grows}{also}"
    return _Limit(ceiling.value.times(times), ceiling.unit, per, where)


def _model(inputs: TableInputs, point: Point, numbers: str) -> Model | None:
    """The layers of what a point trains, at its local batch.

    The same where both agree in all parameters that both name, in the type of their ``numbers``,
    and in the number of weights.
    """
    weights = inputs.data.repeats(point, (MODEL_PARAMETERS, "run"))
    every = whole_point(inputs.data, point)
    if not weights.size or weights.min() != weights.max() or splits_the_network(every):
        return None
    like = (samples_of_a_step(every), numbers, round(float(weights[0])))
    models = (m for m in inputs.machine.models if (m.batch, m.numbers, m.weights) == like)
    return next((model for model in models if agree(model.named, every)), None)


def _network(inputs: TableInputs, point: Point) -> _Limit | str:
    """The bytes of a step over the time that its messages take by the network's fit: the fastest of
    those whose messages take the same ways, by the same library and backend."""
    data, every = inputs.data, whole_point(inputs.data, point)
    layout, batch = Layout.of(every), samples_of_a_step(every)
    if layout.ranks == 1:
        return "a single rank exchanges nothing"
    carrier, noted = data.agreed(point, EXCHANGED_BY), data.agreed(point, EXCHANGE)
    alike = [n for n in inputs.machine.networks
             if n.layout.like(layout) and agree(n.ways, ways_of(every))]  # fmt: skip
    same = [n for n in alike if None in (carrier, n.carrier) or n.carrier == carrier]
    if alike and not same:
        return "another library carries its messages than those of the network's probe"
    exchange = Exchange(**noted) if noted else None
    known = exchange and exchange.reduces and exchange.bucket_bytes is not None
    times = [
        (seconds, network.where)
        for network in same
        if exchange and known and not splits_the_network(every)
        if (seconds := exchange_seconds(network.fits, layout.ranks, exchange.messages))
        if seconds.value > 0
    ]
    if not times or exchange is None or batch is None:
        return "its exchange is not noted, or no network's fit is of such ranks (allreduce)"
    seconds, where = min(times, key=lambda each: each[0].value)
    samples = layout.ranks * int(every.get("devices_per_rank") or 1) * batch
    where += f" ({counted(len(exchange.messages), 'message')} a step)"
    return _Limit(seconds.over(exchange.total), "bytes/s", exchange.total / samples, where)


MAKERS = (Maker(Headroom, headroom_rows),)


RULE, INPUT = "headroom", "input bound"
MOST = 4
NEAR = 0.5  # a share from which on a resource is said to bind


def points_of(results: ExperimentResults) -> list[list[Headroom]]:
    """The rows of each point, source and phase, the largest share first."""
    groups: dict[Key, list[Headroom]] = {}
    for row in results.of(Headroom):
        key = (*results.key(row.point, results.axes), row.source, row.phase)
        groups.setdefault(key, []).append(row)
    known = [rows for rows in groups.values() if any(row.binding for row in rows)]
    return sorted(known, key=lambda rows: -max(row.share.value for row in rows if row.share))


def binding_resource(results: ExperimentResults) -> list[Finding]:
    """Of the points with the largest shares what binds: a note, for attention if above 1."""
    return [_finding(results, rows) for rows in points_of(results)[:MOST]]


def _finding(results: ExperimentResults, rows: Sequence[Headroom]) -> Finding:
    row = next(row for row in rows if row.binding)
    assert row.share and row.ceiling
    share = row.share
    above = share.value > 1 if share.low is None else share.low > 1
    at = f"at {results.describe(row.row)}" if results.axes else "here"
    unknown = list(dict.fromkeys(each.resource for each in rows if each.missing))
    evidence = declared_evidence(results, row)
    evidence["key"] |= {"resource": row.resource, "phase": row.phase, "where": row.where}
    return Finding(
        results.name,
        INPUT if row.resource == TRAINING else RULE,
        ATTENTION if above else NOTE,
        subject=row.resource.capitalize(),
        words={
            "at": at + (f", {PHASES[row.phase]}" if row.phase != "run" else ""),
            "where": row.where or "",
            "binds": "binds" if share.value >= NEAR else "comes nearest to its ceiling",
            "unknown": f"; not probed: {listed(unknown)}" if unknown else "",
        },
        numbers=(
            estimate_of("share", share, "1"),
            number_of("ceiling", row.ceiling, row.unit or ""),
        ),
        evidence=evidence,
    )


RULES = (
    Rule(
        RULE, binding_resource,
        says={
            NOTE: "{subject} {binds} {at}: {share:%} of {ceiling} ({where}){unknown}.",
            ATTENTION: "{subject} {at}: {share:%} of a ceiling measured too low ({where}).",
        },
        next={ATTENTION: "measure the ceiling on as many devices, with a cold cache"},
    ),
    Rule(
        INPUT, None,
        says={
            NOTE: "Reading {at}: training ({where}) would take {share:%} of what is read.",
            ATTENTION: "Input-bound {at}: training ({where}) would take {share:%} of what is read.",
        },
        next={ATTENTION: "read with more ranks or cores for each, or from faster files"},
    ),
)  # fmt: skip


_NOTE = (
    "What a point takes of each resource over the best that probes reach on as many ranks and "
    "nodes. Binding: the largest share of those that are known (docs/methods/machine.md)."
)


def headroom_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per point and resource; None where nothing is known."""
    rows = [row for of_point in points_of(results) for row in of_point]
    columns = [
        ("Phase", "phase", lambda row: row.phase),
        ("Resource", "resource", lambda row: row.resource),
        ("Takes", "rate", lambda row: _scaled(row, row.rate)),
        ("Of", "ceiling", lambda row: _scaled(row, row.ceiling and Estimate(row.ceiling))),
        ("Share", "share", lambda row: share_text(row.share)),
        ("", "binding", lambda row: "binding" if row.binding else ""),
        ("From", "where", lambda row: row.where or row.missing or ""),
    ]
    return declared_table(results, rows, columns, limit)


def _scaled(row: Headroom, known: Estimate | None) -> str:
    factor, unit = scaled_unit(row.unit or "", known.value if known else 0.0)
    return with_interval(*numbers_of(known, factor), unit)


SECTION = Section("Headroom", headroom_table, lambda _results: [_NOTE])
