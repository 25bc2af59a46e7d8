"""The first screen: a line for each experiment, what is sure, what failed, and what to do next."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.analysis.repeats import more_repeats
from scalesweep.aspects.steps.ledgers import Ledger
from scalesweep.core.formatting import counted, duration, finite, listed, number
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.findings.base import ATTENTION, CLEAR, NOTE, OPEN, Finding
from scalesweep.report.step_bars import Loss, farthest_series, main_loss, step_bars
from scalesweep.tables.provenance import RunFacts

MOST_SENTENCES = 4
MOST_FAILURES = 4
MOST_SERIES = 3  # that are named in a line of the table
# What a verdict rests on; and rules whose sentences stand elsewhere on the screen, or nowhere.
VERDICT, LOSS, LOAD = "verdict", "largest loss", "other load"
_ELSEWHERE = frozenset({LOAD, "coverage"})
_BEST = ("best layout", "best")
_FIRST = (VERDICT, *_BEST, LOSS, "causes")
# What is sure comes first.
_ORDER: Mapping[str, int] = {CLEAR: 0, ATTENTION: 1, OPEN: 2, NOTE: 3}
# How the figure begins that answers an experiment's question, the plainest first.
_FIGURES = ("scaling", "layouts-scale", "heatmap", "compare", "parameter", "groups")
CLEAR_WORDS, OPEN_WORDS = (
    "holds in 95 of 100 such experiments, all claims of the experiment taken together",
    "measured, but the repeats leave room for chance",
)


@dataclass(frozen=True)
class Line:
    """An experiment in the table of the first screen."""

    run_at: str
    efficiency: str
    loss: str
    state: str  # clear, open, or empty
    why: str  # what the state means
    next: str

    @property
    def text(self) -> str:
        """The line as a terminal prints it."""
        parts = [f"run at {self.run_at}" if self.run_at else "", self.efficiency, self.loss]
        said = "; ".join(part for part in parts if part)
        words = f"{self.state}: {self.why}" if "disturbed" in self.why else self.state
        return f"{said or 'no result'}{f' ({words})' if words else ''}"


@dataclass(frozen=True)
class Next:
    """What to do next; ``code`` can be copied, ``cost`` is what it takes."""

    text: str
    code: str = ""
    cost: str = ""

    @property
    def short(self) -> str:
        """What stands before the colon, as a cell of a table begins."""
        text = self.text.partition(":")[0]
        return text[:1].lower() + text[1:]


@dataclass(frozen=True)
class Reach:
    """A series: the largest scale at the target or above it, and the point that follows."""

    series: Series
    run: int
    there: float
    beyond: int | None
    share: float | None
    low: float | None = None
    high: float | None = None
    repeats: int = 1


def first_screen(
    plan: Plan,
    results: ExperimentResults,
    findings: Sequence[Finding],
    figures: Sequence[str],
    facts: Mapping[str, RunFacts],
    failures: Mapping[str, Any],
) -> dict[str, Any]:
    """What the template shows first of an experiment; ``figures`` are the names of all of them."""
    series = farthest_series(results)
    loss = main_loss(series)
    reaches = reaches_of(results)
    then = next_step(plan, results, findings, reaches, series, facts)
    figures = sorted(figures, key=_figure_rank)
    load = [finding for finding in findings if finding.rule == LOAD]
    return {
        "line": line_of(results, findings, reaches, loss, then),
        "sentences": sentences_of(findings),
        "next": then,
        "step": step_bars(results, series),
        "figure": figures[0] if figures and _figure_rank(figures[0])[0] < len(_FIGURES) else None,
        "disturbed": int(load[0].numbers[0].value or 0) if load and load[0].numbers else 0,
        "failed": _failures(failures["rows"]),
    }


def _figure_rank(name: str) -> tuple[int, bool, str]:
    kinds = [place for place, kind in enumerate(_FIGURES) if name.startswith(kind)]
    return min(kinds, default=len(_FIGURES)), name.endswith("-init"), name


def _failures(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Runs that failed alike: cause, points, number of runs and last error line."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        lines = [line.strip() for line in row["lines"] if line.strip()]
        errors = [line for line in lines if "rror" in line] or lines or [row["detail"] or ""]
        groups.setdefault((str(row["cause"]), errors[-1][:160]), []).append(row)
    alike = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [
        {
            "cause": cause,
            "where": listed([row["where"] for row in of], 2),
            "count": sum(len(row["runs"]) for row in of),
            "line": line,
        }
        for (cause, line), of in alike[:MOST_FAILURES]
    ]


def sentences_of(findings: Sequence[Finding]) -> list[Finding]:
    """At most four sentences: what is sure before what is open, verdict and loss before others;
    notes only if little else is said."""
    said = [finding for finding in findings if finding.rule not in _ELSEWHERE]
    ranks = {rule: place for place, rule in enumerate(_FIRST)}
    said.sort(key=lambda f: (_ORDER.get(f.state, 9), ranks.get(f.rule, len(ranks))))
    firm = [finding for finding in said if finding.state != NOTE]
    return (firm if len(firm) > 1 else said)[:MOST_SENTENCES]


def reaches_of(results: ExperimentResults) -> list[Reach]:
    """Of each series with efficiencies, up to where it holds the target, and what comes then."""
    measure = results.scaled_measure
    if measure is None:
        return []
    reaches = [_reach(results, measure, series) for series in results.series]
    return [reach for reach in reaches if reach is not None]


def _reach(results: ExperimentResults, measure: Measure, series: Series) -> Reach | None:
    base = series.rows[0]
    run, share, rest = results.scale_of(base), 1.0, list[tuple[Row, Any]]()
    known = 0
    for row in series.rows[1:]:
        value, low, high = measure.efficiency(row, measure.steady_phase)
        if value is None:
            continue
        known += 1
        if (low or value) >= results.target:
            run, share, rest = results.scale_of(row), value, []
        else:
            rest.append((row, (value, low, high)))
    if not known:
        return None
    if not rest:
        return Reach(series, run, share, None, None)
    row, (value, low, high) = rest[0]
    repeats = min(int(point.get("repeats") or 1) for point in (base, row))
    return Reach(series, run, share, results.scale_of(row), value, low, high, repeats)


def line_of(
    results: ExperimentResults,
    findings: Sequence[Finding],
    reaches: Sequence[Reach],
    loss: Loss | None,
    then: Next | None,
) -> Line:
    """The experiment's line in the table."""
    run_at, efficiency = _of_series(results, reaches) if reaches else _of_best(results, findings)
    argued = [finding for finding in findings if finding.state in (CLEAR, OPEN)]
    answers = [f for f in argued if f.rule == VERDICT] if reaches else []
    answers = answers or [f for f in argued if f.rule in _BEST] or argued
    states = {finding.state for finding in answers}
    state = OPEN if OPEN in states else next(iter(states), "")
    why = {"clear": CLEAR_WORDS, "open": OPEN_WORDS}.get(state, "")
    if state and (noisy := mostly_disturbed(findings)):
        state, why = OPEN, noisy
    elif state and any(_may_reach(reach, results.target) for reach in reaches):
        state, why = OPEN, "the next scale may reach the target too"
    return Line(
        run_at, efficiency, loss.text if loss else "", state, why, then.short if then else ""
    )


