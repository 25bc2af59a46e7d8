"""Where the time of a step goes: stacked bars over the scale, the ideal step marked."""

from collections.abc import Mapping, Sequence

from scalesweep.analysis.step_account import STEP_WORDS
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.step_ledger import PARTS, Ledger, ledgers
from scalesweep.figures.stacked import MAX_BARS, stacked_bars
from scalesweep.figures.style import (
    Drawing,
    caption,
    evenly,
    labels_of,
    left_out_words,
)
from scalesweep.tables.efficiency import AT_REFERENCE, LABELS

# Colours after Okabe and Ito; what was there at the reference is dark, what is lost is bright.
LOOKS: Mapping[str, tuple[str, str]] = {
    "compute": ("#0072B2", ""),
    "busy": ("#0072B2", ""),
    "at_reference": ("#0072B2", ""),
    "local_batch": ("#56B4E9", "////"),
    "clock": ("#56B4E9", "...."),
    "slower": ("#56B4E9", ""),
    "input": ("#009E73", ""),
    "checkpoint": ("#7A5195", ""),
    "validation": ("#7A5195", "////"),
    "logging": ("#7A5195", "...."),
    "between": ("#7A5195", "xxxx"),
    "mixed": ("#009E73", "////"),
    "persistent": ("#D55E00", ""),
    "alternating": ("#E69F00", ""),
    "stalls": ("#E69F00", "////"),
    "transfer": ("#CC79A7", ""),
    "communication": ("#CC79A7", "////"),
    "barrier": ("#F0E442", ""),
    "outside": ("#9aa1ab", "////"),
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
    # At the reference all computation is as there.
    shown = [name for name in names if name not in ("compute", "busy") or AT_REFERENCE not in names]
    legend = {LABELS[name]: looks[name] for name in shown}
    needed = [
        {
            name: min(term.machine, term.value) * factor
            for name, term in one.parts.items()
            if term.machine is not None and min(term.machine, term.value) > 0
        }
        for one in some
    ]
    figure, ax = stacked_bars(
        head,
        labels_of(study, [one.row for one in some], 44),
        [{name: v.value * factor for name, v in one.parts.items()} for one in some],
        looks,
        legend,
        (bottom * factor, top * factor),
        (
            f"Ideal {what.split()[-1]}",
            [one.ideal.value * factor if one.ideal else None for one in some],
        ),
        ("Of which the machine explains", needed) if any(needed) else None,
    )
    ax.set_xlabel(f"Time of {what} [{unit}]")
    text = caption(
        study, [one.row for one in every], [],
        "Means over repeats; the number at the end of a bar is the measured time.",
        "The line is the ideal: the smallest scale's, at the same work per rank."
        if any(one.ideal for one in some) else "",
        "The strip in a part is what the machine needs for it, by the campaign's probes."
        if any(needed) else "",
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
