"""Accuracy against wall time and against energy, and the loss by epoch."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import counted, finite, number, scaled_unit, shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.training_curves import (
    Curves,
    accuracy_curve,
    column_of,
    curves,
    final_measure,
    is_higher_better,
    label_of,
    learns,
    targets,
)
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


def accuracy_figures(study: ExperimentResults) -> list[Drawing]:
    """Accuracy, error or loss over time and energy, and the losses by epoch, as far as known."""
    found = curves(study)
    name = accuracy_curve(study, found)
    if name is None:
        return _final_over_energy(study)
    over_energy = _over(study, found, name, "energy") or _final_over_energy(study)
    return _over(study, found, name, "time") + over_energy + _losses(study, found)


def legend(figure: Figure, study: ExperimentResults, handles: list[Line2D]) -> None:
    """A legend below, titled with the parameters' names; the figure grows with it."""
    widest = max((len(str(handle.get_label())) for handle in handles), default=0)
    room = figure.get_figwidth() / NARROW
    columns = max(1, int(room * (1 if widest > 30 else 2 if widest > 16 else 3)))
    figure.legend(
        handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2,
        title=shorten(", ".join(study.leaders), int(60 * room)) or None, title_fontsize=8,
        alignment="left",
    )  # fmt: skip
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + 0.165 * max(0, rows - 2))


def _line(rows: Sequence[tuple[float | None, ...]]) -> Line:
    return [(x, y) for x, y in rows if x is not None and y is not None]


def _over(study: ExperimentResults, found: Sequence[Curves], name: str, what: str) -> list[Drawing]:
    """One line per point: its mean over repeats, and the repeats themselves faintly."""
    over = column_of(study, "epoch_ends") if what == "time" else column_of(study, "energy")
    both = (over, column_of(study, name))
    drawn = [one for one in found if _line(one.mean(both))]
    if not drawn:
        return []
    some = evenly(drawn)
    ends = [_line(one.mean(both))[-1][0] for one in some]
    factor, unit = scaled_unit("s" if what == "time" else "J", max(ends))
    figure = Figure(figsize=(NARROW, 4.2))
    words = "wall time" if what == "time" else "energy"
    head = f"{study.name}: {_lower(label_of(name))} against {words}{study.mark}"
    heading(figure, head)
    ax = figure.subplots()
    handles, values, moments = [], [], []
    for index, one in enumerate(some):
        style = look(index)
        line = [(x * factor, y) for x, y in _line(one.mean(both))]
        if len(one.repeats) > 1:
            for run in one.repeats:
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
        handles.append(Line2D([], [], label=values_of(study, one.point), **style))
    goals = targets(study, name)[:3]
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
    legend(figure, study, handles)
    lacking = len(found) - len(drawn)
    text = caption(
        study, [*_point_rows(study, drawn)], [],
        "Markers: end of each epoch, validation included." if what == "time" else
        "Markers: end of each epoch; energy of all hosts since the first epoch began.",
        "Lines: means over repeats, as long as all of them ran; thin lines: single repeats."
        if any(len(one.repeats) > 1 for one in some) else "",
        "Dotted: the target." if goals else "",
        left_out_words(len(drawn) - len(some)),
        f"{counted(lacking, 'point')} not drawn: power was not sampled throughout, or not at all."
        if lacking and what == "energy" else "",
        _dummy_words(study),
    )  # fmt: skip
    alt = f"{head}. {_ends_in_words(study, some, both, factor, unit)}"
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


def _point_rows(study: ExperimentResults, found: Sequence[Curves]) -> list[Row]:
    keys = {(*study.key(one.point, study.axes), one.source) for one in found}
    return [
        row for row in study.points if (*study.key(row, study.axes), str(row["source"])) in keys
    ]


def _dummy_words(study: ExperimentResults) -> str:
    dummy = any(not learns(study, row) for row in study.points)
    return "Runs with dummy input are left out: they learn nothing." if dummy else ""


def _ends_in_words(
    study: ExperimentResults,
    some: Sequence[Curves],
    both: tuple[str, str],
    factor: float,
    unit: str,
) -> str:
    parts = []
    for one in some[:4]:
        x, y = _line(one.mean(both))[-1]
        parts.append(f"{study.describe(one.point)}: {number(y)} after {number(x * factor)} {unit}")
    more = f"; and {len(some) - 4} more lines" if len(some) > 4 else ""
    return f"{'; '.join(parts)}{more}."


