"""The first screen: a line for each experiment, what is sure, what failed, and what to do next."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from typing import Any

from scalesweep.aspects.layouts.table import layouts_that_ran
from scalesweep.aspects.scaling.findings import EITHER, Verdict, verdicts
from scalesweep.aspects.steps.findings import main_loss
from scalesweep.aspects.steps.ledgers import Ledger, farthest_series, ledgers
from scalesweep.core.causes import Cause, NextJob, facts_of
from scalesweep.core.formatting import counted, duration, finite, listed, number
from scalesweep.core.plan_format import Plan
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, CLEAR, NOTE, OPEN, SAME, Finding
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
    Cause.MISSING_DATA: "put the data where the site file says",
}
# How the figure begins that answers an experiment's question, the plainest first.
_FIGURES = ("scaling", "layouts-scale", "heatmap", "compare")
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
    state: str  # of the run at: clear, open, or empty
    why: str  # what the state means
    next: str
    noisy: str = ""  # that other processes disturbed most of its runs
    loss_state: str = ""

    @property
    def text(self) -> str:
        """The line as a terminal prints it."""
        parts = [f"run at {self.run_at}" if self.run_at else "", self.efficiency, self.loss]
        said = "; ".join(part for part in parts if part)
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
    failures: Mapping[str, Any],
) -> dict[str, Any]:
    """What the template shows first of an experiment; ``figures`` are the names of all of them."""
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
        "recorded": bool(series) or not (reaches or _of_layouts(results)),
        "next": then,
        "cost": _cost(results, facts, then.runs) if then and then.runs else "",
        "figure": figures[0] if figures and _figure_rank(figures[0])[0] < len(_FIGURES) else None,
        "disturbed": _disturbed(findings),
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


def line_of(
    results: ExperimentResults,
    findings: Sequence[Finding],
    reaches: Sequence[Verdict],
    loss: str,
    then: Next | None,
) -> Line:
    """The experiment's line in the table, in the state of the sentences that it rests on."""
    said = _of_layouts(results) or (_of_series(results, reaches) if reaches else None)
    run_at, efficiency = said or _of_best(results, findings)
    argued = [finding for finding in findings if finding.state in (CLEAR, OPEN)]
    answers = [f for f in argued if f.rule == VERDICT] if reaches else []
    answers = answers or [f for f in argued if f.rule in _BEST] or argued
    states = {finding.state for finding in answers}
    state = OPEN if OPEN in states else next(iter(states), "")
    why = {"clear": CLEAR_WORDS, "open": OPEN_WORDS}.get(state, "")
    noisy = mostly_disturbed(findings) if state else ""
    of_loss = {finding.state for finding in argued if finding.rule == LOSS} if loss else set()
    return Line(
        run_at, efficiency, loss, state, "; ".join(filter(None, (why, noisy))),
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


def _of_series(results: ExperimentResults, reaches: Sequence[Verdict]) -> tuple[str, str]:
    runs = sorted({reach.held_at for reach in reaches})
    ends = f"{runs[0]} to {runs[-1]:,}" if len(runs) > 1 else f"{runs[0]:,}"
    run_at = f"{ends} {results.scaled(runs[-1]).split(' ', 1)[-1]}"
    if len(runs) > 1 and len(reaches) <= MOST_SERIES:
        each = [f"{results.scaled(reach.held_at)} at {reach.series.label}" for reach in reaches]
        run_at = "; ".join(each)
    beyond = [reach.fails for reach in reaches if reach.fails is not None]
    if len(reaches) == 1:
        there = reaches[0].held
        share = f"{number(100 * there.value) if there else 100} %"
        if not beyond:
            return run_at, f"{share}, the largest run"
        return run_at, f"{share}; at {beyond[0].count:,}: {number(100 * beyond[0].value)} %"
    if not beyond:
        return run_at, f"above {100 * results.target:.0f} % in {len(reaches)} series"
    low, high = (f"{100 * pick(p.value for p in beyond):.0f}" for pick in (min, max))
    return run_at, f"beyond: {low if low == high else f'{low} to {high}'} % ({len(reaches)} series)"


def _of_layouts(results: ExperimentResults) -> tuple[str, str] | None:
    """Up to which scale the best layouts hold the target: their rates of a rank, against that at
    the smallest scale; None of other experiments."""
    settings: dict[str, dict[int, float]] = {}
    for layout in layouts_that_ran(results) if results.main and results.main.higher else ():
        best = settings.setdefault(layout.setting, {})
        best[layout.scale] = max(best.get(layout.scale, 0.0), layout.per_rank)
    if not any(len(best) > 1 for best in settings.values()):
        return None
    runs, shares, of = [], [], len(settings)
    for setting, best in list(settings.items())[:MOST_SERIES]:
        share = {scale: best[scale] / best[min(best)] for scale in sorted(best)}
        held = [*takewhile(lambda scale: share[scale] >= results.target, share)]  # noqa: B023
        runs.append(f"{results.scaled(held[-1])}{f' with {setting}' if setting else ''}")
        beyond = [f"at {s:,}: {number(100 * v)} %" for s, v in share.items() if s > held[-1]]
        name = f"{setting}: " if of > 1 else ""
        shares.append(name + "; ".join([f"{number(100 * share[held[-1]])} %", *beyond[:1]]))
    return "; ".join(runs), " · ".join(shares)


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
            cure = _CURES.get(cause, "mend what stopped them")
            rest = len(failed) - count
            more = f"; repeat the other {counted(rest, 'run')}" if rest else ""
            text = f"{cure}{more}: {counted(count, 'run')} ended with {cause}, and would again"
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
