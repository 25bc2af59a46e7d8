"""Predict what rank counts that were not measured would give, from the points measured so far."""

import argparse
import re
from collections.abc import Sequence

import pandas as pd

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import PHASES, percent, with_interval
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.experiment.predictions import Predicted, predictions
from scalesweep.experiment.results import ExperimentResults
from scalesweep.planning.plan_text import aligned
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.tables.machine import UNKNOWN, Machine
from scalesweep.tables.now import read_now
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.prediction import prediction_table
from scalesweep.tables.scaling import series_of
from scalesweep.tables.witnesses import predicting_machine

LARGEST = 10_000_000


def run(args: argparse.Namespace) -> None:
    """Print the predictions of every experiment that scales; the results are left as they are."""
    counts = counts_of(args.ranks)
    campaign = open_campaign(args, write=False, tell=True)
    plan, summary = read_now(campaign)
    machine = predicting_machine(summary, plan)
    texts = []
    for entry in plan["experiments"]:
        wanted = counts or entry.get("predict", [])
        if wanted and not entry["control"] and entry["scale"] in entry["axes"]:
            texts.append(text_of(summary, entry, wanted, machine))
    if not texts:
        raise UserError(
            f"{campaign.file}: nothing to predict: name counts with --ranks 256,512, or in "
            "an experiment's predict: {ranks: [...]}; the experiment has to vary its ranks"
        )
    print("\n\n".join(texts))


def counts_of(text: str) -> list[int]:
    """The counts that ``--ranks`` names, sorted. Raises UserError."""
    parts = [part for part in re.split(r"[\s,]+", re.sub(r'[\[\]"]', " ", text)) if part]
    bad = [
        part
        for part in parts
        if not part.isascii() or not part.isdecimal() or not 1 <= int(part) <= LARGEST
    ]
    if bad:
        raise UserError(
            f"--ranks {text}: {bad[0]!r} is not a rank count; allowed: whole numbers from 1 "
            f"to {LARGEST:,}, such as 256,512"
        )
    return sorted({int(part) for part in parts})


def text_of(
    summary: pd.DataFrame,
    entry: PlanExperiment,
    counts: Sequence[int],
    machine: Machine = UNKNOWN,
) -> str:
    """The predictions of one experiment as text."""
    head = f"{entry['name']}: {entry['scaling']} scaling"
    if entry["scaling"] == "none":
        return f"{entry['name']}: nothing is predicted: set its scaling to weak or strong"
    data = ExperimentData(summary, entry)
    points = data.points()
    groups = [[points[i] for i in group] for group in series_of(data, points)]
    frame = prediction_table(data, groups, counts, machine)
    if frame is None:
        return (
            f"{head}: nothing to predict: no rate of all {entry['scale']} together was measured, "
            "or all of these counts were"
        )
    study = ExperimentResults(entry, {"prediction": frame})
    return rows_text(study, predictions(study))


def rows_text(study: ExperimentResults, rows: Sequence[Predicted]) -> str:
    """The rows of a prediction as text: refusals, then a table."""
    head = f"{study.name}: {study.entry['scaling']} scaling"
    refused = dict.fromkeys(_refusal(study, one) for one in rows if one.refused)
    shown = [one for one in rows if not one.refused]
    lines = [head, *(f"  refused: {why}" for why in refused)]
    if shown:
        lines += aligned([_HEAD, *(_cells(study, one) for one in shown)], left={0, 1, 2, 6})
        lines.append(
            "intervals of 95 %; forecasts: of the largest measured counts from the smaller ones, "
            "those within their interval"
        )
    return "\n".join(lines)


_HEAD = (
    *("series", "metric", "phase", "count", "predicted", "efficiency", "grows most"),
    *("largest measured", "trust to", "forecasts"),
)


def _refusal(study: ExperimentResults, one: Predicted) -> str:
    label = study.describe(one.row, study.series_names) if study.series_names else ""
    return f"{label}: {one.refused}" if label else one.refused


def _cells(study: ExperimentResults, one: Predicted) -> tuple[str, ...]:
    value = with_interval(one.number("value"), one.number("low"), one.number("high"), "")
    unit = str(one.get("unit"))
    names = study.series_names
    share = one.number("term_share") or 0.0
    return (
        study.describe(one.row, names) if names else "",
        str(one.get("metric")),
        PHASES[str(one.get("phase"))],
        f"{study.scale_of(one.row):,}",
        f"{value} {unit}",
        percent(*(one.number(f"efficiency{end}") for end in ("", "_low", "_high"))),
        f"{one.get('term')} ({100 * share:.0f} %)",
        f"{one.get('largest'):,}",
        f"{one.get('trusted_to'):,}",
        f"{one.get('forecasts_within')} of {one.get('forecasts')}",
    )