def mostly_disturbed(findings: Sequence[Finding]) -> str:
    """That other processes disturbed more than half of the runs; empty if they did not."""
    load = [f for f in findings if f.rule == LOAD and len(f.numbers) > 1]
    runs, of = (int(number.value or 0) for number in load[0].numbers[:2]) if load else (0, 0)
    return f"other processes disturbed {runs} of {of} runs" if 2 * runs > of else ""


def _of_series(results: ExperimentResults, reaches: Sequence[Reach]) -> tuple[str, str]:
    runs = sorted({reach.run for reach in reaches})
    ends = f"{runs[0]} to {runs[-1]:,}" if len(runs) > 1 else f"{runs[0]:,}"
    run_at = f"{ends} {results.scaled(runs[-1]).split(' ', 1)[-1]}"
    if len(runs) > 1 and len(reaches) <= MOST_SERIES:
        each = [f"{results.scaled(reach.run)} at {reach.series.label}" for reach in reaches]
        run_at = "; ".join(each)
    if len(reaches) == 1:
        reach = reaches[0]
        there = f"{number(100 * reach.there)} %"
        if reach.share is None:
            return run_at, f"{there}, the largest run"
        return run_at, f"{there}; at {reach.beyond:,}: {number(100 * reach.share)} %"
    shares = sorted(reach.share for reach in reaches if reach.share is not None)
    if not shares:
        return run_at, f"above {100 * results.target:.0f} % in {len(reaches)} series"
    low, high = (f"{100 * share:.0f}" for share in (shares[0], shares[-1]))
    return run_at, f"beyond: {low if low == high else f'{low} to {high}'} % ({len(reaches)} series)"


