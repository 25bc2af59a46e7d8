"""The figures of a mesh: what a step is made of, how pipelines idle, and the stages of each."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from scalesweep.analysis.mesh_step import TERMS
from scalesweep.aspects.mesh.section import LABELS, NOTABLE
from scalesweep.aspects.mesh.table import MeshStep, PipelineIdle, PipelineStage
from scalesweep.core.formatting import counted, number, percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    in_lines,
    points_shown,
)

MAX_POINTS, MAX_PANELS = 16, 6
_COLUMNS = 3
# Computation blue, waiting and exchange by axis of the mesh in colours of their own.
_LOOKS = {
    "least": ("#0072B2", ""), "recompute": ("#56B4E9", "////"), "slower": ("#56B4E9", ""),
    "compute": ("#0072B2", ""), "optimizer": ("#7A5195", ""), "input": ("#009E73", ""),
    "host": ("#7A5195", "////"), "imbalance": ("#D55E00", ""), "data": ("#CC79A7", ""),
    "tensor": ("#CC79A7", "xxxx"), "pipeline": ("#E69F00", ""), "barrier": ("#F0E442", ""),
    "rest": ("#9aa1ab", ""),
}  # fmt: skip


def mesh_figures(results: ExperimentResults) -> list[Drawing]:
    """A bar for each point, of the terms of its step; beside it the idle time of pipelines."""
    terms: dict[str, list[MeshStep]] = {}
    for row in results.of(MeshStep):
        terms.setdefault(_key(results, row), []).append(row)
    if not terms:
        return []
    keys = evenly(list(terms), MAX_POINTS)
    idle = {_key(results, row): row for row in results.of(PipelineIdle)}
    drawn = [terms[key][0] for key in keys]
    several = any(key in idle for key in keys)
    figure = Figure(figsize=(WIDE, 1.5 + 0.34 * len(keys)))
    head = f"{results.name}: what a step is made of{results.mark}"
    heading(figure, head)
    axes = figure.subplots(
        1,
        2 if several else 1,
        squeeze=False,
        sharey=True,
        width_ratios=[2.6, 1] if several else [1],
    )[0]
    _bars(axes[0], [terms[key] for key in keys])
    places = range(len(keys))
    names = [in_lines(results.describe(row.row), 44) for row in drawn]
    axes[0].set_yticks(places, names, fontsize=8)
    axes[0].invert_yaxis()
    if several:
        _idle(axes[1], [idle.get(key) for key in keys])
    figure.legend(loc="outside lower left", ncols=5, columnspacing=1.2, handlelength=1.4)
    text = caption(
        results, [row.row for row in drawn], [],
        "Mean over runs of the rank whose computation is the lower median; intervals are in the "
        "table mesh_steps.",
        "Idle / computing: waiting of the ranks of a pipeline over their passes, measured with its "
        "95 % interval, and by (p - 1) / (v m) for p stages, v on a rank, m micro-batches."
        if several else "",
        f"{counted(len(terms) - len(keys), 'more point')} in the tables."
        if len(terms) > len(keys) else "",
    )  # fmt: skip
    first = drawn[0]
    alt = f"{head}: for example {number(first.step)} ms at {results.describe(first.row)}."
    shown = points_shown(results, [row.row for row in drawn])
    return [Drawing("mesh-steps", head, text, alt, figure, shown)]


def _key(results: ExperimentResults, row: MeshStep | PipelineIdle | PipelineStage) -> str:
    return repr((*results.key(row.row, results.axes), row.source))


def _bars(ax: Axes, groups: Sequence[Sequence[MeshStep]]) -> None:
    """Stacked bars of the terms; what is negative (of kernels faster than the peak says) to the
    left."""
    of = [{row.term: row for row in rows} for rows in groups]
    ends, starts = [0.0] * len(of), [0.0] * len(of)
    for term in TERMS:
        if not any(term in row and abs(row[term].share) >= NOTABLE for row in of):
            continue
        colour, hatch = _LOOKS[term]
        for place, rows in enumerate(of):
            value = rows[term].value.value if term in rows else 0.0
            side = ends if value >= 0 else starts
            label = LABELS[term].lower() if place == 0 else None
            ax.barh(
                place, value, left=side[place], height=0.7, color=colour, hatch=hatch,
                edgecolor="white", lw=0.4, label=label,
            )  # fmt: skip
            side[place] += value
    ax.axvline(0, color=INK, lw=0.8)
    ax.set_xlabel("Time of a step [ms]")
    ax.grid(visible=False, axis="y")


def _idle(ax: Axes, rows: Sequence[PipelineIdle | None]) -> None:
    """Measured idle time with its interval, and what the formula has."""
    known = [(place, row) for place, row in enumerate(rows) if row is not None]
    highest = 1.6 * max(max(row.idle.value, row.formula) for _, row in known)
    for number_, (place, row) in enumerate(known):
        label = ("(p - 1) / (v m)", "measured idle / computing") if number_ == 0 else (None, None)
        ax.plot([row.formula] * 2, [place - 0.35, place + 0.35], color=INK, lw=1.6, label=label[0])
        if row.idle.low is not None and row.idle.high is not None:
            ends = [max(row.idle.low, 0.0), min(row.idle.high, 2 * highest)]
            ax.plot(ends, [place] * 2, color=ORANGE, lw=1.2)
        ax.plot([row.idle.value], [place], "o", color=ORANGE, label=label[1])
    ax.set_xlim(0, highest)
    ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.set_xlabel("Idle / computing")
    ax.grid(visible=False, axis="y")


def stage_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel for each pipeline: what each of its stages computes in a step, and how long it
    waits."""
    points: dict[str, list[PipelineStage]] = {}
    for row in results.of(PipelineStage):
        points.setdefault(_key(results, row), []).append(row)
    if not points:
        return []
    shown = [points[key] for key in evenly(list(points), MAX_PANELS)]
    columns = min(_COLUMNS, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(WIDE if columns > 1 else WIDE * 0.62, 1.0 + 2.0 * lines))
    head = f"{results.name}: stages of pipelines, busy and idle{results.mark}"
    heading(figure, head)
    grid = figure.subplots(lines, columns, squeeze=False)
    for ax in grid.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, rows in zip(grid.flat, shown, strict=False):
        _panel(ax, rows, first=rows is shown[0])
        title = in_lines(results.describe(rows[0].row), 38)
        ax.set_title(title, fontsize=8.5, fontweight="normal")
    for ax in grid[:, 0]:
        ax.set_ylabel("In a step [ms]")
    figure.legend(loc="outside lower left", ncols=2)
    drawn = [rows[0].row for rows in shown]
    text = caption(
        results, drawn, [],
        "Busy: forward and backward pass; idle: waiting for the stages before and behind. Bars: "
        "means over steps, ranks of a stage and runs; lines: the middle half of the steps.",
        f"{counted(len(points) - len(shown), 'more point')} in the table pipeline_stages."
        if len(points) > len(shown) else "",
    )  # fmt: skip
    rows = shown[0]
    parts = ", ".join(
        f"stage {row.stage} {percent(row.idle.value / (row.busy.value + row.idle.value))}"
        for row in rows
    )
    alt = f"{head}: idle share at {results.describe(rows[0].row)}: {parts}."
    return [Drawing("mesh-stages", head, text, alt, figure, points_shown(results, drawn))]


def _panel(ax: Axes, rows: Sequence[PipelineStage], first: bool) -> None:
    """Bars side by side for each stage, with lines from quartile to quartile of the steps."""
    half = 0.2
    for offset, colour, name in ((-half, BLUE, "busy"), (half, ORANGE, "idle")):
        for row in rows:
            value = row.busy.value if name == "busy" else row.idle.value
            ends = (
                (row.busy_quarter, row.busy_three_quarters)
                if name == "busy"
                else (row.idle_quarter, row.idle_three_quarters)
            )
            label = name if first and row is rows[0] else None
            ax.bar(row.stage + offset, value, width=2 * half, color=colour, label=label)
            ax.plot([row.stage + offset] * 2, ends, color=FAINT, lw=1.4)
    ax.set_xticks([row.stage for row in rows], [f"stage {row.stage}" for row in rows])
    ax.grid(visible=False, axis="x")


FIGURES = (mesh_figures, stage_figures)
