"""Where the time of a step goes: stacked bars over the scale, the ideal step marked."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from scalesweep.analysis.step_account import STEP_WORDS
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_ledger import PARTS, Ledger, ledgers
from scalesweep.figures.phases import stacked_bar
from scalesweep.figures.style import (
    INK,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    labels_of,
    left_out_words,
    legend_columns,
    tick,
)
from scalesweep.tables.efficiency import AT_REFERENCE, LABELS

MAX_BARS = 24
# Colours after Okabe and Ito; what was there at the reference is dark, what is lost is bright.
LOOKS: Mapping[str, tuple[str, str]] = {
    "compute": ("#0072B2", ""),
    "busy": ("#0072B2", ""),
    "at_reference": ("#0072B2", ""),
    "local_batch": ("#56B4E9", "////"),
    "slower": ("#56B4E9", ""),
    "input": ("#009E73", ""),
    "persistent": ("#D55E00", ""),
    "alternating": ("#E69F00", ""),
    "transfer": ("#CC79A7", ""),
    "communication": ("#CC79A7", "////"),
    "barrier": ("#F0E442", ""),
    "unattributed": ("#9aa1ab", ""),
}


def ledger_figures(study: ExperimentResults) -> list[Drawing]:
    """The ledger of every point that has one."""
    every = ledgers(study)
    if not every:
        return []
    some: Sequence[Ledger] = evenly(every, MAX_BARS)
    names = [name for name in PARTS if any(name in one.parts for one in some)]
    looks = {name: LOOKS[name] for name in names}
    top = max(
        *(sum(v.value for v in one.parts.values() if v.value > 0) for one in some),
        *(one.ideal.value for one in some if one.ideal),
        1e-9,
    )
    bottom = min(0.0, *(sum(v.value for v in one.parts.values() if v.value < 0) for one in some))
    factor, unit = (1.0, "ms") if top < 1e3 else (1e-3, "s")
    what = step_words(some)
    head = f"{study.name}: where the time of {what} goes{study.mark}"
    labels, named = labels_of(study, [one.row for one in some], 44)
    figure = Figure(figsize=(WIDE, 1.15 + 0.34 * len(some) + (0.2 if named else 0)))
    # At the reference all computation is as there.
    shown = [name for name in names if name not in ("compute", "busy") or AT_REFERENCE not in names]
    legend = {LABELS[name]: looks[name] for name in shown}
    words = [*legend, "Ideal step"]
    columns = legend_columns(figure, words)
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(words) // columns))
    heading(figure, head, named)
    ax = figure.subplots()
    for place, one in enumerate(some):
        parts: dict[str, float] = {name: v.value * factor for name, v in one.parts.items()}
        stacked_bar(ax, place, parts, looks, top * factor)
        if one.ideal:
            ideal = one.ideal.value * factor
            ax.plot([ideal, ideal], [place - 0.44, place + 0.44], color=INK, linewidth=1.6)
    ax.set_yticks(range(len(some)), labels)
    ax.set_ylim(len(some) - 0.4, -0.6)
    ax.set_xlim(bottom * factor * 1.1, top * factor * 1.12)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(f"Time of {what} [{unit}]")
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
    handles: list[Any] = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0.4, label=label)
        for label, (colour, hatch) in legend.items()
    ]
    handles += ax.plot([], [], color=INK, linewidth=1.6, label="Ideal step")
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, columnspacing=1.2)
    text = caption(
        study, [one.row for one in every], [],
        "Means over repeats; the number at the end of a bar is the measured time.",
        "The line is the ideal: the smallest scale's, at the same work per rank."
        if any(one.ideal for one in some) else "",
        left_out_words(len(every) - len(some)),
    )  # fmt: skip
    alt = f"{head}: {counted(len(some), 'bar')}. {_largest(study, some)}"
    return [Drawing("ledger", head, text, alt, figure)]


def step_words(some: Sequence[Ledger]) -> str:
    """What a step of these ledgers is called, with its article."""
    forms = {one.form for one in some}
    word = STEP_WORDS[forms.pop()] if len(forms) == 1 else "step"
    return f"{'an' if word == 'epoch' else 'a'} {word}"


def _largest(study: ExperimentResults, some: Sequence[Ledger]) -> str:
    one = some[-1]
    name = max(one.parts, key=lambda part: one.parts[part].value)
    where = f" at {study.describe(one.row)}" if study.axes else ""
    return f"The largest part{where} is {LABELS[name].lower()}: {number(one.parts[name].value)} ms."
