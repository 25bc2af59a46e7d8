"""The first screen: a line for each experiment, what is sure, what failed, and what to do next."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from scalesweep.aspects.layouts.table import held_layouts
from scalesweep.aspects.scaling.findings import EITHER, Verdict, verdicts
from scalesweep.aspects.steps.findings import main_loss
from scalesweep.aspects.steps.ledgers import Ledger, farthest_series, ledgers
from scalesweep.core.causes import Cause, NextJob, facts_of
from scalesweep.core.formatting import counted, duration, finite, listed, number, percent
from scalesweep.core.plan_format import Plan, PlanRun
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, CLEAR, NOTE, OPEN, SAME, Finding
from scalesweep.jobs.failure_groups import shared_values
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
_QUIET = "repeat on a quiet machine"
# What to do before runs are repeated that would fail again.
_CURES: Mapping[str, str] = {
    Cause.OUT_OF_MEMORY: "take a smaller batch, or ask for more memory",
    Cause.GPU_OUT_OF_MEMORY: "take a smaller batch, or split the model",
    Cause.TIMEOUT: "raise `max_minutes`",
    Cause.HANG: "look at the stack of the rank that hangs",
    Cause.NOT_STATED: "the source does not say why",
    Cause.MISSING_DATA: "put the data where the site file says",
}
# How the figure begins that answers an experiment's question, the plainest first.
_FIGURES = ("scaling", "layouts-scale", "heatmap", "compare")


@dataclass(frozen=True)
class Line:
    """An experiment in the table of the first screen."""

    rows: Sequence[tuple[str, str]]  # where to run and the efficiency, of each series or setting
    loss: str
    state: str  # of the run at: clear, open, or empty
    next: str
    noisy: str = ""  # that other processes disturbed most of its runs
    loss_state: str = ""

    @property
    def run_at(self) -> str:
        """Where to run."""
        return " · ".join(run_at for run_at, _ in self.rows if run_at)

    @property
    def efficiency(self) -> str:
        """The efficiency there and beyond, or the value."""
        return " · ".join(share for _, share in self.rows if share)

    @property
    def text(self) -> str:
        """The line as a terminal prints it."""
        where = " · ".join("; ".join(filter(None, row)) for row in self.rows)
        said = "; ".join(filter(None, (f"run at {where}" if self.run_at else where, self.loss)))
        words = f"{self.state}, though {self.noisy}" if self.noisy else self.state
        return f"{said or 'no result'}{f' ({words})' if words else ''}"


@dataclass(frozen=True)
class Next:
    """What to do next; ``code`` can be copied, and takes so many ``runs``."""

    text: str
    code: str = ""
    runs: int = 0

    @property
    def short(self) -> str:
        """What stands before the colon, as a cell of a table begins."""
        text = self.text.partition(":")[0]
        return text[:1].lower() + text[1:]


def first_screen(
    plan: Plan,
    results: ExperimentResults,
    findings: Sequence[Finding],
    figures: Sequence[str],
    facts: Mapping[str, RunFacts],
    failures: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What the template shows first of an experiment; ``figures`` are the names of all of them,
    ``failures`` the failed points (``sections.failed_points``)."""
    series = farthest_series(results, ledgers(results))
    reaches = verdicts(results)
    again = f"cd {shlex.quote(str(Path.cwd()))} && scalesweep run {plan['file']}"
    steps = steps_of(results, findings, reaches, series, again)
    then = next((step for step in steps if step.text), None)
    figures = sorted(figures, key=_figure_rank)
    loss = main_loss(series)
    if loss and results.scale in results.axes:
        loss += f" at {results.scale_of(series[-1].row):,}"
    return {
        "line": line_of(results, findings, reaches, loss, then),
        "sentences": sentences_of(findings),
        # Without a loss: none is large, or steps were not recorded.
        "recorded": bool(series) or not (reaches or held_layouts(results)),
        "next": then,
        "cost": _cost(results, facts, then.runs) if then and then.runs else "",
        "figure": figures[0] if figures and _figure_rank(figures[0])[0] < len(_FIGURES) else None,
        "disturbed": _disturbed(findings),
        "failed": _failures(results, failures),
    }


