"""Accuracy against wall time and against energy, and the loss by epoch."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scalesweep.analysis.metrics import column
from scalesweep.aspects.training.curves import (
    Curves,
    accuracy_curve,
    column_of,
    curves,
    final_measure,
    is_higher_better,
    label_of,
    targets,
)
from scalesweep.core.formatting import counted, finite, number, scaled_unit, shorten
from scalesweep.experiment.learning import learns
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.style import (
    FAINT,
    INK,
    NARROW,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    left_out_words,
    log_axis,
    look,
    tick,
    values_of,
)

MANY_EPOCHS = 40  # more markers than that would hide the line
FROM_LOG = 50  # lines whose ends are further apart need a logarithmic axis
ACCURATE = 8  # errors that span more than this factor do too
Line = list[tuple[float, float]]


def accuracy_figures(results: ExperimentResults) -> list[Drawing]:
    """Accuracy, error or loss over time and energy, and the losses by epoch, as far as known."""
    sketches = curves(results)
    name = accuracy_curve(results, sketches)
    if name is None:
        return _final_over_energy(results)
    over_energy = _over(results, sketches, name, "energy") or _final_over_energy(results)
    return _over(results, sketches, name, "time") + over_energy + _losses(results, sketches)


def legend(figure: Figure, results: ExperimentResults, handles: list[Line2D]) -> None:
    """A legend below, titled with the parameters' names; the figure grows with it."""
    widest = max((len(str(handle.get_label())) for handle in handles), default=0)
    room = figure.get_figwidth() / NARROW
    columns = max(1, int(room * (1 if widest > 30 else 2 if widest > 16 else 3)))
    figure.legend(
        handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2,
        title=shorten(", ".join(results.leaders), int(60 * room)) or None, title_fontsize=8,
        alignment="left",
    )  # fmt: skip
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + 0.165 * max(0, rows - 2))


def _line(rows: Sequence[tuple[float | None, ...]]) -> Line:
    return [(x, y) for x, y in rows if x is not None and y is not None]


