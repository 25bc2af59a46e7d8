"""What probes measured by size: rates over values, and allreduce times with the network's fit."""

import numpy as np
import pandas as pd

from scalesweep.analysis.network_fit import predicted_seconds
from scalesweep.aspects.probes.table import NetworkRow, SweepRow, is_probe
from scalesweep.core.formatting import finite, scaled_unit, shorten
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.figures.drawing import Drawing, drawn, evenly, interval, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

MAX_SERIES = 8
_STEPS = 60  # of a fitted line


def sweep_figures(results: ExperimentResults) -> list[Drawing]:
    """The rate of every point over the values that its runs go through, and its best repeat."""
    groups: dict[Key, list[SweepRow]] = {}
    for row in results.of(SweepRow) if is_probe(results) else ():
        groups.setdefault(results.key(row.row, row.row), []).append(row)
    shown: list[list[SweepRow]] = evenly(list(groups.values()), MAX_SERIES)
    if not shown:
        return []
    first = shown[0][0]
    factor, unit = scaled_unit(first.unit, max(row.best_rate for of in shown for row in of))
    what = " or ".join(dict.fromkeys(of[0].by for of in shown))
    labels, shared = labels_of(results, [of[0].row for of in shown], 40)
    words = any(not finite(row.value) for of in shown for row in of)
    rows = []
    for of, label in zip(shown, labels, strict=True):
        for row in of:
            at = {"x": row.value, "series": shorten(label, 40)}
            rows.append({**at, "style": "dots" if words else "", **interval(row.rate, factor, "y")})
            rows.append({**at, "style": "best", "y": row.best_rate * factor})
    frame = pd.DataFrame(rows)
    frame = frame if words else frame.sort_values("x", kind="stable")
    by = what.capitalize() + (f" [{first.value_unit}]" if first.value_unit else "")
    panel = Lines(frame, Axis(by, "values"), Axis(f"Rate [{unit}]", "log"))
    note = "Mean over runs of the median repeat, with 95 % intervals; dashes: the best repeat."
    return drawn(results, "sweep", f"rate by {what}", note, [panel], len(groups) - len(shown),
                 detail=shared)  # fmt: skip


def network_figures(results: ExperimentResults) -> list[Drawing]:
    """Times of allreduces over message sizes, with what the best fit of each range gives."""
    fits = results.of(NetworkRow)
    names = (*(name for name in results.axes if name != "ranks"), "source")
    fitted_at = {results.key(fit.row, names) for fit in fits}
    groups: dict[Key, list[SweepRow]] = {}
    for row in results.of(SweepRow) if fits else ():
        if (key := results.key(row.row, names)) in fitted_at:
            ranks = int(row.point.get("ranks") or results.entry["fixed"]["ranks"])
            groups.setdefault((*key, ranks), []).append(row)
    shown = evenly(list(groups.items()), MAX_SERIES)
    labels, shared = labels_of(results, [of[0].row for _, of in shown], 40)
    rows = []
    for (key, of), label in zip(shown, labels, strict=True):
        at = {"series": label}
        rows += [
            {**at, "style": "dots", "x": row.amount, "y": row.seconds.value * 1e6} for row in of
        ]
        for fit in fits:
            if results.key(fit.row, names) == key[:-1]:
                sizes = np.geomspace(fit.low_bytes, fit.high_bytes, _STEPS)
                bandwidth = fit.bandwidth.value if fit.bandwidth else None
                times = predicted_seconds(
                    fit.algorithm, key[-1], sizes, fit.latency.value, bandwidth
                )
                pairs = zip(sizes, times * 1e6, strict=True)
                rows += [{**at, "style": "plain", "x": x, "y": y} for x, y in pairs]
    panel = Lines(pd.DataFrame(rows), Axis("Message size [bytes]", "log"), Axis("Time [µs]", "log"))
    what = "time of an allreduce and the network's fit"
    note = (
        "Points: mean over runs of the median repeat. Lines: the fit of the algorithm that best "
        "predicts sizes that are left out."
    )
    return drawn(results, "network", what, note, [panel], len(groups) - len(shown), detail=shared)


FIGURES = (sweep_figures, network_figures)
