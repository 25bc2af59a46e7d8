"""Advise what to measure next with so many node-hours, from the points measured so far."""

import argparse

import pandas as pd

from scalesweep.adaptive.advice import advise
from scalesweep.adaptive.advised_campaign import advised_campaign, write_advised
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
    budget = args.budget or campaign.keys.budget_node_hours
    if budget is None:
        raise UserError("advise: how much may be spent? Add --budget 50 (node-hours)")
    if campaign.site.launch is None:
        site = f"{campaign.site.file}: has no 'launch': nothing can be measured there"
        raise UserError(f"{site}; name a site that has: --site NAME")
    plan, summary = read_now(campaign)
    states = take_stock(campaign, campaign.unique_runs())
    candidates = advise(campaign, plan, summary, states, budget)
    rows = [{**vars(each), "reason": each.refused or each.reason} for each in candidates]
    table = pd.DataFrame(rows, columns=_COLUMNS).astype({"chosen": bool})
    table = table.rename(columns={"words": "point", "runs": "more_runs"})
    spent = f"what to measure next with {hours(budget)} node-hours"
    print(f"campaign {campaign.name} on site {campaign.site.name}: {spent}")
    print(f"{advice_text(table)}\nevery candidate: {campaign.results / TABLE}")
    write_atomic(campaign.results / TABLE, table.to_csv(index=False))
    path = campaign.results / CAMPAIGN
    path.unlink(missing_ok=True)
    if chosen := [(each.experiment, each.point, each.runs) for each in candidates if each.chosen]:
        head = f"What was measured, and what {hours(budget)} node-hours are best spent on."
        content = load_yaml(campaign.file)
        write_advised(advised_campaign(content, campaign, states, chosen, head), path)
        cluster = " --profile slurm" if campaign.site.slurm else ""
        print(f"\nto measure it: snakemake --configfile {path}{cluster}")


def advice_text(table: pd.DataFrame) -> str:
    """The candidates for people: those that are chosen, then the first of the others."""
    chosen = table[table["chosen"]]
    first = table.sort_values("chosen", ascending=False, kind="stable")[: len(chosen) + SHOWN]
    shown = first.assign(
        node_hours=first["node_hours"].map(hours),
        value=first["value"].map("{:.2f}".format),
        chosen=first["chosen"].map({True: "yes", False: "no"}),
    )
    rows = shown.astype(str).to_numpy().tolist()
    runs, cost = counted(chosen["more_runs"].sum(), "run"), hours(chosen["node_hours"].sum())
    none = "nothing that the budget and the time limits allow" if rows else "nothing to measure"
    total = f"{runs}: about {cost} node-hours" if len(chosen) else none
    lines = aligned([[*shown], *rows], left={0, 1, 6, 7}) if rows else []
    return "\n".join([*lines, total])
