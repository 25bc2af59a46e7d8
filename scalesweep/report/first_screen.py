"""The first screen: a line for each experiment, what is sure, what failed, and what to do next."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from scalesweep.aspects.layouts.table import Held, held_layouts
from scalesweep.aspects.scaling.findings import EITHER, Efficiency, Verdict, verdicts
from scalesweep.aspects.steps.findings import main_loss
from scalesweep.aspects.steps.ledgers import farthest_series, ledgers
from scalesweep.core.causes import Cause, NextJob, facts_of
from scalesweep.core.formatting import counted, duration, finite, listed, number, percent, shorten
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, CLEAR, NOTE, OPEN, SAME, Finding
from scalesweep.jobs.failure_groups import shared_values
from scalesweep.tables.provenance import RunFacts

MOST_SENTENCES, MOST_FAILURES, MOST_SERIES = 4, 4, 3  # that are shown
# What a verdict rests on; and rules whose sentences stand elsewhere on the screen, or nowhere.
VERDICT, LOSS, LOAD = "verdict", "largest loss", "other load"
_ELSEWHERE = frozenset({LOAD, "coverage"})
_BEST = ("best layout", "best")
_FIRST = (VERDICT, *_BEST, LOSS, "causes")
# What is sure comes first.
_ORDER: Mapping[str, int] = {CLEAR: 0, ATTENTION: 1, OPEN: 2, NOTE: 3}
# What to do before runs are repeated that would fail again.
_CURES: Mapping[str, str] = {
    Cause.OUT_OF_MEMORY: "take a smaller batch, or ask for more memory",
    Cause.GPU_OUT_OF_MEMORY: "take a smaller batch, or split the model",
    Cause.TIMEOUT: "raise `time_limit_minutes`",
    Cause.HANG: "look at the stack of the rank that hangs",
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
    disturbed: int = 0  # runs, by other processes
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
    def sure(self) -> dict[str, str]:
        """Words by state: one for both, or those of scale and loss apart."""
        both = {self.state: f"scale {self.state}", self.loss_state: f"loss {self.loss_state}"}
        return both if len({*both} - {""}) > 1 else {self.state: self.state} if self.state else {}

    @property
    def text(self) -> str:
        """The line as a terminal prints it."""
        where = " · ".join("; ".join(filter(None, row)) for row in self.rows)
        said = "; ".join(filter(None, (f"run at {where}" if self.run_at else where, self.loss)))
        noisy = f"{counted(self.disturbed, 'run')} disturbed" if self.disturbed else ""
        words = "; ".join(filter(None, (*self.sure.values(), noisy)))
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
    ``failures`` the failed points (``failed_points``)."""
    series = farthest_series(results, ledgers(results))
    reaches, held = verdicts(results), held_layouts(results)
    again = f"cd {shlex.quote(str(Path.cwd()))} && scalesweep run {plan['file']}"
    if (folder := plan.get("results", "results")) != "results":
        again += f" --results {shlex.quote(folder)}"
    steps = steps_of(results, findings, reaches, again)
    then = next((step for step in steps if step.text), None)
    loss = main_loss(series)
    if loss and results.scale in results.axes:
        loss += f" at {results.scale_of(series[-1].row):,}"
        if len(reaches) > 1 and (of := results.describe(series[-1].row, results.series_names)):
            loss += f", {of}"
    return {
        "line": line_of(results, findings, reaches, held, loss, then),
        "sentences": sentences_of(findings),
        # Without a loss: none is large, or steps were not recorded.
        "recorded": bool(series) or not (reaches or held),
        "next": then,
        "cost": _cost(results, facts, then.runs) if then and then.runs else "",
        "figure": _answer(figures),
        "failed": _failures(results, failures),
    }


def _answer(figures: Sequence[str]) -> str | None:
    """The figure that answers the experiment's question."""
    kinds = ([name for name in figures if name.startswith(kind)] for kind in _FIGURES)
    plainest = next(filter(None, kinds), [])
    return min(plainest, key=lambda name: (name.endswith("-init"), name), default=None)