def _of_best(results: ExperimentResults, findings: Sequence[Finding]) -> tuple[str, str]:
    """The best setting, and its main metric."""
    best = [f for f in findings if f.rule in _BEST and f.evidence.get("key")]
    best.sort(key=lambda finding: finding.state != CLEAR)
    if not best or results.main is None:
        return "", ""
    key, main = best[0].evidence["key"], results.main
    names = [name for name in results.leaders if name in key]
    value = next(
        (
            main.value(row, "mean", main.steady_phase)
            for row in results.points
            if all(row.get(name) == key[name] for name in names)
        ),
        None,
    )
    return results.describe(key, names), f"{number(value)} {main.unit}" if finite(value) else ""


def next_step(
    plan: Plan,
    results: ExperimentResults,
    findings: Sequence[Finding],
    reaches: Sequence[Reach],
    series: Sequence[Ledger],
    facts: Mapping[str, RunFacts],
) -> Next | None:
    """What is missing first, then what to act on, then what would decide, then what comes next."""
    again = f"cd {shlex.quote(str(Path.cwd()))} && scalesweep run {plan['file']}"
    if missing := _missing(results, facts, again):
        return missing
    if results.control or set(results.sources) == {"imported"}:
        said = () if results.control else sentences_of(findings)
        return next((Next(finding.next) for finding in said if finding.next), None)
    if noisy := mostly_disturbed(findings):
        load = next(finding for finding in findings if finding.rule == LOAD)
        cost = _cost(results, facts, int(load.numbers[0].value or 0))
        return Next(f"repeat on a quiet machine: {noisy}", f"{again} --again disturbed", cost)
    losses = [finding for finding in findings if finding.rule == LOSS]
    if sure := [loss for loss in losses if loss.state == CLEAR]:
        return Next(_act(findings, sure[0]))
    if results.entry.get("noexchange") and not series:
        text = "separate communication from computation: steps on GPUs have no time stamps"
        return Next(text, f"{again} --profiler noexchange")
    advised = [_act(findings, loss) for loss in losses]
    advised += [finding.next for finding in sentences_of(findings)]
    measured = _measure(results, findings, reaches, facts, again)
    return measured or next((Next(text) for text in advised if text), None)


def _missing(results: ExperimentResults, facts: Mapping[str, RunFacts], again: str) -> Next | None:
    """What is pending, or failed and may be repeated."""
    runs = results.entry["runs"]
    if pending := sum(run["status"] == Status.NEW for run in runs):
        text = f"run the {counted(pending, 'pending run')}"
        return Next(text, again, _cost(results, facts, pending))
    if failed := sum(run["status"] == Status.FAILED and run["to_run"] for run in runs):
        text = f"repeat {counted(failed, 'failed run')}: mend what stopped them first"
        return Next(text, again, _cost(results, facts, failed))
    return None


def _act(findings: Sequence[Finding], loss: Finding) -> str:
    """What to do about a loss; of the exchange what the network's own numbers say."""
    advice = [str(f.evidence["do"]) for f in findings if f.evidence.get("do")]
    return advice[0] if advice and loss.evidence.get("term") == "transfer" else loss.next