def _losses(study: ExperimentResults, found: Sequence[Curves]) -> list[Drawing]:
    """Training and validation loss by epoch, side by side on one scale."""
    names = [
        name
        for name in ("loss", "validation_loss")
        if any(_line(one.mean(("epoch", column_of(study, name)))) for one in found)
    ]
    if not names:
        return []
    some = evenly(found)
    figure = Figure(figsize=(WIDE if len(names) > 1 else NARROW, 3.6))
    head = f"{study.name}: {' and '.join(_lower(label_of(n)) for n in names)} by epoch{study.mark}"
    heading(figure, head)
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    values: list[float] = []
    for ax, name in zip(axes, names, strict=True):
        for index, one in enumerate(some):
            pairs = _line(one.mean(("epoch", column_of(study, name))))
            _plot(ax, [(epoch + 1, y) for epoch, y in pairs], look(index))
            values += [y for _, y in pairs]
        ax.set_title(label_of(name))
        ax.set_xlabel("Epochs trained")
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    _value_axis(axes[0], names[0], values)
    axes[0].set_ylabel("Loss" if len(names) > 1 else label_of(names[0]))
    handles = [
        Line2D([], [], label=values_of(study, one.point), **look(index))
        for index, one in enumerate(some)
    ]
    legend(figure, study, handles)
    text = caption(
        study, _point_rows(study, found), [],
        "Means over ranks and repeats. The training loss is computed during the epoch, while the "
        "weights still change.",
        left_out_words(len(found) - len(some)), _dummy_words(study),
    )  # fmt: skip
    span = f"from {number(max(values))} to {number(min(values))}"
    alt = f"{head}: {counted(len(some), 'line')}, {span}."
    return [Drawing("accuracy-loss", head, text, alt, figure)]


def _final_over_energy(study: ExperimentResults) -> list[Drawing]:
    """One mark per run: its final accuracy against the energy of the whole program."""
    final, energy = final_measure(study), study.measures.get("energy")
    if final is None or energy is None:
        return []
    groups: dict[tuple[Any, ...], list[Row]] = {}
    wanted = [column(metric, "mean", "run") for metric in ("energy", final.metric)]
    for row in study.rows("runs"):
        if learns(study, row) and all(finite(row.get(name)) for name in wanted):
            groups.setdefault((*study.key(row, study.axes), row["source"]), []).append(row)
    if not groups:
        return []
    some = evenly(list(groups.values()))
    figure = Figure(figsize=(NARROW, 4.2))
    head = f"{study.name}: {_lower(final.label)} against energy{study.mark}"
    heading(figure, head)
    ax = figure.subplots()
    handles = []
    for index, rows in enumerate(some):
        style: dict[str, Any] = {**look(index), "linestyle": ""}
        ax.plot(
            [row[wanted[0]] * energy.factor for row in rows], [row[wanted[1]] for row in rows],
            markeredgecolor="white", markeredgewidth=0.5, **style,
        )  # fmt: skip
        handles.append(Line2D([], [], label=values_of(study, rows[0]), **style))
    goals = targets(study, final.metric.removeprefix("final_"))[:3]
    for goal in goals:
        ax.axhline(goal, color=FAINT, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
    ax.set_xlabel(f"Energy of the whole run [{energy.unit}]")
    ax.set_ylabel(final.label)
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    ax.yaxis.set_major_formatter(FuncFormatter(tick))
    ax.margins(0.08)
    legend(figure, study, handles)
    every = [row for rows in groups.values() for row in rows]
    points = {(*study.key(row, study.axes), row["source"]) for row in every}
    text = caption(
        study,
        [r for r in study.points if (*study.key(r, study.axes), r["source"]) in points], [],
        "One marker per run; energy of all hosts from the program's start to its end.",
        "Dotted: the target." if goals else "",
        left_out_words(len(groups) - len(some)), _dummy_words(study),
    )  # fmt: skip
    alt = f"{head}: {counted(len(every), 'run')} of {counted(len(groups), 'point')}."
    return [Drawing("accuracy-energy", head, text, alt, figure)]
