"""Where the time of a step goes: stacked bars over the scale, from the ideal to the measured."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from scalesweep.analysis.step_account import EPOCHS, FIRST, STEP_WORDS, STEPS
from scalesweep.aspects.steps.breakdown import FirstEpochRow
from scalesweep.aspects.steps.efficiency import LABELS
from scalesweep.aspects.steps.ledgers import Ledger, largest_points, ledgers, with_other
from scalesweep.aspects.steps.looks import LOOKS
from scalesweep.core.formatting import with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import MAX_BARS, Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Bars
from scalesweep.figures.theme import FAINT, INK, Axis
from scalesweep.table.declared import Estimate

MAX_PANELS = 4
ARTICLES = {EPOCHS: "an", FIRST: "the"}  # of what a step is called
_BY_LABEL = {LABELS[name]: fill for name, fill in LOOKS.items() if name in LABELS}


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
    shown = with_other(evenly(every, MAX_BARS))
    factor, unit = _unit(shown)
    names, shared = labels_of(results, [ledger.row for ledger in shown])
    bars = pd.DataFrame(
        {"label": label, "part": LABELS[part], "value": term.ms * factor}
        for label, ledger in zip(names, shown, strict=True)
        for part, term in ledger.parts.items()
    )
    ideals = {
        label: ledger.ideal.ms * factor
        for label, ledger in zip(names, shown, strict=True)
        if ledger.ideal
    }
    what = step_words(shown)
    line = (f"ideal {what.partition(' ')[2]}", ideals) if ideals else None
    panel = Bars(bars, Axis(f"Time of {what} [{unit}]"), _BY_LABEL, line=line)
    note = "Means over repeats; at the end of a bar the measured time."
    return drawn(results, name, f"where the time of {what} goes", note, [panel],
                 len(every) - len(shown), detail=shared)  # fmt: skip


def _unit(shown: Sequence[Ledger]) -> tuple[float, str]:
    longest = max(ledger.elapsed.ms for ledger in shown)
    return (1.0, "ms") if longest < 1e3 else (1e-3, "s")


def step_words(shown: Sequence[Ledger]) -> str:
    """What a step of these ledgers is called, with its article."""
    forms = {ledger.form for ledger in shown}
    form = forms.pop() if len(forms) == 1 else STEPS
    return f"{ARTICLES.get(form, 'a')} {STEP_WORDS[form]}"


def waterfall_figures(results: ExperimentResults) -> list[Drawing]:
    """From the ideal to the measured step at the largest scale, a panel for each series."""
    last = largest_points(results, ledgers(results))
    if not last:
        return []
    shown = [with_other([each])[0] for each in evenly(last, MAX_PANELS)]
    factor, unit = _unit(shown)
    what = step_words(shown)
    axis = Axis(f"Time of {what} [{unit}]")
    panels = []
    for ledger in shown:
        rows = _steps(ledger, factor)
        title = results.describe(ledger.row) if results.axes else ""
        ends = {row["label"]: row["text"] for row in rows}
        looks = {**_BY_LABEL, "Ideal": (FAINT, ""), "Measured": (INK, "")}
        panels.append(Bars(pd.DataFrame(rows), axis, looks, title, ends=ends))
    head = f"from the ideal {what.split()[1]} to the measured one"
    note = "Each bar begins where the one above it ends; lines and brackets: 95 % intervals."
    return drawn(results, "waterfall", head, note, panels, len(last) - len(shown))


def _steps(ledger: Ledger, factor: float) -> list[dict[str, Any]]:
    """The ideal, what each term takes more, what no term was compared in, and what was measured."""
    assert ledger.ideal is not None
    at, whole = ledger.ideal.ms * factor, ledger.elapsed.ms * factor
    rows = [_step("Ideal", 0.0, Estimate(at))]
    for name, term in ledger.parts.items():
        if term.loss is None:
            continue
        loss = term.loss.times(factor)
        rows.append(_step(LABELS[name], at, loss, "+" if loss.value >= 0 else ""))
        at += loss.value
    if abs(whole - at) > 1e-6 * whole:  # a term that the reference or this point lacks
        rows.append(_step("Not compared", at, Estimate(whole - at)))
    return [*rows, _step("Measured", 0.0, Estimate(whole))]


def _step(label: str, start: float, size: Estimate, sign: str = "") -> dict[str, Any]:
    ends = {}
    if size.low is not None and size.high is not None:
        ends = {"low": start + size.low, "high": start + size.high}
    text = sign + with_interval(size.value, size.low, size.high)
    return {
        "label": label,
        "part": label,
        "start": start,
        "value": size.value,
        "text": text,
        **ends,
    }


FIGURES = (ledger_figures, first_epoch_figures, waterfall_figures)
