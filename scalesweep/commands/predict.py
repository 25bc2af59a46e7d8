"""Predict what rank counts that were not measured would give, from the points measured so far."""

import argparse
from collections.abc import Sequence

import pandas as pd

from scalesweep.aspects.layouts.ranking import ranking_texts
from scalesweep.aspects.prediction import (
    COMPUTED,
    Prediction,
    known,
    prediction_rows,
    prediction_table,
)
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.experiment.results import ExperimentResults
from scalesweep.planning.plan_text import aligned
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.table.declared import frame_of
from scalesweep.tables.machine import UNKNOWN, Machine
from scalesweep.tables.now import read_now
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import predicting_machine

MAX_REFUSED = 8


def run(args: argparse.Namespace) -> None:
    """Print the predictions of every experiment that scales; the results are left as they are."""
    campaign = open_campaign(args, write=False, tell=True)
    plan, summary = read_now(campaign)
    machine = predicting_machine(summary, plan)
    texts = []
    for entry in plan["experiments"]:
        wanted = sorted({*args.ranks}) or entry.get("predict", [])
        if not wanted or entry["control"]:
            continue
        layouts = ranking_texts(ExperimentData(summary, entry), wanted)
        texts += layouts
        if entry["scale"] in entry["axes"] and not layouts:
            texts.append(text_of(summary, entry, wanted, machine, str(campaign.file)))
    if not texts:
        raise UserError(
            f"{campaign.file}: nothing to predict: name counts with --ranks 256,512, or in "
            "an experiment's predict: {ranks: [...]}; the experiment has to vary its ranks"
        )
    print("\n\n".join(texts))


def text_of(
    summary: pd.DataFrame,
    entry: PlanExperiment,
    counts: Sequence[int],
    machine: Machine = UNKNOWN,
    file: str = "",
) -> str:
    """The predictions of one experiment of a campaign's ``file`` as text."""
    head = f"{entry['name']}: {entry['scaling']} scaling"
    if entry["scaling"] not in OF_SAMPLES:
        return (
            f"{entry['name']}: nothing is predicted without a kind of scaling: in {file}, set "
            f"experiments.{entry['name']}.scaling to weak or strong"
        )
    data = ExperimentData(summary, entry)
    rows = list(prediction_rows(data, counts, machine))
    if not rows:
        return (
            f"{head}: nothing to predict: no rate of all {entry['scale']} together was measured, "
            "or all of these counts were"
        )
    return rows_text(ExperimentResults(entry, {}), rows)


def rows_text(results: ExperimentResults, rows: Sequence[Prediction]) -> str:
    """The rows of a prediction as text: refusals, then a table."""
    lines = [f"{results.name}: {results.entry['scaling']} scaling"]
    refused = dict.fromkeys(_refusal(results, row) for row in rows if row.refused)
    lines += [f"  refused: {why}" for why in [*refused][:MAX_REFUSED]]
    lines += [f"  and {len(refused) - MAX_REFUSED:,} more"] * (len(refused) > MAX_REFUSED)
    tables = {Prediction.TABLE: frame_of(known(rows))}
    table = prediction_table(ExperimentResults(results.entry, tables), len(rows))
    if table is not None:
        runs = table.parameters  # the column of runs, of which there are none
        head = [*table.lead, *(column.heading for _, part in table.groups for column in part)]
        cells = [head, *([cell.text for cell in row] for row in table.rows)]
        shown = [[*row[:runs], *row[runs + 1 :]] for row in cells]
        lines += aligned(shown, left={runs, runs + 3})
        lines.append(COMPUTED)
    return "\n".join(lines)


def _refusal(results: ExperimentResults, row: Prediction) -> str:
    label = results.describe(row.point, results.series_names) if results.series_names else ""
    return f"{label}: {row.refused}" if label else str(row.refused)
