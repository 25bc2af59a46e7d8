"""The table ``utilisation``: tokens, FLOP and shares of peaks, by each convention.

Model FLOP/s are tokens/s times the FLOP of a token by a convention (``flop_conventions``); MFU is
that over the peak of all ranks, HFU the same with what is computed again (``TokenFlop.hardware``).
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from scalesweep.analysis.device_peaks import device_peak, mixed_peak
from scalesweep.analysis.flop_conventions import (
    CONVENTIONS,
    COUNTED,
    HFU,
    MFU,
    TokenFlop,
    flop_metric,
    token_flops,
)
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.roofline import COMPUTE, share_of
from scalesweep.analysis.stats import mean_of
from scalesweep.analysis.types import Floats
from scalesweep.config.shapes import planned_shape
from scalesweep.core.errors import UserError
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.table.declared import Estimate, PointRow, column
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
_DIGITS = range(1, 7)


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
    printed_hfu: float | None = column("HFU as the source prints it", "1", default=None)
    fault: str | None = column(
        "why a share above 1 is left out, or a printed one that does not follow from its row",
        default=None,
    )


def utilisation_rows(inputs: TableInputs) -> Iterator[Utilisation]:
    """A row per finished point and convention, where the benchmark declares a transformer."""
    data = inputs.data
    if "transformer" not in data.experiment:
        return
    halves = _half_digits(data, inputs.points)
    for point in inputs.points:
        every = parameters_at(data.experiment, point.values)
        try:
            shape = planned_shape(data.experiment, every)
        except UserError as error:
            _log.warning("%s: a point without utilisation: %s", data.experiment["name"], error)
            continue
        rates = token_rates(data, point, shape, int(every["ranks"])) if shape else None
        if shape and rates:
            yield from _rows(inputs, point, shape, rates, every, halves)


MAKERS = (Maker(Utilisation, utilisation_rows),)


class Rates(NamedTuple):
    """Tokens/s of all ranks: of each repeat, and the interval of their mean."""

    values: Floats
    estimate: Estimate
    ranks: int


def token_rates(data: ExperimentData, point: Point, shape: ModelShape, ranks: int) -> Rates | None:
    """Tokens/s of a point; None where its runs do not say it.

    From tokens/s before samples/s before the time of a step; of several metrics from the main one,
    then one of all ranks.
    """
    order = {}
    for name, quantity in data.quantities.items():
        kind = _RATES.index(quantity.unit) if quantity.unit in _RATES else len(_RATES)
        step = name in _STEP_TIMES and quantity.unit in _SECONDS
        wanted = "higher" if kind < len(_RATES) else "lower" if step else None
        if quantity.better == wanted and data.repeats(point, (name, "run")).size:
            main = name == data.experiment["main_metric"]
            order[name] = (kind, not main, quantity.scope == "rank")
    if not order:
        return None
    name = min(order, key=order.__getitem__)
    quantity, kind = data.quantities[name], order[name][0]
    batch = shape.global_batch or math.nan

    def tokens(values: Any) -> Floats:
        if kind == len(_RATES):
            return np.asarray(batch * shape.sequence / (values * _SECONDS[quantity.unit]))
        whole = values * (ranks if quantity.scope == "rank" else 1)
        return np.asarray(whole * (1 if kind == 0 else shape.sequence))

    values, mean = data.repeats(point, (name, "run")), data.mean(point, (name, "run"))
    if not (values > 0).all() or np.isnan(tokens(values)).any():
        return None
    ends = sorted(float(tokens(end)) for end in (mean.low, mean.high) if end is not None)
    return Rates(tokens(values), Estimate(float(tokens(mean.value)), *ends), ranks)


def _rows(
    inputs: TableInputs,
    point: Point,
    shape: ModelShape,
    rates: Rates,
    every: Mapping[str, Any],
    halves: Mapping[str, float],
) -> Iterator[Utilisation]:
    data, tokens = inputs.data, rates.estimate
    if shape.dtype == FLOAT32 and point.source == "measured":
        shape = replace(shape, dtype=numbers_in(data, point))  # tf32 where that was in force
    stated = _peak(inputs, DATASHEET, shape, every)
    probed = _peak(inputs, MEASURED, shape, every)
    printed = _printed(data, point)
    batch = float((shape.global_batch or 0) * shape.sequence)
    fast, slow = (batch / end if end else None for end in (tokens.high, tokens.low))
    head = {
        **point_columns(point),
        "tokens": tokens,
        "rank_tokens": tokens.times(1 / rates.ranks),
        "step": Estimate(batch / tokens.value, fast, slow) if batch else None,
        "joule_tokens": _per_joule(data, point, shape),
        "dtype": shape.dtype,
        "peak": device_peak(shape) or (stated and stated.value),
        "ceiling": probed and probed.value,
    }
    flops = {**token_flops(shape), **_counted(data, point, shape)}
    for name in CONVENTIONS:
        shares = printed.get(name, {})
        known: dict[str, Any] = {"printed_mfu": shares.get(MFU), "printed_hfu": shares.get(HFU)}
        if name in flops:
            row = Utilisation(**head, **known, convention=name, token_flop=flops[name].model)
            row = _with_shares(row, shape, flops[name], rates, probed)
            yield _judged(row, halves.get(name, 0.0))
        elif shares:
            yield Utilisation(**head, **known, convention=name)


def _with_shares(
    row: Utilisation, shape: ModelShape, flop: TokenFlop, rates: Rates, probed: Estimate | None
) -> Utilisation:
    """The row with FLOP/s and what they are of peaks."""
    each, tokens = flop.model / rates.ranks, rates.estimate
    row = replace(row, rank_flops=tokens.times(each))
    if (peak := row.peak) is not None:
        row = replace(row, mfu=tokens.times(each / peak))
        if shape.recompute == "none":
            row = replace(row, hfu=row.mfu)
        elif shape.recompute is not None and row.convention != COUNTED:
            again = flop.hardware(shape.recompute) / rates.ranks
            row = replace(row, hfu=tokens.times(again / peak))
    if probed is not None:
        row = replace(
            row, of_ceiling=share_of(rates.values * each / probed.value, probed.over(1.0))
        )
    return row


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
        ceiling.dtype: ceiling
        for ceiling in inputs.machine.ceilings
        if (ceiling.kind, ceiling.stated) == (COMPUTE, stated)
    }
    flops = {name: ceiling.rate.value for name, ceiling in of_type.items()}
    dtype = shape.dtype or ""
    value = mixed_peak(flops, dtype, shape.float8_share)
    if value is None:
        return None
    devices = next((c.devices for c in inputs.machine.ceilings if c.devices), 0)
    here = min(int(every["ranks"]), int(every.get("ranks_per_node") or 1))
    ceiling = of_type.get(dtype)
    if devices and ceiling is not None and ceiling.ranks:
        devices = min(devices, ceiling.ranks)
    share = 1 / (devices or here)
    same = ceiling is not None and ceiling.rate.value == value  # no mix of two types
    return (ceiling.rate if ceiling and same else Estimate(value)).times(share)


def _counted(data: ExperimentData, point: Point, shape: ModelShape) -> dict[str, TokenFlop]:
    """FLOP of a token as the program's own counter found them."""
    values = data.repeats(point, (_FLOP_PER_STEP, "run"))
    if not values.size or shape.global_batch is None:
        return {}
    return {COUNTED: TokenFlop(float(values.mean()) / (shape.global_batch * shape.sequence), 0.0)}