def _over(
    results: ExperimentResults, drawn_sketches: Sequence[Curves], name: str, what: str
) -> list[Drawing]:
    """One line per point: its mean over repeats, and the repeats themselves faintly."""
    over = column_of(results, "epoch_ends") if what == "time" else column_of(results, "energy")
    both = (over, column_of(results, name))
    drawn = [curve for curve in drawn_sketches if _line(curve.mean(both))]
    if not drawn:
        return []
    chosen = evenly(drawn)
    ends = [_line(curve.mean(both))[-1][0] for curve in chosen]
    factor, unit = scaled_unit("s" if what == "time" else "J", max(ends))
    figure = Figure(figsize=(NARROW, 4.2))
    words = "wall time" if what == "time" else "energy"
    head = f"{results.name}: {_lower(label_of(name))} against {words}{results.mark}"
    heading(figure, head)
    ax = figure.subplots()
    handles, values, moments = [], [], []
    for index, curve in enumerate(chosen):
        style = look(index)
        line = [(x * factor, y) for x, y in _line(curve.mean(both))]
        if len(curve.repeats) > 1:
            for run in curve.repeats:
                single = _line([(row.get(both[0]), row.get(both[1])) for row in run])
                ax.plot(
                    [x * factor for x, _ in single], [y for _, y in single],
                    color=style["color"], linestyle=style["linestyle"], linewidth=0.7, alpha=0.35,
                    zorder=1,
                )  # fmt: skip
                values += [y for _, y in single]
        _plot(ax, line, style)
        values += [y for _, y in line]
        moments += [x for x, _ in line]
        handles.append(Line2D([], [], label=values_of(results, curve.point), **style))
    goals = targets(results, name)[:3]
    for goal in goals:
        ax.axhline(goal, color=INK, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
        handles.append(
            Line2D([], [], color=INK, linewidth=1, linestyle=(0, (1, 2)), label=f"target {goal:g}")
        )
    ax.set_xlabel(f"{words.capitalize()} since training began [{unit}]")
    if min(ends) > 0 and max(ends) / min(ends) > FROM_LOG and min(moments) > 0:
        ax.set_xscale("log")
    else:
        ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    _value_axis(ax, name, [*values, *goals])
    legend(figure, results, handles)
    lacking = len(drawn_sketches) - len(drawn)
    text = caption(
        results, [*_point_rows(results, drawn)], [],
        "Markers: end of each epoch, validation included." if what == "time" else
        "Markers: end of each epoch; energy of all hosts since the first epoch began.",
        "Lines: means over repeats, as long as all of them ran; thin lines: single repeats."
        if any(len(curve.repeats) > 1 for curve in chosen) else "",
        "Dotted: the target." if goals else "",
        left_out_words(len(drawn) - len(chosen)),
        f"{counted(lacking, 'point')} not drawn: power was not sampled throughout, or not at all."
        if lacking and what == "energy" else "",
        _dummy_words(results),
    )  # fmt: skip
    alt = f"{head}. {_ends_in_words(results, chosen, both, factor, unit)}"
    return [Drawing(f"accuracy-{what}", head, text, alt, figure)]


def _lower(label: str) -> str:
    """A label inside a sentence: abbreviations stay."""
    return label[:1].lower() + label[1:]


def _plot(ax: Axes, line: Line, style: dict[str, Any]) -> None:
    crowded = len(line) > MANY_EPOCHS
    every = max(1, len(line) // 20) if crowded else 1
    ax.plot(
        [x for x, _ in line], [y for _, y in line], markevery=every, markeredgecolor="white",
        markeredgewidth=0.5, zorder=3, **style,
    )  # fmt: skip


def _value_axis(ax: Axes, name: str, values: Sequence[float]) -> None:
    ax.set_ylabel(label_of(name))
    if not is_higher_better(name) and min(values) > 0 and max(values) / min(values) > ACCURATE:
        log_axis(ax, values)
    ax.yaxis.set_major_formatter(FuncFormatter(tick))


def _point_rows(results: ExperimentResults, curves: Sequence[Curves]) -> list[Row]:
    keys = {(*results.key(curve.point, results.axes), curve.source) for curve in curves}
    return [
        row
        for row in results.points
        if (*results.key(row, results.axes), str(row["source"])) in keys
    ]


def _dummy_words(results: ExperimentResults) -> str:
    dummy = any(not learns(results, row) for row in results.points)
    return "Runs with dummy input are left out: they learn nothing." if dummy else ""


def _ends_in_words(
    results: ExperimentResults,
    curves: Sequence[Curves],
    both: tuple[str, str],
    factor: float,
    unit: str,
) -> str:
    parts = []
    for curve in curves[:4]:
        x, y = _line(curve.mean(both))[-1]
        parts.append(
            f"{results.describe(curve.point)}: {number(y)} after {number(x * factor)} {unit}"
        )
    more = f"; and {len(curves) - 4} more lines" if len(curves) > 4 else ""
    return f"{'; '.join(parts)}{more}."


def _losses(results: ExperimentResults, drawn_curves: Sequence[Curves]) -> list[Drawing]:
    """Training and validation loss by epoch, side by side on one scale."""
    names = [
        name
        for name in ("loss", "validation_loss")
        if any(_line(curve.mean(("epoch", column_of(results, name)))) for curve in drawn_curves)
    ]
    if not names:
        return []
    curves = evenly(drawn_curves)
    figure = Figure(figsize=(WIDE if len(names) > 1 else NARROW, 3.6))
    head = (
        f"{results.name}: {' and '.join(_lower(label_of(n)) for n in names)} by epoch{results.mark}"
    )
    heading(figure, head)
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    values: list[float] = []
    for ax, name in zip(axes, names, strict=True):
        for index, curve in enumerate(curves):
            pairs = _line(curve.mean(("epoch", column_of(results, name))))
            _plot(ax, [(epoch + 1, y) for epoch, y in pairs], look(index))
            values += [y for _, y in pairs]
        ax.set_title(label_of(name))
        ax.set_xlabel("Epochs trained")
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    _value_axis(axes[0], names[0], values)
    axes[0].set_ylabel("Loss" if len(names) > 1 else label_of(names[0]))
    handles = [
        Line2D([], [], label=values_of(results, curve.point), **look(index))
        for index, curve in enumerate(curves)
    ]
    legend(figure, results, handles)
    text = caption(
        results, _point_rows(results, drawn_curves), [],
        "Means over ranks and repeats. The training loss is computed during the epoch, while the "
        "weights still change.",
        left_out_words(len(drawn_curves) - len(curves)), _dummy_words(results),
    )  # fmt: skip
    span = f"from {number(max(values))} to {number(min(values))}"
    alt = f"{head}: {counted(len(curves), 'line')}, {span}."
    return [Drawing("accuracy-loss", head, text, alt, figure)]


def _final_over_energy(results: ExperimentResults) -> list[Drawing]:
    """One mark per run: its final accuracy against the energy of the whole program."""
    final, energy = final_measure(results), results.measures.get("energy")
    if final is None or energy is None:
        return []
    groups: dict[tuple[Any, ...], list[Row]] = {}
    wanted = [column(metric, "mean", "run") for metric in ("energy", final.metric)]
    for row in results.rows("runs"):
        if learns(results, row) and all(finite(row.get(name)) for name in wanted):
            groups.setdefault((*results.key(row, results.axes), row["source"]), []).append(row)
    if not groups:
        return []
    chosen = evenly(list(groups.values()))
    figure = Figure(figsize=(NARROW, 4.2))
    head = f"{results.name}: {_lower(final.label)} against energy{results.mark}"
    heading(figure, head)
    ax = figure.subplots()
    handles = []
    for index, rows in enumerate(chosen):
        style: dict[str, Any] = {**look(index), "linestyle": ""}
        ax.plot(
            [row[wanted[0]] * energy.factor for row in rows], [row[wanted[1]] for row in rows],
            markeredgecolor="white", markeredgewidth=0.5, **style,
        )  # fmt: skip
        handles.append(Line2D([], [], label=values_of(results, rows[0]), **style))
    goals = targets(results, final.metric.removeprefix("final_"))[:3]
    for goal in goals:
        ax.axhline(goal, color=FAINT, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
    ax.set_xlabel(f"Energy of the whole run [{energy.unit}]")
    ax.set_ylabel(final.label)
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    ax.yaxis.set_major_formatter(FuncFormatter(tick))
    ax.margins(0.08)
    legend(figure, results, handles)
    every = [row for rows in groups.values() for row in rows]
    points = {(*results.key(row, results.axes), row["source"]) for row in every}
    text = caption(
        results,
        [r for r in results.points if (*results.key(r, results.axes), r["source"]) in points], [],
        "One marker per run; energy of all hosts from the program's start to its end.",
        "Dotted: the target." if goals else "",
        left_out_words(len(groups) - len(chosen)), _dummy_words(results),
    )  # fmt: skip
    alt = f"{head}: {counted(len(every), 'run')} of {counted(len(groups), 'point')}."
    return [Drawing("accuracy-energy", head, text, alt, figure)]


FIGURES = (accuracy_figures,)
