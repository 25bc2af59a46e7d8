"""MFU and HFU that a table prints, against those that its other columns give."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.analysis.device_peaks import device_peak
from scalesweep.analysis.flop_conventions import HFU, MFU, TokenFlop, flop_metric
from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.utilisation import RateSource, rate_source, unlike
from scalesweep.importers.imported_run import ImportedRun
from scalesweep.importers.table_file import Row
from scalesweep.importers.table_map import MetricMap, TableMap
from scalesweep.importers.table_printed import PrintedCheck, half_digit, rounding, side_of

# Peaks are printed rounded: 989, 989.4 and 989.5 TFLOP/s are one.
_PEAKS = 0.0006


@dataclass(frozen=True)
class _Recomputed:
    """What a row gives for a printed utilisation."""

    value: float
    flop: TokenFlop
    source: RateSource
    shape: ModelShape


def check_utilisation(table_map: TableMap, runs: Sequence[ImportedRun]) -> list[PrintedCheck]:
    """Compare every printed MFU and HFU with what tokens/s, the model and the data sheet's peak
    give; those whose rows do not state all of it are left out.

    They agree within half of the last digits printed, and 0.06 %, by which peaks are rounded.
    """
    rows = {row.line: row for row in table_map.table.rows}
    checks = []
    for metric in table_map.metrics.values():
        known = flop_metric(metric.name)
        if known is None or known.stem not in (MFU, HFU) or known.convention is None:
            continue
        agree, others = 0, []
        for run in runs:
            given = _recomputed(table_map, metric, run)
            if given is None or metric.name not in run.metrics:
                continue
            line = _difference(table_map, metric, run, rows[run.line or 0], given)
            if line is None:
                agree += 1
            else:
                others.append(line)
        if agree or others:
            checks.append(PrintedCheck(metric.name, agree, tuple(others)))
    return checks


def _recomputed(table_map: TableMap, metric: MetricMap, run: ImportedRun) -> _Recomputed | None:
    known = flop_metric(metric.name)
    shape = table_map.transformer and table_map.transformer.at(run.point, "the map")
    if not known or not known.convention or not known.convention.flop or not shape:
        return None
    flop, peak = known.convention.flop(shape), device_peak(shape)
    source = rate_source(run.metrics, None)
    if flop is None or peak is None or source is None:
        return None
    ranks = int(run.point["ranks"])
    tokens = source.tokens_per_second(float(run.metrics[source.metric]["value"]), shape, ranks)
    if tokens is None or (known.stem == HFU and shape.recompute is None):
        return None
    each = flop.model if known.stem == MFU else flop.hardware(shape.recompute or "none")
    return _Recomputed(tokens * each / (ranks * peak), flop, source, shape)


def _difference(
    table_map: TableMap, metric: MetricMap, run: ImportedRun, row: Row, given: _Recomputed
) -> str | None:
    """None where a printed utilisation comes out, else what is printed and what comes."""
    printed = float(run.metrics[metric.name]["value"])
    side = side_of(table_map, run)
    digits = half_digit(metric.values[side].mean, row)
    of_rate = rounding(table_map.metrics[given.source.metric].values[side], row)
    if abs(printed - given.value) <= digits + given.value * (of_rate + _PEAKS):
        return None
    cause = unlike(printed, given.value, given.shape, given.flop, int(run.point["ranks"]))
    place = f"{table_map.table.file}:{run.line}: {metric.name}"
    because = f" ({cause})" if cause else ""
    return f"{place}: printed {printed:.6g}, its own row gives {given.value:.6g}{because}"
