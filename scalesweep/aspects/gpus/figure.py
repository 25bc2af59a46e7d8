"""The figure ``gpus``: the main metric of each point over the clock of its GPUs."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from scalesweep.aspects.gpus.table import PointGpus, clock_of
from scalesweep.core.formatting import number
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.style import BLUE, Drawing, bounds, caption, heading, tick, values_of

MOST = 24  # points whose names have room
CLOCKS = {"memory_clocks": "Memory clock [MHz]", "core_clocks": "Highest clock of the cores [MHz]"}
Marks = list[tuple[float, Row]]  # clock and point


def gpu_figures(results: ExperimentResults) -> list[Drawing]:
    """A figure with a plane per clock in which the GPUs of points differ; none without any."""
    measure = results.main
    if measure is None:
        return []
    phase = measure.steady_phase
    every_clock = {label: _marks(results, measure, phase, name) for name, label in CLOCKS.items()}
    planes = {k: marks for k, marks in every_clock.items() if len({c for c, _ in marks}) > 1}
    if not planes or max(map(len, planes.values())) > MOST:
        return []
    figure = Figure(figsize=(4.4 * len(planes), 3.6))
    head = f"{results.name}: {measure.label.lower()} by GPU clock{results.mark}"
    heading(figure, head, ", ".join(results.leaders))
    plots = figure.subplots(1, len(planes), sharey=True, squeeze=False)[0]
    for ax, (label, marks) in zip(plots, planes.items(), strict=True):
        for clock, row in marks:
            ax.plot([clock], [measure.value(row, "mean", phase)], "o", color=BLUE, markersize=5)
            if limits := bounds(measure, row, phase):
                ax.plot([clock, clock], limits[:2], color=BLUE, linewidth=1.2)
        for clock, height, words in _labels(results, measure, phase, marks):
            ax.annotate(
                words, (clock, height), (6, 0), textcoords="offset points", va="center", fontsize=8
            )
        ax.margins(x=0.25, y=0.15)
        ax.set_xlabel(label)
        ax.xaxis.set_major_formatter(FuncFormatter(tick))
        ax.yaxis.set_major_formatter(FuncFormatter(tick))
    plots[0].set_ylabel(measure.axis_label)
    shown = [row for _, row in max(planes.values(), key=len)]
    text = caption(
        results, shown, [phase], "Points whose GPUs have unlike clocks are in the table gpus only.",
        "The vertical axis does not begin at 0.",
    )  # fmt: skip
    return [Drawing("gpus", head, text, f"{head}. {_in_words(measure, phase, planes)}", figure)]


def _marks(results: ExperimentResults, measure: Measure, phase: str, name: str) -> Marks:
    """The points of which all GPUs have one clock, with it."""
    points = {(*results.key(row), row["source"]): row for row in results.points}
    marks = []
    for entry in results.of(PointGpus):
        clock = clock_of(getattr(entry, name))
        row = points.get((*results.key(entry.row), entry.source))
        if clock is not None and row and measure.value(row, "mean", phase) is not None:
            marks.append((clock, row))
    return marks


def _labels(
    results: ExperimentResults, measure: Measure, phase: str, marks: Marks
) -> Iterator[tuple[float, float, str]]:
    """Clock, height and names of points; those that would cover each other share a label."""
    heights = _values(measure, phase, [row for _, row in marks])
    room = 0.05 * (max(heights) - min(heights))
    order = sorted(range(len(marks)), key=lambda place: (marks[place][0], heights[place]))
    group: list[int] = []
    for place, after in zip(order, [*order[1:], None], strict=True):
        group.append(place)
        clock = marks[place][0]
        if after is None or marks[after][0] != clock or heights[after] - heights[place] > room:
            names = "; ".join(values_of(results, marks[n][1]) for n in sorted(group))
            yield clock, sum(heights[n] for n in group) / len(group), names
            group = []


def _in_words(measure: Measure, phase: str, planes: dict[str, Marks]) -> str:
    """What the planes show: the range of the metric at each clock."""
    sentences = []
    for label, marks in planes.items():
        for clock in sorted({clock for clock, _ in marks}):
            values = _values(measure, phase, [row for each, row in marks if each == clock])
            sentences.append(
                f"{label.partition(' [')[0]} {clock:g} MHz: "
                f"{number(min(values))} to {number(max(values))} {measure.unit}."
            )
    return " ".join(sentences)


def _values(measure: Measure, phase: str, rows: Sequence[Row]) -> list[float]:
    return [value for row in rows if (value := measure.value(row, "mean", phase)) is not None]


FIGURES = (gpu_figures,)
