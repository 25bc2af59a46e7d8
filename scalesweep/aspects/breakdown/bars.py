"""Where the time of a step goes: stacked bars over the scale, the ideal step marked."""

from collections.abc import Mapping, Sequence

from scalesweep.analysis.step_account import EPOCHS, FIRST, STEP_WORDS, STEPS
from scalesweep.aspects.breakdown.efficiency import AT_REFERENCE, IMBALANCE, LABELS, OTHER
from scalesweep.aspects.breakdown.ledgers import PARTS, Ledger, ledgers, with_other
from scalesweep.aspects.breakdown.table import FirstEpochRow
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.stacked import MAX_BARS, stacked_bars
from scalesweep.figures.style import (
    Drawing,
    caption,
    evenly,
    labels_of,
    left_out_words,
)

# Of what a step is called.
ARTICLES = {EPOCHS: "an", FIRST: "the"}
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
    "persistent": ("#D55E00", ""),
    "alternating": ("#E69F00", ""),
    IMBALANCE: ("#D55E00", ""),
    "stalls": ("#E69F00", "////"),
    "transfer": ("#CC79A7", ""),
    "sharded": ("#CC79A7", "...."),
    "tensor": ("#CC79A7", "xxxx"),
    "pipeline": ("#CC79A7", "\\\\\\\\"),
    "communication": ("#CC79A7", "////"),
    "barrier": ("#F0E442", ""),
    OTHER: ("#9aa1ab", "...."),
    "outside": ("#9aa1ab", "////"),
    "unattributed": ("#9aa1ab", ""),
}


def ledger_figures(results: ExperimentResults) -> list[Drawing]:
    """The ledger of every point that has one."""
    return _ledger_figures(results, "ledger", ledgers(results))


def first_epoch_figures(results: ExperimentResults) -> list[Drawing]:
    """The same of the first epoch."""
    return _ledger_figures(results, "ledger-first", ledgers(results, FirstEpochRow))


def _ledger_figures(
    results: ExperimentResults, name: str, every: Sequence[Ledger]
) -> list[Drawing]:
    if not every:
        return []
    drawn: Sequence[Ledger] = with_other(evenly(every, MAX_BARS))
    names = [name for name in PARTS if any(name in ledger.parts for ledger in drawn)]
    looks = {name: LOOKS[name] for name in names}
    top = max(
        *(sum(v.value for v in ledger.parts.values() if v.value > 0) for ledger in drawn),
        *(ledger.ideal.value for ledger in drawn if ledger.ideal),
        1e-9,
    )
    bottom = min(
        0.0, *(sum(v.value for v in ledger.parts.values() if v.value < 0) for ledger in drawn)
    )
    factor, unit = (1.0, "ms") if top < 1e3 else (1e-3, "s")
    what = step_words(drawn)
    head = f"{results.name}: where the time of {what} goes{results.mark}"
    # At the reference all computation is as there.
    shown = [name for name in names if name not in ("compute", "busy") or AT_REFERENCE not in names]
    legend = {LABELS[name]: looks[name] for name in shown}
    needed = [
        {
            name: min(term.machine, term.value) * factor
            for name, term in ledger.parts.items()
            if term.machine is not None and min(term.machine, term.value) > 0
        }
        for ledger in drawn
    ]
    ideals = [ledger.ideal.value * factor if ledger.ideal else None for ledger in drawn]
    figure, ax = stacked_bars(
        head,
        labels_of(results, [ledger.row for ledger in drawn], 44),
        [{name: v.value * factor for name, v in ledger.parts.items()} for ledger in drawn],
        looks,
        legend,
        (bottom * factor, top * factor),
        (f"Ideal {what.partition(' ')[2]}", ideals) if any(ideals) else None,
        ("Of which the machine explains", needed) if any(needed) else None,
    )
    ax.set_xlabel(f"Time of {what} [{unit}]")
    text = caption(
        results, [ledger.row for ledger in every], [],
        "Means over repeats; the number at the end of a bar is the measured time.",
        "The line is the ideal: the smallest scale's, at the same work per rank."
        if any(ledger.ideal for ledger in drawn) else "",
        "The strip in a part is what the machine needs for it, by the campaign's probes."
        if any(needed) else "",
        left_out_words(len(every) - len(drawn)),
    )  # fmt: skip
    alt = f"{head}: {counted(len(drawn), 'bar')}. {_largest(results, drawn)}"
    return [Drawing(name, head, text, alt, figure)]


def step_words(ledgers: Sequence[Ledger]) -> str:
    """What a step of these ledgers is called, with its article."""
    forms = {ledger.form for ledger in ledgers}
    form = forms.pop() if len(forms) == 1 else STEPS
    return f"{ARTICLES.get(form, 'a')} {STEP_WORDS[form]}"


def _largest(results: ExperimentResults, ledgers: Sequence[Ledger]) -> str:
    ledger = ledgers[-1]
    name = max(ledger.parts, key=lambda part: ledger.parts[part].value)
    where = f" at {results.describe(ledger.row)}" if results.axes else ""
    return (
        f"The largest part{where} is {LABELS[name].lower()}: {number(ledger.parts[name].value)} ms."
    )