def _failures(
    results: ExperimentResults, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Runs that failed alike: cause, points, number of runs, last error line, and the cure."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        # The detail has the error line of the first rank that failed, if there was one.
        said = row["detail"] or next((line for line in reversed(row["lines"]) if line.strip()), "")
        groups.setdefault((str(row["cause"]), shorten(said.strip(), 160)), []).extend(row["runs"])
    alike = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [
        {
            "cause": cause,
            "where": ", ".join(shared_values(
                [{n: each["run"]["point"].get(n) for n in results.leaders} for each in runs]
            )),
            "count": len(runs),
            "line": line,
            "cure": (_cure(cause) or "repeat: it may pass") if runs[0]["run"]["to_run"] else "",
        }
        for (cause, line), runs in alike[:MOST_FAILURES]
    ]  # fmt: skip


def _cure(cause: str) -> str:
    """What to do about a cause; empty if the same run may end well another time."""
    passes = facts_of(cause).next_job in (NextJob.SAME, NextJob.SAME_ONCE, NextJob.ELSEWHERE)
    return "" if passes else _CURES.get(cause, "fix what stopped them")


def sentences_of(findings: Sequence[Finding]) -> list[Finding]:
    """At most four sentences: what is sure before what is open, of each rule the first, verdict and
    loss before others; notes only if little else is said."""
    ranks = {rule: place for place, rule in enumerate(_FIRST)}
    turns = Counter[tuple[str, str]]()
    placed = []
    for finding in (of for of in findings if of.rule not in _ELSEWHERE):
        turns[finding.state, finding.rule] += 1
        turn, rank = turns[finding.state, finding.rule], ranks.get(finding.rule, len(ranks))
        placed.append(((_ORDER.get(finding.state, 9), turn, rank), finding))
    said = [finding for _, finding in sorted(placed, key=lambda item: item[0])]
    firm = [finding for finding in said if finding.state != NOTE]
    return (firm if len(firm) > 1 else said)[:MOST_SENTENCES]


def line_of(
    results: ExperimentResults,
    findings: Sequence[Finding],
    reaches: Sequence[Verdict],
    held: Sequence[Held],
    loss: str,
    then: Next | None,
) -> Line:
    """The experiment's line in the table, in the state of the sentences that it rests on."""
    rows = _of_layouts(results, held) or (_of_series(results, reaches) if reaches else [])
    rows = rows or [_of_best(results, findings)]
    to_run = [(layouts.setting, layouts.scale) for layouts in held]
    argued = [finding for finding in findings if finding.state in (CLEAR, OPEN)]
    answers = [f for f in argued if f.rule == VERDICT] if reaches else []
    answers = answers or [
        of for of in argued if of.rule in _BEST
        and (not held or (of.evidence.get("setting"), of.evidence.get("scale")) in to_run)
    ] or argued  # fmt: skip
    states = {finding.state for finding in answers}
    state = OPEN if OPEN in states else next(iter(states), "")
    of_loss = {finding.state for finding in argued if finding.rule == LOSS} if loss else set()
    worst = OPEN if OPEN in of_loss else next(iter(of_loss), "")
    return Line(rows, loss, state, then.short if then else "", _disturbed(findings)[0], worst)


def _disturbed(findings: Sequence[Finding]) -> tuple[int, int]:
    """How many runs other processes disturbed, and of how many."""
    load = [[int(of.value or 0) for of in f.numbers] for f in findings if f.rule == LOAD]
    return (load[0][0], load[0][1]) if load else (0, 0)


def _of_series(results: ExperimentResults, reaches: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Where to run, and the efficiencies there and beyond, of each series, with its holes."""
    known = {reach.series.label: reach for reach in reaches}
    lines = [series for series in results.series if series.label in known or series.holes]
    rows = []
    for series in lines[:MOST_SERIES]:
        reach, at, said = known.get(series.label), 0, []
        if reach:
            at = reach.held_at
            said.append(f"{number(100 * reach.held.value) if reach.held else 100} %")
            if reach.fails:
                said.append(f"at {reach.fails.count:,}: {number(100 * reach.fails.value)} %")
        if lacks := [f"{count:,}" for count in series.holes if count > at]:
            said.append(f"no result at {listed(lacks)} {results.scale}")
        elif reach and not reach.fails:
            said.append("the largest run")
        where = results.scaled(at) if at else "none"
        rows.append((f"{where} at {series.label}" if len(lines) > 1 else where, "; ".join(said)))
    if more := len(lines[MOST_SERIES:]):
        rows.append((f"{more} more series", "in the table of scaling"))
    return rows


def _of_layouts(results: ExperimentResults, every: Sequence[Held]) -> list[tuple[str, str]]:
    """The layouts to run, up to the largest scale that holds the target, with their efficiency
    there and beyond; none of other experiments."""
    rows = []
    for held in every[:MOST_SERIES]:
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
    results: ExperimentResults, findings: Sequence[Finding], reaches: Sequence[Verdict], again: str
) -> Iterator[Next]:
    """What is missing first, then what to act on, then what would decide, then what comes next;
    ``again`` is the command that runs the campaign. Steps without a text are none."""
    runs = results.entry["runs"]
    if pending := sum(run["status"] == Status.NEW for run in runs):
        yield Next(f"run the {counted(pending, 'pending run')}", again, pending)
    if failed := [run for run in runs if run["status"] == Status.FAILED and run["to_run"]]:
        text = f"repeat {counted(len(failed), 'failed run')}: what stopped them may pass"
        lasting = Counter(run["cause"] for run in failed if _cure(run["cause"]))
        for cause, count in lasting.most_common(1):
            text = f"{_cure(cause)}: {counted(count, 'run')} ended with {cause}, and would again"
        yield Next(text, again, len(failed))
    if results.control:
        return
    said = [Next(it.next) for it in sorted(sentences_of(findings), key=lambda it: it.rule != LOSS)]
    if set(results.sources) == {"imported"}:
        yield from said
        return
    noisy, of = _disturbed(findings)
    quiet = f"repeat on a quiet machine: other processes disturbed {noisy} of {of} runs"
    if 2 * noisy > of:
        done = sum(run["status"] == Status.DONE for run in runs)
        yield Next(quiet, f"{again} --again {results.name}", done)
    yield from (Next(of.next) for of in findings if (of.rule, of.state) == (LOSS, CLEAR))
    unclear, unsure = (
        any(of.rule == rule and of.state == OPEN for of in findings) for rule in (VERDICT, LOSS)
    )
    undecided = [
        (reach, reach.beyond)
        for reach in reaches
        if reach.beyond is not None and (unclear or reach.beyond.side != "below")
    ]
    if noisy and (undecided or unsure):
        yield Next(quiet, f"{again} --again disturbed", noisy)
    yield from _measure(results, undecided, [] if unclear else reaches)
    yield from said


def _measure(
    results: ExperimentResults,
    undecided: Sequence[tuple[Verdict, Efficiency]],
    reaches: Sequence[Verdict],
) -> Iterator[Next]:
    """What to measure: what decides an open scale, a larger scale than those that are clear to be
    ``reaches``, or repeats of single runs."""
    for reach, point in undecided:
        if reach.cited.odd or reach.why == SAME or reach.repeats_for(point) is None:
            # More than twice as many repeats: what makes the numbers as they are comes first.
            yield Next(reach.next or EITHER)
    if undecided:
        more = max(reach.repeats_for(point) or 1 for reach, point in undecided)
        yield _repeat(results, more, "they may decide")
    if reaches and all(reach.beyond is None for reach in reaches):
        last = max(reach.held_at for reach in reaches)
        counts = ", ".join(str(count) for count in [*results.values(results.scale), 2 * last])
        code = f"experiments:\n  {results.name}:\n    axes:\n      {results.scale}: [{counts}]"
        repeats = 1 + max(run["repeat"] for run in results.entry["runs"])
        text = "measure a larger scale, if the machine has it: nothing has stopped scaling yet"
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
