"""Advise what to measure next with so many node-hours, from the points measured so far."""

import argparse
import math
from collections.abc import Sequence

import pandas as pd

from scalesweep.adaptive.advice import Candidate, advise
from scalesweep.adaptive.advised_campaign import advised_campaign, write_advised
from scalesweep.config.campaign import Campaign
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import counted
from scalesweep.planning.plan import hours
from scalesweep.planning.plan_text import aligned
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.stock import take_stock
from scalesweep.tables.now import read_now

TABLE, CAMPAIGN = "advice.csv", "advice.yaml"
_COLUMNS = ["experiment", "words", "measured", "runs", "node_hours", "value", "chosen", "reason"]
SHOWN = 20  # candidates that are not chosen


def run(args: argparse.Namespace) -> None:
    """Print what to measure; write it as a table and a campaign file. Nothing is run."""
    campaign = open_campaign(args, tell=True)
    budget = args.budget or campaign.budget_node_hours
    if budget is None:
        raise UserError("advise: how much may be spent? Add --budget 50 (node-hours)")
    if campaign.site.launch is None:
        raise UserError(
            f"{campaign.site.file}: has no 'launch': runs were imported, and none can be added; "
            "name a site that starts runs with --site NAME"
        )
    plan, summary = read_now(campaign)
    states = take_stock(campaign, campaign.unique_runs())
    candidates = advise(campaign, plan, summary, states, budget)
    print(advice_text(campaign, candidates, budget))
    folder = campaign.results
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{**vars(each), "reason": each.refused or each.reason} for each in candidates]
    names = {"words": "point", "runs": "more_runs"}
    table = pd.DataFrame(rows, columns=_COLUMNS).rename(columns=names)
    write_atomic(folder / TABLE, table.to_csv(index=False))
    chosen = [(each.experiment, each.point, each.runs) for each in candidates if each.chosen]
    path = folder / CAMPAIGN
    if not chosen:
        path.unlink(missing_ok=True)
        return
    head = f"What was measured, and what {hours(budget)} node-hours are best spent on."
    content = load_yaml(campaign.file)
    write_advised(advised_campaign(content, campaign, states, chosen, head), path)
    print(f"\nto measure it: snakemake --configfile {path}")


def advice_text(campaign: Campaign, candidates: Sequence[Candidate], budget: float) -> str:
    """The advice for people."""
    chosen = [each for each in candidates if each.chosen]
    others = [each for each in candidates if not each.chosen]
    lines = [
        f"campaign {campaign.name} on site {campaign.site.name}: what to measure next with "
        f"{hours(budget)} node-hours",
        *(_table(chosen) if chosen else ["nothing to measure"]),
    ]
    if chosen:
        cost = math.fsum(each.node_hours for each in chosen)
        runs = sum(each.runs for each in chosen)
        lines.append(f"{counted(runs, 'run')}: {hours(cost)} node-hours at most")
    if others:
        lines += ["", "not chosen", *_table(others[:SHOWN])]
        lines += [f"and {len(others) - SHOWN:,} more (advice.csv)"] * (len(others) > SHOWN)
    return "\n".join(lines)


def _table(candidates: Sequence[Candidate]) -> list[str]:
    head = ("experiment", "point", "measured", "more runs", "node-hours", "value", "why")
    rows = [
        (each.experiment, each.words, str(each.measured), str(each.runs), hours(each.node_hours),
         f"{each.value:.2f}", each.refused or each.reason)
        for each in candidates
    ]  # fmt: skip
    return aligned([head, *rows], left={0, 1, 6})
