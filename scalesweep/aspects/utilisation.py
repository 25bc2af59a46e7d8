"""The table ``utilisation``: tokens, FLOP and shares of peaks, by each convention.

Model FLOP/s are tokens/s times the FLOP of a token by a convention (``flop_conventions``); MFU is
that over the peak of all ranks, HFU the same with what is computed again (``TokenFlop.hardware``).
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.device_peaks import device_peak, mixed_peak
from scalesweep.analysis.flop_conventions import (
    CONVENTIONS,
    COUNTED,
    MFU,
    TokenFlop,
    flop_metric,
    token_flops,
)
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.roofline import COMPUTE, share_of
from scalesweep.analysis.stats import mean_of
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import percent, scaled_unit, with_interval
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.points_table import Cell, Shown, Table, declared_table, share_text
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
from scalesweep.planning.planned_shapes import planned_shape
from scalesweep.table.declared import Estimate, PointRow, column, numbers_of
from scalesweep.tables.machine import DATASHEET, FLOAT32, MEASURED, numbers_in
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Point

_log = logging.getLogger(__name__)

_FLOP_PER_STEP = "flop_per_step"  # metric: what a program's own counter found
_JOULES = "energy_per_sample"
# Metrics that are the time of a step; of others with a unit of time that is not known.
_STEP_TIMES = ("step_time", "iteration_time")
_SECONDS = {"s": 1.0, "ms": 1e-3}
_RATES = ("tokens/s", "samples/s")
_AGREE = 0.01  # besides half of the last digit that a source prints


@dataclass(frozen=True, kw_only=True)
class Utilisation(PointRow, table="utilisation"):
    """A point by a convention (docs/methods/utilisation.md)."""

    convention: str = column("which FLOP are counted")
    token_flop: float | None = column(
        "FLOP of a token, forward and backward; missing where only the source knows",
        "FLOP", default=None,
    )  # fmt: skip
    tokens: Estimate | None = column("tokens of all ranks in a second", "tokens/s", default=None)
    rank_tokens: Estimate | None = column("the same of a rank", "tokens/s", default=None)
    step: Estimate | None = column("time of a step", "s", default=None)
    joule_tokens: Estimate | None = column(
        "tokens for a joule, where power was sampled", "tokens/J", default=None
    )
    rank_flops: Estimate | None = column("model FLOP/s of a rank", "FLOP/s", default=None)
    dtype: str | None = column("type of the numbers in products", default=None)
    peak: float | None = column("data sheet's peak of a rank for these", "FLOP/s", default=None)
    mfu: Estimate | None = column("model FLOP/s over the data sheet's peak", "1", default=None)
    hfu: Estimate | None = column(
        "the same with what is computed again; missing where that is not known", "1", default=None
    )
    ceiling: float | None = column(
        "measured ceiling of a rank, where probes measured it", "FLOP/s", default=None
    )
    of_ceiling: Estimate | None = column(
        "model FLOP/s over the measured ceiling; the interval holds the ceiling's too",
        "1", default=None,
    )  # fmt: skip
    printed_mfu: float | None = column("MFU as the source prints it", "1", default=None)
    fault: str | None = column(
        "why a share above 1 is left out, or a printed one that does not follow from its row",
        default=None,
    )


def utilisation_rows(inputs: TableInputs) -> Iterator[Utilisation]:
    """A row per finished point and convention, where the benchmark declares a transformer."""
    data = inputs.data
    if "transformer" not in data.experiment:
        return
    printed = _printed_mfu(data, inputs.points)
    for point in inputs.points:
        every = parameters_at(data.experiment, point.values)
        try:
            shape = planned_shape(data.experiment, every)
        except UserError as error:
            _log.warning("%s: a point without utilisation: %s", data.experiment["name"], error)
            continue
        rates = token_rates(data, point, shape, int(every["ranks"])) if shape else None
        if shape and rates:
            yield from _rows(inputs, point, shape, rates, every, printed)


MAKERS = (Maker(Utilisation, utilisation_rows),)


class Rates(NamedTuple):
    """Tokens/s of all ranks: of each repeat, and the interval of their mean."""

    values: Floats
    mean: Estimate


def token_rates(data: ExperimentData, point: Point, shape: ModelShape, ranks: int) -> Rates | None:
    """Tokens/s of a point; None where its runs do not say it.

    From tokens/s before samples/s before the time of a step; of several metrics from the main one,
    then one of all ranks.
    """
    known = []
    for name, quantity in data.quantities.items():
        of_rank, seconds = quantity.scope == "rank", _SECONDS.get(quantity.unit)
        if quantity.better == "higher" and quantity.unit in _RATES:
            kind, power = _RATES.index(quantity.unit), 1
            factor = float((shape.sequence if kind else 1) * (ranks if of_rank else 1))
        elif name in _STEP_TIMES and quantity.better == "lower" and seconds and shape.global_batch:
            kind, power, factor = 2, -1, shape.global_batch * shape.sequence / seconds
        else:
            continue
        values = data.repeats(point, (name, "run"))
        if values.size and (values > 0).all():
            other = name != data.experiment["main_metric"]
            known.append((kind, other, of_rank, name, factor, power))
    if not known:
        return None
    *_, name, factor, power = min(known)
    values, mean = data.repeats(point, (name, "run")), data.mean(point, (name, "run"))
    ends = sorted(factor * end**power for end in (mean.low, mean.high) if end is not None)
    return Rates(factor * values**power, Estimate(factor * mean.value**power, *ends))


def _rows(
    inputs: TableInputs, point: Point, shape: ModelShape, rates: Rates, every: Mapping[str, Any],
    printed: Mapping[str, tuple[str, float]],
) -> Iterator[Utilisation]:  # fmt: skip
    """The rows of a point, of the conventions that are worked out or printed."""
    data, ranks = inputs.data, int(every["ranks"])
    if shape.dtype == FLOAT32 and point.source == "measured":
        shape = replace(shape, dtype=numbers_in(data, point))  # tf32 where that was in force
    stated = _peak(inputs, DATASHEET, shape, every)
    probed = _peak(inputs, MEASURED, shape, every)
    batch = float((shape.global_batch or 0) * shape.sequence)
    joules = data.repeats(point, (_JOULES, "run"))
    head: dict[str, Any] = {
        **point_columns(point),
        "tokens": rates.mean,
        "rank_tokens": rates.mean.times(1 / ranks),
        "step": rates.mean.over(batch) if batch else None,
        "joule_tokens": mean_of(shape.sequence / joules)
        if joules.size and (joules > 0).all() else None,
        "dtype": shape.dtype,
        "peak": device_peak(shape) or (stated and stated.value),
        "ceiling": probed and probed.value,
    }  # fmt: skip
    flops = token_flops(shape)
    counted = data.repeats(point, (_FLOP_PER_STEP, "run"))
    if counted.size and batch:
        flops[COUNTED] = TokenFlop(float(counted.mean()) / batch, 0.0)
    of_rank = Rates(rates.values / ranks, head["rank_tokens"])
    for name in CONVENTIONS:
        known: dict[str, Any] = {}
        metric, half = printed.get(name, ("", 0.0))
        if metric and (values := data.repeats(point, (metric, "run"))).size:
            known["printed_mfu"] = float(values.mean())
        if name in flops:
            known |= _shares(flops[name], name, shape, of_rank, head["peak"], probed)
        if known:
            yield _judged(Utilisation(**head, **known, convention=name), half)


def _shares(
    flop: TokenFlop, convention: str, shape: ModelShape, of_rank: Rates, peak: float | None,
    probed: Estimate | None,
) -> dict[str, Any]:  # fmt: skip
    """A rank's FLOP/s, and what they are of its peak and of the measured ceiling, if known."""
    tokens, again = of_rank.mean, shape.recompute
    known: dict[str, Any] = {"token_flop": flop.model, "rank_flops": tokens.times(flop.model)}
    if peak is not None:
        known["mfu"] = tokens.times(flop.model / peak)
        if again == "none" or (again is not None and convention != COUNTED):
            known["hfu"] = tokens.times(flop.hardware(again) / peak)
    if probed is not None:
        known["of_ceiling"] = share_of(of_rank.values * flop.model / probed.value, probed.over(1.0))
    return known


