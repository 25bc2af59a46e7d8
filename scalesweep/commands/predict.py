"""Predict what rank counts that were not measured would give, from the points measured so far."""

import argparse
from collections.abc import Sequence

from scalesweep.aspects.layouts.ranking import ranking_texts
from scalesweep.aspects.prediction import (
    COMPUTED,
    Prediction,
    known,
    prediction_rows,
    prediction_table,
)
from scalesweep.core.errors import UserError
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.experiment.results import ExperimentResults
from scalesweep.planning.plan_text import aligned
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.table.declared import frame_of
from scalesweep.tables.now import read_now
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import predicting_machine


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
        data = ExperimentData(summary, entry)
        layouts = ranking_texts(data, wanted)
        texts += layouts
        if not data.row_of:
            texts.append(f"{entry['name']}: no finished run counts")
        elif entry["scale"] in entry["axes"] and entry["scaling"] in OF_SAMPLES and not layouts:
            rows = list(prediction_rows(data, wanted, machine))
            texts.append(rows_text(ExperimentResults(entry, {}), rows))
    if not texts:
        raise UserError(
            f"{campaign.file}: nothing to predict: name counts with --ranks 256,512; an experiment "
            "has to vary its ranks, with scaling weak or strong"
        )
    print("\n\n".join(texts))


def rows_text(results: ExperimentResults, rows: Sequence[Prediction]) -> str:
    """The rows of a prediction as text: refusals, then a table."""
    refused = dict.fromkeys(f"  refused: {_refusal(results, it)}" for it in rows if it.refused)
    lines = [f"{results.name}: {results.entry['scaling']} scaling", *refused]
    tables = {Prediction.TABLE: frame_of(known(rows))}
    if table := prediction_table(ExperimentResults(results.entry, tables), len(rows)):
        runs = table.parameters  # the column of runs, of which there are none
        head = [*table.lead, *(column.heading for _, part in table.groups for column in part)]
        cells = [head, *([cell.text for cell in row] for row in table.rows)]
        shown = [[*row[:runs], *row[runs + 1 :]] for row in cells]
        lines += [*aligned(shown, left={runs, runs + 3}), COMPUTED]
    elif not refused:
        lines.append("  nothing to predict: no rate of all together, or all counts, were measured")
    return "\n".join(lines)


def _refusal(results: ExperimentResults, row: Prediction) -> str:
    label = results.describe(row.point, results.series_names) if results.series_names else ""
    return f"{label}: {row.refused}" if label else str(row.refused)
