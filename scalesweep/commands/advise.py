"""Advise what to measure next with so many node-hours, from the points measured so far."""

import argparse
import csv
import io
import math
from collections.abc import Sequence

from scalesweep.adaptive.advice import make_study
from scalesweep.adaptive.advice_points import Prices, prices_of
from scalesweep.adaptive.advice_study import Row, Study
from scalesweep.adaptive.advice_target import read_target
from scalesweep.adaptive.advised_campaign import advised_campaign, write_advised
from scalesweep.analysis.advice.advise import Advice, Options
from scalesweep.config.campaign import Campaign
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import counted, duration
from scalesweep.planning.plan import hours
from scalesweep.planning.plan_text import aligned
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.stock import take_stock
from scalesweep.tables.now import read_now

TABLE, CURVE, CAMPAIGN = "advice.csv", "advice_curve.csv", "advice.yaml"


def run(args: argparse.Namespace) -> None:
    """Print what to measure; write it as a table, a curve and a campaign file. Nothing is run."""
    campaign = open_campaign(args, tell=True)
    budget = budget_of(args.budget, campaign)
    wanted = read_target(args.target, campaign)
    if campaign.site.launch is None:
        raise UserError(
            f"{campaign.site.file}: has no 'launch': runs were imported, and none can be added; "
            "name a site that starts runs with --site NAME"
        )
    content = load_yaml(campaign.file)
    plan, summary = read_now(campaign)
    prices = prices_of(campaign)
    study = make_study(campaign, plan, summary, prices, wanted, budget)
    options = study.options(budget)
    curve = options.curve()
    advice = curve[-1]
    rows = study.rows(options, advice)
    print(advice_text(campaign, study, prices, options, curve, rows))
    folder = campaign.results
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / TABLE, table_csv(rows))
    write_atomic(folder / CURVE, curve_csv(curve))
    if not rows:
        (folder / CAMPAIGN).unlink(missing_ok=True)
        return
    states = take_stock(campaign, campaign.unique_runs(), remember=False)
    more = [(row.experiment, row.point, row.runs) for row in rows]
    head = f"What was measured, and what {hours(advice.cost)} node-hours teach most about."
    path = folder / CAMPAIGN
    write_advised(advised_campaign(content, campaign, states, more, head), path)
    print(f"\nto measure it: snakemake --configfile {path}")


def budget_of(text: str, campaign: Campaign) -> float:
    """The node-hours that may be spent: those named, else the campaign's. Raises UserError."""
    if not text and campaign.budget_node_hours is None:
        raise UserError("advise: how much may be spent? Add --budget 50 (node-hours)")
    try:
        budget = float(text) if text else float(campaign.budget_node_hours or 0)
    except ValueError:
        budget = math.nan
    if not 0 < budget < math.inf:
        raise UserError(f"--budget {text}: must be a number of node-hours above 0, such as 50")
    return budget


def advice_text(
    campaign: Campaign,
    study: Study,
    prices: Prices,
    options: Options,
    curve: Sequence[Advice],
    rows: Sequence[Row],
) -> str:
    """The advice for people."""
    advice = curve[-1]
    lines = [
        f"campaign {campaign.name} on site {campaign.site.name}: what to measure next with "
        f"{hours(advice.budget)} node-hours",
        *(f"refused: {why}" for why in dict.fromkeys(study.refused)),
        *(f"left out: {why}" for why in study.left_out),
        *(f"note: {what}" for what in study.notes),
        f"a job costs its nodes for the upper bound of its predicted time{_overhead(prices)}",
        "",
    ]
    if rows:
        head = ("experiment", "point", "measured", "more runs", "node-hours", "narrows",
                "without it", "with it")  # fmt: skip
        cells = [
            (row.experiment, row.words, str(row.measured), str(row.runs), hours(row.node_hours),
             row.question, factor(row.without), factor(row.after))
            for row in rows
        ]  # fmt: skip
        runs = sum(row.runs for row in rows)
        lines += aligned([head, *cells], left={0, 1, 5})
        lines.append(
            f"{counted(runs, 'run')}: {hours(advice.cost)} node-hours at most"
            f"{_at_once(prices)}; {_gap(advice)}"
        )
    else:
        least = min((item.cost for item in options.items if item.gain > 0), default=None)
        why = "no run narrows what is asked" if least is None else (
            f"the cheapest run that narrows anything costs {hours(least)} node-hours")  # fmt: skip
        lines.append(f"nothing to measure: {why}")
    lines += ["", "how wide 95 % intervals are: upper over lower bound", *_questions(advice)]
    lines += ["", "what each further node-hour buys", *_curve_lines(curve)]
    return "\n".join(lines)


def factor(width: float) -> str:
    """A width (natural logarithm of upper over lower bound) as a factor."""
    value = math.exp(min(width, 700.0))
    return f"{value:.3f}" if value < 2 else f"{value:.3g}"


def _overhead(prices: Prices) -> str:
    parts = [""]
    if prices.overhead_s:
        known = "as measured" if prices.measured else "as the site file says"
        parts.append(f"{duration(prices.overhead_s)} beyond its program ({known})")
    if prices.campaign.canary:
        parts.append("its canaries")
    return ", and ".join(parts)


def _at_once(prices: Prices) -> str:
    at_once = prices.campaign.site.concurrent_runs
    return f", {counted(at_once, 'run')} at once" if at_once else ""


def _gap(advice: Advice) -> str:
    if advice.gap == 0:
        return "the best choice (gap 0 %)"
    return (
        f"the search ended at its time limit: a choice may be up to {100 * advice.gap:.2g} % better"
    )


def _questions(advice: Advice) -> list[str]:
    head = ("asked", "now", "expected after")
    rows = [
        (answer.question, factor(answer.before), factor(answer.after)) for answer in advice.answers
    ]
    return aligned([head, *rows], left={0})


def _curve_lines(curve: Sequence[Advice]) -> list[str]:
    """A row for each part of the budget: what it costs, and how wide intervals are then."""
    names = [answer.question for answer in curve[-1].answers]
    head = ["node-hours", "runs", *(names if len(names) <= 3 else ["share of the widths left"])]
    rows = []
    for advice in curve:
        runs = sum(sum(count.values()) for count in advice.counts.values())
        runs += sum(map(sum, advice.levels.values()))
        left = [answer.after / answer.before for answer in advice.answers if answer.before > 0]
        share = f"{100 * math.fsum(left) / max(len(left), 1):.0f} %"
        widths = [factor(answer.after) for answer in advice.answers]
        rows.append([hours(advice.budget), str(runs), *(widths if len(names) <= 3 else [share])])
    return aligned([head, *rows], left=set())


def table_csv(rows: Sequence[Row]) -> str:
    """The advice as CSV; widths are natural logarithms of the upper over the lower bound."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["experiment", "point", "measured", "more_runs", "node_hours", "question",
                     "width_now", "width_without", "width_after"])  # fmt: skip
    for row in rows:
        writer.writerow([row.experiment, row.words, row.measured, row.runs, row.node_hours,
                         row.question, row.now, row.without, row.after])  # fmt: skip
    return out.getvalue()


def curve_csv(curve: Sequence[Advice]) -> str:
    """The curve as CSV: a row for each part of the budget and question."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["budget_node_hours", "node_hours", "question", "width_now", "width_after"])
    for advice in curve:
        for answer in advice.answers:
            writer.writerow(
                [advice.budget, advice.cost, answer.question, answer.before, answer.after]
            )
    return out.getvalue()