def _judged(row: Utilisation, half: float) -> Utilisation:
    """The row without shares that cannot be, and with what is wrong; ``half``: of the last digit of
    printed ones."""
    for name, share in (("MFU", row.mfu), ("HFU", row.hfu)):
        if share and share.value > 1:
            fault = f"{name} would be {share.value:.4g}: a wrong scope of the rate, or a wrong peak"
            return replace(row, mfu=None, hfu=None, fault=fault)
    near = half + _AGREE * row.mfu.value if row.mfu else 0.0
    if row.mfu and row.printed_mfu and abs(row.printed_mfu - row.mfu.value) > near:
        said = f"the source prints {row.printed_mfu:.4g}, its own numbers give {row.mfu.value:.4g}"
        return replace(row, fault=said)
    return row


def _peak(
    inputs: TableInputs, stated: str, shape: ModelShape, every: Mapping[str, Any]
) -> Estimate | None:
    """A rank's part of a node's ceiling for a type of numbers; None where there is none.

    The ranks on a node share it equally, or the devices that the site's data sheet is of. What a
    probe measured with fewer ranks than a node has devices is of as many devices.
    """
    of_type = {
        ceiling.dtype or "": ceiling
        for ceiling in inputs.machine.ceilings
        if (ceiling.kind, ceiling.stated) == (COMPUTE, stated)
    }
    flops = {name: ceiling.value.value for name, ceiling in of_type.items()}
    value, own = (
        mixed_peak(flops, shape.dtype or "", shape.float8_share),
        of_type.get(shape.dtype or ""),
    )
    if value is None or own is None:
        return None
    devices = next((c.devices for c in inputs.machine.ceilings if c.devices), 0)
    here = min(int(every["ranks"]), int(every.get("ranks_per_node") or 1))
    if devices and own.ranks:
        devices = min(devices, own.ranks)
    mixed = own.value.value != value  # of two types
    return (Estimate(value) if mixed else own.value).times(1 / (devices or here))