def _measure(
    results: ExperimentResults,
    findings: Sequence[Finding],
    reaches: Sequence[Reach],
    facts: Mapping[str, RunFacts],
    again: str,
) -> Next | None:
    """What to measure: what decides an open scale, a larger scale, or repeats of single runs."""
    unclear = any(finding.rule == VERDICT and finding.state == OPEN for finding in findings)
    undecided = [
        r for r in reaches if r.share is not None and (unclear or not _decided(r, results.target))
    ]
    load = [finding for finding in findings if finding.rule == LOAD and finding.numbers]
    unsure = any(finding.rule == LOSS and finding.state == OPEN for finding in findings)
    if load and (undecided or unsure):
        runs = int(load[0].numbers[0].value or 0)
        text = f"repeat on a quiet machine: other processes disturbed {counted(runs, 'run')}"
        return Next(text, f"{again} --again disturbed", _cost(results, facts, runs))
    if undecided:
        return _deciding(results, undecided, facts)
    if reaches and all(reach.beyond is None for reach in reaches):
        last = max(reach.run for reach in reaches)
        counts = ", ".join(str(count) for count in [*results.values(results.scale), 2 * last])
        code = f"experiments:\n  {results.name}:\n    axes:\n      {results.scale}: [{counts}]"
        runs = len(reaches) * (1 + max(run["repeat"] for run in results.entry["runs"]))
        text = "measure a larger scale: nothing has stopped scaling yet"
        return Next(text, code, _cost(results, facts, runs))
    if not reaches and results.points and all(row.get("repeats") == 1 for row in results.points):
        return _repeat(results, 2, "they give every point an interval", facts)
    return None


def _may_reach(reach: Reach, target: float) -> bool:
    """Whether the target lies within the interval of the point beyond."""
    known = reach.low is not None and reach.high is not None
    return known and (reach.low or 0.0) < target <= (reach.high or 0.0)


def _decided(reach: Reach, target: float) -> bool:
    """Whether the interval of the point beyond lies below the target."""
    return reach.high is not None and reach.high < target


def _deciding(
    results: ExperimentResults, undecided: Sequence[Reach], facts: Mapping[str, RunFacts]
) -> Next:
    """Repeats if at most as many again would decide; else what makes the repeats scatter."""
    few = min(reach.repeats for reach in undecided)
    needed = [_needed(reach, results.target) for reach in undecided]
    if few < 3:
        return _repeat(results, 3 - few, "they give the efficiency an interval", facts)
    most = max((more for more in needed if more is not None), default=None)
    if None not in needed and most is not None and most <= 2 * few:
        return _repeat(results, max(most, 1), "that may decide", facts)
    return Next(
        "take either scale: repeats would not decide, unless what makes them differ is found"
    )


def _needed(reach: Reach, target: float) -> int | None:
    if not finite(reach.share, reach.low, reach.high) or not reach.low or reach.low <= 0:
        return None
    half = math.log((reach.high or 1.0) / reach.low) / 2
    return more_repeats(half, reach.repeats, abs(math.log((reach.share or 1.0) / target)))


def _repeat(results: ExperimentResults, more: int, why: str, facts: Mapping[str, RunFacts]) -> Next:
    """More repeats as lines of the campaign file, with what they cost."""
    runs = results.entry["runs"]
    repeats = str(max((int(run["repeat"]) for run in runs), default=0) + 1 + more)
    points = len({results.key(run["point"], results.axes) for run in runs})
    if rule := results.entry.get("repeats"):
        until = f"until: {100 * rule['until']:.6g} %"
        repeats = f"{{min: {repeats}, max: {max(int(repeats), rule['most'])}, {until}}}"
    code = f"experiments:\n  {results.name}:\n    repeats: {repeats}"
    text = f"measure {counted(more, 'more repeat')}: {why}"
    return Next(text, code, _cost(results, facts, points * more))


def _cost(results: ExperimentResults, facts: Mapping[str, RunFacts], runs: int) -> str:
    """``6 runs, about 4 min``."""
    walls = [
        facts[run["run_id"]].wall_s or 0.0
        for run in results.entry["runs"]
        if run["run_id"] in facts
    ]
    mean = sum(walls) / len(walls) if walls else 0.0
    return counted(runs, "run") + (f", about {duration(mean * runs)}" if mean else "")