def _per_joule(data: ExperimentData, point: Point, shape: ModelShape) -> Estimate | None:
    joules = data.repeats(point, (_JOULES, "run"))
    if not joules.size or not (joules > 0).all():
        return None
    return mean_of(shape.sequence / joules)


def _printed(data: ExperimentData, point: Point) -> dict[str, dict[str, float]]:
    """MFU and HFU that the runs of a point report themselves, by convention."""
    printed: dict[str, dict[str, float]] = {}
    for name, stem, convention in _shares(data):
        values = data.repeats(point, (name, "run"))
        if values.size:
            printed.setdefault(convention, {})[stem] = float(values.mean())
    return printed


def _shares(data: ExperimentData) -> Iterator[tuple[str, str, str]]:
    """The metrics that are MFU or HFU by a known convention: name, which of both, convention."""
    for name in data.quantities:
        metric = flop_metric(name)
        if metric and metric.convention and metric.stem in (MFU, HFU):
            yield name, metric.stem, metric.convention.name


def _half_digits(data: ExperimentData, points: Sequence[Point]) -> dict[str, float]:
    """Half of the last digit of the MFU that sources print, by convention; only where all of an
    experiment end with it."""
    halves = {}
    for name, stem, convention in _shares(data):
        values = np.concatenate([data.repeats(point, (name, "run")) for point in points])
        for digits in _DIGITS if stem == MFU else ():
            if values.size and np.abs(values - values.round(digits)).max() < 1e-9:
                halves[convention] = 0.5 * 10.0**-digits
                break
    return halves