def _printed_mfu(data: ExperimentData, points: Sequence[Point]) -> dict[str, tuple[str, float]]:
    """The metrics that are MFU by a known convention, by its name, with half of the last digit that
    all of an experiment end with; 0 where they do not."""
    printed = {}
    for name in data.quantities:
        metric = flop_metric(name)
        if metric and metric.convention and metric.stem == MFU:
            values = np.concatenate([data.repeats(point, (name, "run")) for point in points])
            ends = (
                d for d in range(1, 7) if np.allclose(values, values.round(d), rtol=0, atol=1e-9)
            )
            digits = next(ends, None)
            half = 0.5 * 10.0**-digits if digits else 0.0
            printed[metric.convention.name] = name, half
    return printed


# Which of the conventions a sentence is about where the source prints none: by how much the shape
# has to state, the least first.
_FIRST = ("palm", "megatron", "counted", "parameters_only")
IMPOSSIBLE, PRINTED, BEST = "impossible_utilisation", "printed_utilisation", "utilisation"


def utilisation(results: ExperimentResults) -> list[Finding]:
    """The first of the points that would use more than all of a peak, the first printed MFU that
    its own row does not give, and the point of the highest MFU."""
    rows, findings = chosen(results), []
    above = [row for row in rows if row.fault and row.mfu is None and row.peak]
    if above:
        findings.append(_finding(results, IMPOSSIBLE, ATTENTION, above[0], {"above": len(above)}))
    printed = [row for row in results.of(Utilisation) if row.printed_mfu and row.mfu]
    if wrong := [row for row in printed if row.fault]:
        counts = {"wrong": len(wrong), "printed": len(printed)}
        findings.append(_finding(results, PRINTED, NOTE, wrong[0], counts))
    known = [(row.mfu.value, row) for row in rows if row.mfu]
    if known:
        best = max(known, key=lambda each: each[0])[1]
        findings.append(_finding(results, BEST, NOTE, best, {}))
    return findings


def _finding(
    results: ExperimentResults, rule: str, state: str, row: Utilisation, counts: Mapping[str, int]
) -> Finding:
    shares = shares_of_points(results).get(results.point_key(row.row), [0.0])
    evidence = declared_evidence(results, row)
    evidence["key"]["convention"] = row.convention
    mfu = () if row.mfu is None else (estimate_of("mfu", row.mfu, "1"),)
    other = f"; by others {percent(shares[0])} to {percent(shares[-1])}"
    return Finding(
        results.name, rule, state, subject=results.describe(row.row) if results.axes else "",
        words={
            "fault": row.fault or "", "dtype": row.dtype or "", "convention": row.convention,
            "others": other if shares[0] != shares[-1] else "",
        },
        numbers=(
            *mfu, *(number_of(name, count, "1") for name, count in counts.items()),
            number_of("peak", row.peak, "FLOP/s"),
        ),
        evidence=evidence,
    )  # fmt: skip


