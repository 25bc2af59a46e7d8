"""Advise which layouts to try at a number of ranks that was not run."""

import argparse
import csv
import io
from collections.abc import Iterator, Sequence

from scalesweep.adaptive.advice import excluded_points
from scalesweep.adaptive.advice_points import prices_of
from scalesweep.adaptive.advised_campaign import advised_campaign, write_advised
from scalesweep.adaptive.layout_forecast import HEAD, ForecastAt, cells_of
from scalesweep.adaptive.layout_trials import Trial, Trials, layout_trials
from scalesweep.analysis.prediction.layouts.forecast import LEVEL
from scalesweep.aspects.prediction.layouts import KEPT_LAYOUTS, Made, keep_layouts
from scalesweep.config.campaign import Campaign
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import counted
from scalesweep.planning.plan import hours
from scalesweep.planning.plan_text import aligned
from scalesweep.state.stock import take_stock
from scalesweep.table.declared import numbers_of
from scalesweep.tables.now import read_now

TABLE, CAMPAIGN = "advice_layouts.csv", "advice.yaml"
MOST = 100
LARGEST = 10_000_000


def advise_layouts(args: argparse.Namespace, campaign: Campaign, budget: float | None) -> None:
    """Print the layouts to try; write them as a table, and as a campaign where runs can be started.
    Nothing is run."""
    if args.target:
        raise UserError("advise: --layouts and --target ask for two things; name one of them")
    count = whole(args.layouts or "5", "--layouts", MOST)
    if not args.ranks:
        raise UserError("advise: --layouts: for how many ranks? Add --ranks 256")
    ranks = whole(args.ranks, "--ranks", LARGEST)
    plan, summary = read_now(campaign)
    prices = None if campaign.site.launch is None else prices_of(campaign)
    chosen = layout_trials(
        campaign, plan, summary, prices, excluded_points(campaign), ranks, count, budget
    )
    print(trials_text(campaign, chosen, ranks, budget))
    folder = campaign.results
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / TABLE, table_csv(chosen.decisions))
    keep_layouts(_made(chosen.decisions), folder / KEPT_LAYOUTS)
    path = folder / CAMPAIGN
    more = [(t.experiment, t.point, 1) for t in chosen.chosen if t.point is not None]
    if not more:
        path.unlink(missing_ok=True)
        return
    states = take_stock(campaign, campaign.unique_runs(), remember=False)
    head = f"What was measured, and the layouts to try on {ranks:,} ranks."
    write_advised(advised_campaign(load_yaml(campaign.file), campaign, states, more, head), path)
    print(f"\nto measure them: snakemake --configfile {path}")


def _made(decisions: Sequence[Trial]) -> Iterator[Made]:
    """What is expected of every layout that is a point of the campaign."""
    for trial in decisions:
        if trial.expected is None or trial.point is None:
            continue
        study, rate = trial.study, trial.expected.rate
        metric, phase = study.measure
        value, low, high = (end or 0.0 for end in numbers_of(rate))
        yield Made(
            trial.experiment, trial.point, metric, phase, study.unit, study.source,
            int(study.measured.ran.sum()), study.measured.scales[-1], trial.chosen, LEVEL,
            value, low, high,
        )  # fmt: skip


def whole(text: str, option: str, most: int) -> int:
    """The whole number that an option names. Raises UserError."""
    if text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most:
        return int(text)
    raise UserError(f"{option} {text}: must be a whole number from 1 to {most:,}")


def trials_text(campaign: Campaign, chosen: Trials, ranks: int, budget: float | None = None) -> str:
    """The advice for people."""
    lines = [
        f"campaign {campaign.name} on site {campaign.site.name}: layouts to try on {ranks:,} ranks"
    ]
    for name, forecast in chosen.forecasts:
        lines += ["", *_of_study(name, forecast, chosen.chosen)]
    lines += [f"left out: {why}" for why in chosen.left_out]
    costs = [trial.node_hours for trial in chosen.chosen if trial.node_hours is not None]
    if costs:
        lines += ["", f"{counted(len(costs), 'run')}: {hours(sum(costs))} node-hours at most"]
    elif campaign.site.launch is None and chosen.chosen:
        heeded = "" if budget is None else ", and the budget is ignored"
        name = campaign.site.name
        lines += ["", f"{name} starts no runs (no 'launch'), so no campaign is written{heeded}"]
    return "\n".join(lines)


def _of_study(name: str, forecast: ForecastAt, trials: Sequence[Trial]) -> list[str]:
    study = forecast.study
    head = f"{name}{f', {study.words}' if study.words else ''}: {study.measure[0]}"
    if forecast.refused:
        return [head, f"  refused: {forecast.refused}"]
    own = [trial for trial in trials if trial.study is study and trial.expected is not None]
    if not own:
        return [head, "  none of its layouts can be paid for"]
    rows: list[tuple[str, ...]] = [HEAD]
    for trial in own:
        *cells, why = cells_of(study, trial.expected) if trial.expected else ("",) * len(HEAD)
        rows.append((*cells, f"{trial.reason}; {why}"))
    left = {0, 1, 2, 3}
    costs = [trial.node_hours for trial in own if trial.node_hours is not None]
    if costs:
        column = ["node-hours", *map(hours, costs)]
        rows = [(*row[:3], cost, row[3]) for row, cost in zip(rows, column, strict=True)]
        left = {0, 1, 2, 4}
    table = aligned(rows, left=left)
    return [head, *table, *(f"note: {note}" for note in forecast.notes)]


def table_csv(trials: Sequence[Trial]) -> str:
    """Every layout and what was decided, as CSV; ``low`` and ``high``: ends of the interval of
    90 %, ``gain``: what it adds to those that are chosen (before it, of a chosen one)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["experiment", "study", "ranks", "dp", "tp", "pp", "cp", "ep", "sharded",
                     "micro_batch", "accumulation", "decision", "reason", "gain", "metric", "rate",
                     "low", "high", "unit", "fits", "node_hours", "why"])  # fmt: skip
    for trial in trials:
        layout, study, expected = trial.layout, trial.study, trial.expected
        rate = expected.rate if expected else None
        writer.writerow([
            trial.experiment, study.words, trial.ranks, layout.dp, layout.tp, layout.pp, layout.cp,
            layout.ep, layout.sharded, layout.micro_batch, layout.accumulation,
            "chosen" if trial.chosen else "refused", trial.reason, trial.gain, study.measure[0],
            *((rate.value, rate.low, rate.high) if rate else (None, None, None)), study.unit,
            expected.fits if expected else None, trial.node_hours,
            expected.why if expected else None,
        ])  # fmt: skip
    return out.getvalue()