def _figure_rank(name: str) -> tuple[int, bool, str]:
    kinds = [place for place, kind in enumerate(_FIGURES) if name.startswith(kind)]
    return min(kinds, default=len(_FIGURES)), name.endswith("-init"), name


def _failures(
    results: ExperimentResults, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Runs that failed alike: cause, points, number of runs, last error line, and the cure."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        lines = [line.strip() for line in row["lines"] if line.strip()]
        errors = [line for line in lines if "rror" in line] or lines or [row["detail"] or ""]
        groups.setdefault((str(row["cause"]), errors[-1][:160]), []).extend(row["runs"])
    alike = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [
        {
            "cause": cause,
            "where": ", ".join(shared_values([_varying(results, each["run"]) for each in runs])),
            "count": len(runs),
            "line": line,
            "cure": _cure(cause) if runs[0]["run"]["to_run"] or cause == Cause.NOT_STATED else "",
        }
        for (cause, line), runs in alike[:MOST_FAILURES]
    ]


def _varying(results: ExperimentResults, run: PlanRun) -> dict[str, Any]:
    return {name: run["point"].get(name) for name in results.leaders}


def _cure(cause: str) -> str:
    """What to do about a cause."""
    known = _CURES.get(cause, "mend what stopped them")
    return "repeat: it may pass" if _may_pass(cause) else known


def sentences_of(findings: Sequence[Finding]) -> list[Finding]:
    """At most four sentences: what is sure before what is open, verdict and loss before others;
    notes only if little else is said."""
    said = [finding for finding in findings if finding.rule not in _ELSEWHERE]
    ranks = {rule: place for place, rule in enumerate(_FIRST)}
    said.sort(key=lambda f: (_ORDER.get(f.state, 9), ranks.get(f.rule, len(ranks))))
    firm = [finding for finding in said if finding.state != NOTE]
    return (firm if len(firm) > 1 else said)[:MOST_SENTENCES]


def line_of(
    results: ExperimentResults,
    findings: Sequence[Finding],
    reaches: Sequence[Verdict],
    loss: str,
    then: Next | None,
) -> Line:
    """The experiment's line in the table, in the state of the sentences that it rests on."""
    rows = _of_layouts(results) or (_of_series(results, reaches) if reaches else [])
    rows = rows or [_of_best(results, findings)]
    argued = [finding for finding in findings if finding.state in (CLEAR, OPEN)]
    answers = [f for f in argued if f.rule == VERDICT] if reaches else []
    answers = answers or [f for f in argued if f.rule in _BEST] or argued
    states = {finding.state for finding in answers}
    state = OPEN if OPEN in states else next(iter(states), "")
    noisy = mostly_disturbed(findings) if state else ""
    of_loss = {finding.state for finding in argued if finding.rule == LOSS} if loss else set()
    return Line(
        rows, loss, state,
        then.short if then else "", noisy,
        OPEN if OPEN in of_loss else next(iter(of_loss), ""),
    )  # fmt: skip


def _disturbed(findings: Sequence[Finding]) -> int:
    """How many runs other processes disturbed."""
    load = [f for f in findings if f.rule == LOAD and f.numbers]
    return int(load[0].numbers[0].value or 0) if load else 0


def mostly_disturbed(findings: Sequence[Finding]) -> str:
    """That other processes disturbed more than half of the runs; empty if they did not."""
    load = [f for f in findings if f.rule == LOAD and len(f.numbers) > 1]
    runs, of = (int(number.value or 0) for number in load[0].numbers[:2]) if load else (0, 0)
    return f"other processes disturbed {runs} of {of} runs" if 2 * runs > of else ""


def _of_series(results: ExperimentResults, reaches: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Where to run, and the efficiencies there and beyond: of few series each by itself."""
    without = [series for series in results.series if series.holes
               and all(reach.series is not series for reach in reaches)]  # fmt: skip
    several = len(reaches) + len(without)
    if several > MOST_SERIES:
        return [_of_many(results, reaches)]
    rows = []
    for reach in reaches:
        at, there, fails = reach.held_at, reach.held, reach.fails
        share = f"{number(100 * there.value) if there else 100} %"
        lacks = [f"{count:,}" for count in reach.series.holes if count > at]
        if fails is not None:
            share += f"; at {fails.count:,}: {number(100 * fails.value)} %"
        elif not lacks:
            share += ", the largest run"
        share += f"; no result at {listed(lacks)} {results.scale}" if lacks else ""
        label = f" at {reach.series.label}" if several > 1 else ""
        rows.append((results.scaled(at) + label, share))
    for series in without:
        lacks = [f"{count:,}" for count in series.holes]
        rows.append((f"none at {series.label}", f"no result at {listed(lacks)} {results.scale}"))
    return rows


def _of_many(results: ExperimentResults, reaches: Sequence[Verdict]) -> tuple[str, str]:
    runs = sorted({reach.held_at for reach in reaches})
    ends = f"{runs[0]} to {runs[-1]:,}" if len(runs) > 1 else f"{runs[0]:,}"
    run_at = f"{ends} {results.scaled(runs[-1]).split(' ', 1)[-1]}"
    beyond = [reach.fails for reach in reaches if reach.fails is not None]
    if not beyond:
        return run_at, f"above {100 * results.target:.0f} % in {len(reaches)} series"
    low, high = (f"{100 * pick(p.value for p in beyond):.0f}" for pick in (min, max))
    return run_at, f"beyond: {low if low == high else f'{low} to {high}'} % ({len(reaches)} series)"


def _of_layouts(results: ExperimentResults) -> list[tuple[str, str]]:
    """The layouts to run, up to the largest scale that holds the target, with their efficiency
    there and beyond; none of other experiments."""
    rows = []
    for held in held_layouts(results)[:MOST_SERIES]:
        best, share = held.best[held.scale], f"{number(100 * held.shares[held.scale])} %"
        beyond = [scale for scale in held.shares if scale > held.scale][:1]
        share += "".join(f"; at {s:,}: {number(100 * held.shares[s])} %" for s in beyond)
        if best.ahead:
            share += f"; {percent(best.ahead.less(1).value)} ahead of the next layout"
        name = held.setting and f"{held.setting}: "
        rows.append((f"{name}{results.scaled(held.scale)}, {best.layout}", share))
    return rows


def _of_best(results: ExperimentResults, findings: Sequence[Finding]) -> tuple[str, str]:
    """The best setting, and its main metric."""
    best = [f for f in findings if f.rule in _BEST and f.evidence.get("key")]
    best.sort(key=lambda finding: finding.state != CLEAR)
    if results.main is None:
        return "", ""
    main, key = results.main, best[0].evidence["key"] if best else {}
    names = [name for name in results.leaders if name in key]
    values = [
        value
        for row in results.points
        if all(row.get(name) == key[name] for name in names)
        and finite(value := main.value(row, "mean", main.steady_phase))
    ]
    if values and (best or len(values) == 1):
        return results.describe(key, names) if best else "", f"{number(values[0])} {main.unit}"
    return "", f"{counted(len(values), 'point')} measured" if values else ""


def steps_of(
    results: ExperimentResults,
    findings: Sequence[Finding],
    reaches: Sequence[Verdict],
    series: Sequence[Ledger],
    again: str,
) -> Iterator[Next]:
    """What is missing first, then what to act on, then what would decide, then what comes next;
    ``again`` is the command that runs the campaign. Steps without a text are none."""
    runs = results.entry["runs"]
    if pending := sum(run["status"] == Status.NEW for run in runs):
        yield Next(f"run the {counted(pending, 'pending run')}", again, pending)
    if failed := [run for run in runs if run["status"] == Status.FAILED and run["to_run"]]:
        text = f"repeat {counted(len(failed), 'failed run')}: what stopped them may pass"
        lasting = Counter(run["cause"] for run in failed if not _may_pass(run["cause"]))
        for cause, count in lasting.most_common(1):
            rest = len(failed) - count
            more = f"; repeat the other {counted(rest, 'run')}" if rest else ""
            text = (
                f"{_cure(cause)}{more}: {counted(count, 'run')} ended with {cause}, and would again"
            )
        yield Next(text, again, len(failed))
    if results.control:
        return
    said = [Next(finding.next) for finding in sentences_of(findings)]
    if set(results.sources) == {"imported"}:
        yield from said
        return
    if noisy := mostly_disturbed(findings):
        done = sum(run["status"] == Status.DONE for run in runs)
        yield Next(f"{_QUIET}: {noisy}", f"{again} --again {results.name}", done)
    losses = [finding for finding in findings if finding.rule == LOSS]
    yield from (Next(loss.next) for loss in losses if loss.state == CLEAR)
    if results.entry.get("noexchange") and not series:
        text = "separate communication from computation: steps on GPUs have no time stamps"
        yield Next(text, f"{again} --profiler noexchange")
    yield from _measure(results, findings, reaches, again)
    yield from (Next(loss.next) for loss in losses)
    yield from said


def _may_pass(cause: str) -> bool:
    """Whether the same run may end well another time."""
    return facts_of(cause).next_job in (NextJob.SAME, NextJob.SAME_ONCE, NextJob.ELSEWHERE)


def _measure(
    results: ExperimentResults, findings: Sequence[Finding], reaches: Sequence[Verdict], again: str
) -> Iterator[Next]:
    """What to measure: what decides an open scale, a larger scale, or repeats of single runs."""
    unclear = any(finding.rule == VERDICT and finding.state == OPEN for finding in findings)
    undecided = [
        (reach, reach.beyond)
        for reach in reaches
        if reach.beyond is not None and (unclear or reach.beyond.side != "below")
    ]
    unsure = any(finding.rule == LOSS and finding.state == OPEN for finding in findings)
    if (noisy := _disturbed(findings)) and (undecided or unsure):
        text = f"{_QUIET}: other processes disturbed {counted(noisy, 'run')}"
        yield Next(text, f"{again} --again disturbed", noisy)
    if undecided:
        strange = [verdict.next for verdict, _ in undecided
                   if verdict.cited.odd or verdict.why == SAME]  # fmt: skip
        needed = [verdict.repeats_for(point) for verdict, point in undecided]
        if strange or None in needed:
            # More than twice as many repeats: what makes the numbers as they are comes first.
            yield Next(strange[0] if strange else EITHER)
        single = any(point.low is None for _, point in undecided)
        why = "they give the efficiency an interval" if single else "that may decide"
        yield _repeat(results, max(more or 1 for more in needed), why)
    if reaches and all(reach.beyond is None for reach in reaches):
        last = max(reach.held_at for reach in reaches)
        counts = ", ".join(str(count) for count in [*results.values(results.scale), 2 * last])
        code = f"experiments:\n  {results.name}:\n    axes:\n      {results.scale}: [{counts}]"
        repeats = 1 + max(run["repeat"] for run in results.entry["runs"])
        text = "measure a larger scale: nothing has stopped scaling yet"
        yield Next(text, code, len(reaches) * repeats)
    if not reaches and results.points and all(row.get("repeats") == 1 for row in results.points):
        yield _repeat(results, 2, "they give every point an interval")


def _repeat(results: ExperimentResults, more: int, why: str) -> Next:
    """More repeats as lines of the campaign file."""
    runs = results.entry["runs"]
    repeats = str(max((int(run["repeat"]) for run in runs), default=0) + 1 + more)
    points = len({results.key(run["point"], results.axes) for run in runs})
    if rule := results.entry.get("repeats"):
        until = f"until: {100 * rule['until']:.6g} %"
        repeats = f"{{min: {repeats}, max: {max(int(repeats), rule['most'])}, {until}}}"
    code = f"experiments:\n  {results.name}:\n    repeats: {repeats}"
    return Next(f"measure {counted(more, 'more repeat')}: {why}", code, points * more)


def _cost(results: ExperimentResults, facts: Mapping[str, RunFacts], runs: int) -> str:
    """``6 runs, about 4 min``."""
    ran = [facts[run["run_id"]] for run in results.entry["runs"] if run["run_id"] in facts]
    seconds = runs * fmean(run.wall_s or 0.0 for run in ran) if ran else 0.0
    return counted(runs, "run") + (f", about {duration(seconds)}" if seconds else "")