def chosen(results: ExperimentResults) -> list[Utilisation]:
    """A row per point: by the convention that the source prints, else the first of ``_FIRST``, the
    same for all points of an experiment."""
    rows = results.of(Utilisation)
    printed = [row.convention for row in rows if row.printed_mfu and row.mfu]
    worked_out = {row.convention for row in rows if row.token_flop}
    usual = [name for name in (*_FIRST, *CONVENTIONS) if name in worked_out]
    convention = next(iter((*printed, *usual)), None)
    return [row for row in rows if row.convention == convention]


def shares_of_points(results: ExperimentResults) -> Mapping[Key, Sequence[float]]:
    """MFU of each point by all conventions, sorted; by ``point_key``."""
    shares: dict[Key, list[float]] = {}
    for row in results.of(Utilisation):
        if row.mfu:
            shares.setdefault(results.point_key(row.row), []).append(row.mfu.value)
    return {key: sorted(values) for key, values in shares.items()}


RULES = (
    Rule(
        IMPOSSIBLE, utilisation,
        says={ATTENTION: "{subject}: {fault} ({convention}'s FLOP; {above} such points)."},
        next={ATTENTION: "check unit and scope of the rate, the device and its peak"},
    ),
    Rule(
        PRINTED, None,
        says={NOTE: "{wrong} of {printed} printed MFU do not follow from their rows; {subject}: "
              "{fault}."},
    ),
    Rule(
        BEST, None,
        says={NOTE: "{subject}: the highest MFU, {mfu:%} of the {dtype} peak ({peak} a rank), by "
              "{convention}'s FLOP{others}."},
    ),
)  # fmt: skip


def utilisation_table(results: ExperimentResults, limit: int) -> Table | None:
    """Points with tokens, FLOP and shares of peaks; None where no tokens are known."""
    shown, shares_of = chosen(results), shares_of_points(results)
    factor, unit = scaled_unit(
        "FLOP/s", max((row.rank_flops.value for row in shown if row.rank_flops), default=0.0)
    )

    def others(row: Utilisation) -> str:
        shares = shares_of.get(results.point_key(row.row))
        return f"{percent(shares[0])} to {percent(shares[-1])}" if shares else "–"

    columns: list[Shown] = [
        ("Tokens/s of a rank", "rank_tokens", lambda row: _text(row, "rank_tokens")),
        (f"{unit} of a rank", "rank_flops", lambda row: _text(row, "rank_flops", factor)),
        ("MFU", "mfu", lambda row: _share(row, "mfu")),
        ("HFU", "hfu", lambda row: _share(row, "hfu")),
        ("Of the measured ceiling", "of_ceiling", lambda row: share_text(row.of_ceiling)),
        ("MFU by all conventions", "mfu", others),
        ("Tokens/J", "joule_tokens", lambda row: _text(row, "joule_tokens")),
    ]
    known = {name for _, name, _ in columns for row in shown if getattr(row, name) is not None}
    known |= {"mfu", "hfu"} if any(row.fault for row in shown) else set()
    kept = [(heading, name, words) for heading, name, words in columns if name in known]
    return declared_table(results, shown, kept, limit)


def _text(row: Utilisation, name: str, factor: float = 1.0) -> str:
    return with_interval(*numbers_of(getattr(row, name), factor))


def _share(row: Utilisation, name: str) -> Cell:
    share, fault = getattr(row, name), row.fault or ""
    if share is None and fault.startswith(f"{name.upper()} would be"):
        return Cell("above 100 %", True)
    return Cell(share_text(share), name == "mfu" and share is not None and bool(fault))


def _notes(results: ExperimentResults) -> list[str]:
    rows = chosen(results)
    if not rows:
        return []
    convention = CONVENTIONS[rows[0].convention]
    lines = [
        f"FLOP of a token are counted as {convention.formula} ({convention.name}: "
        f"{convention.source}); the table utilisation has all conventions "
        "(docs/methods/utilisation.md)."
    ]
    if not all(row.peak for row in rows):
        lines.append(
            "No MFU without a peak: name the site's device (peaks: {device: ...}), and of float8 "
            "its share of the FLOP (float8_share)."
        )
    return lines


SECTION = Section("Utilisation", utilisation_table, _notes)
