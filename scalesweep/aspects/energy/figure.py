"""Power over time of a few runs, with their phases behind it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from scalesweep.aspects.energy.table import ALL, TOTAL
from scalesweep.aspects.phases.figure import looks_of, phase_names
from scalesweep.core.formatting import counted, finite, number, scaled_unit, shorten
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.style import (
    COLOURS,
    INK,
    WIDE,
    Drawing,
    caption,
    heading,
    labels_of,
    legend_columns,
    tick,
)

SLOTS = 200  # a phase narrower than one of these is not drawn apart
Span = tuple[str, float, float]


def power_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel per run of the table `power`: the total and, below it, domains or hosts."""
    runs: dict[str, list[Row]] = {}
    for row in results.rows("power"):
        runs.setdefault(str(row["run_id"]), []).append(row)
    frame = results.tables.get("power")
    if not runs or frame is None:
        return []
    spans = {
        run_id: merge_spans([(s[0], s[1], s[2]) for s in marks])
        for run_id, marks in frame.attrs.get("spans", {}).items()
    }
    shown = [{"phase": name} for marks in spans.values() for name, _, _ in marks]
    looks = looks_of(phase_names(shown))
    top = max((row["watts"] for rows in runs.values() for row in rows if finite(row["watts"])),
              default=0.0)  # fmt: skip
    factor, unit = scaled_unit("W", top)
    head = f"{results.name}: power over time{results.mark}"
    columns = 1 if len(runs) == 1 else 2
    lines = -(-len(runs) // columns)
    figure = Figure(figsize=(WIDE, 0.7 + 2.1 * lines))
    labels, named = labels_of(results, [rows[0] for rows in runs.values()], 44)
    heading(figure, head, named)
    axes = figure.subplots(lines, columns, squeeze=False)
    for ax in axes.flat[len(runs) :]:
        ax.axis("off")
    parts = _parts(runs)
    styles = {part: COLOURS[place % len(COLOURS)] for place, part in enumerate(parts)}
    for ax, label, (run_id, rows) in zip(axes.flat, labels, runs.items(), strict=False):
        _panel(ax, rows, spans.get(run_id, []), looks, styles, factor)
        ax.set_title(label, fontsize=8.5)
    for ax in axes[:, 0]:
        ax.set_ylabel(f"Power [{unit}]")
    for ax in axes.flat[max(len(runs) - columns, 0) : len(runs)]:
        ax.set_xlabel("Time since the start [s]")
    handles: list[Any] = [Line2D([], [], color=INK, linewidth=1.6, label="total")]
    handles += [
        Line2D([], [], color=colour, linewidth=1, linestyle=_dash(parts[part]),
               label=_part_words(part, parts[part]))
        for part, colour in styles.items()
    ]  # fmt: skip
    handles += [
        Patch(facecolor=colour, hatch=hatch, alpha=0.35, edgecolor="white", linewidth=0,
              label=shorten(name.replace("_", " "), 24))
        for name, (colour, hatch) in looks.items()
    ]  # fmt: skip
    across = legend_columns(figure, [str(handle.get_label()) for handle in handles])
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(handles) // across))
    figure.legend(handles=handles, loc="outside lower left", ncols=across, columnspacing=1.2)
    firsts = [rows[0] for rows in runs.values()]
    text = caption(
        results, [{"source": row["source"]} for row in firsts], [],
        f"The first repeat with power samples of {counted(len(runs), 'point')}, over all hosts. "
        "Shaded: the phases of rank 0. Each panel has its own scale.",
        _step_words(runs),
        "Dashed: not counted in the total, because a counted domain includes it."
        if any(not counted_ for counted_ in parts.values()) else "",
    )  # fmt: skip
    alt = f"{head}: {_alt(results, runs, factor, unit)}"
    return [Drawing("power-time", head, text, alt, figure)]


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Spans that can be seen: a run is cut into slots, each is of the phase with most of it."""
    if not spans:
        return []
    begin, end = min(s[1] for s in spans), max(s[2] for s in spans)
    if end <= begin or len(spans) <= SLOTS:
        return list(spans)
    width = (end - begin) / SLOTS
    shares = [dict[str, float]() for _ in range(SLOTS)]
    for name, low, high in spans:
        first = int((low - begin) / width)
        for slot in range(first, min(int((high - begin) / width) + 1, SLOTS)):
            left = begin + slot * width
            part = min(high, left + width) - max(low, left)
            if part > 0:
                shares[slot][name] = shares[slot].get(name, 0.0) + part
    merged: list[Span] = []
    for slot, share in enumerate(shares):
        if not share:
            continue
        name = max(share, key=lambda phase: share[phase])
        low = begin + slot * width
        if merged and merged[-1][0] == name and abs(merged[-1][2] - low) < width / 2:
            merged[-1] = (name, merged[-1][1], low + width)
        else:
            merged.append((name, low, low + width))
    return merged


def _parts(runs: dict[str, list[Row]]) -> dict[tuple[str, str], bool]:
    """Host and domain of the lines besides the total -> whether they are counted in it.

    Those of the domains, or, where there is but one, those of the hosts.
    """
    parts = {
        (str(row["host"]), str(row["domain"])): bool(row["counted"])
        for rows in runs.values()
        for row in rows
        if (row["host"], row["domain"]) != (ALL, TOTAL)
    }
    domains = {part: counted_ for part, counted_ in parts.items() if part[0] == ALL}
    return domains or parts


def _part_words(part: tuple[str, str], counted_: bool) -> str:
    host, domain = part
    name = domain if host == ALL else f"host {host}"
    return shorten(name, 22) + ("" if counted_ else " (not counted)")


def _dash(counted_: bool) -> Any:
    return "-" if counted_ else (0, (3, 1.5))


def _panel(
    ax: Axes,
    rows: Sequence[Row],
    spans: Sequence[Span],
    looks: dict[str, tuple[str, str]],
    styles: dict[tuple[str, str], str],
    factor: float,
) -> None:
    """Draw watts over seconds, a line per host and domain, on bands that show the phases."""
    for name, begin, end in spans:
        colour, hatch = looks[name]
        ax.axvspan(begin, end, facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0,
                   alpha=0.35, zorder=0)  # fmt: skip
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((str(row["host"]), str(row["domain"])), []).append(row)
    for part, samples in lines.items():
        if part != (ALL, TOTAL) and part not in styles:
            continue
        watts = [row["watts"] * factor if finite(row["watts"]) else np.nan for row in samples]
        seconds = [row["seconds"] for row in samples]
        # The watts of a row are those of the interval that ends there, the first one's too.
        first = max(2 * seconds[0] - seconds[1], 0.0) if len(seconds) > 1 else 0.0
        seconds, watts = [first, *seconds], [watts[0], *watts]
        whole = part == (ALL, TOTAL)
        ax.plot(
            seconds, watts, drawstyle="steps-pre", zorder=3 if whole else 2,
            color=INK if whole else styles[part], linewidth=1.6 if whole else 1,
            linestyle=_dash(whole or samples[0]["counted"]),
        )  # fmt: skip
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    ax.grid(axis="x", visible=False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(tick))


def _step_words(runs: dict[str, list[Row]]) -> str:
    steps = []
    for rows in runs.values():
        total = [row["seconds"] for row in rows if (row["host"], row["domain"]) == (ALL, TOTAL)]
        steps += [(total[-1] - total[0]) / (len(total) - 1)] if len(total) > 1 else []
    if not steps:
        return ""
    low, high = number(min(steps), 2), number(max(steps), 2)
    span = low if low == high else f"{low} to {high}"
    return f"Each step of the total is the mean over {span} s."


def _alt(results: ExperimentResults, runs: dict[str, list[Row]], factor: float, unit: str) -> str:
    texts = []
    for rows in list(runs.values())[:4]:
        watts = [row["watts"] for row in rows if (row["host"], row["domain"]) == (ALL, TOTAL)]
        known = [value * factor for value in watts if finite(value)]
        if known:
            span = f"{number(min(known))} to {number(max(known))} {unit}"
            texts.append(f"{results.describe(rows[0])}: {span}")
    return f"{'; '.join(texts)}."


FIGURES = (power_figures,)
