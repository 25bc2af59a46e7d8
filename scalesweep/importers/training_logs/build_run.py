"""From one start of a training program to a run: warm-up, metrics, arrays, parameters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.steady_state import steady_state
from scalesweep.analysis.types import Floats
from scalesweep.core.files import digest_of
from scalesweep.core.record import STEP_TIMES, WARMUP_STEP_TIMES
from scalesweep.importers.imported_run import (
    GPU,
    ImportedRun,
    ImportRefusedError,
    file_dates,
    shown,
)
from scalesweep.importers.training_logs.contradiction import contradiction
from scalesweep.importers.training_logs.model_facts import (
    DESCRIBING,
    MODEL,
    device_of,
    flag,
    stated,
)
from scalesweep.importers.training_logs.program import (
    DERIVED,
    LAST,
    PARAMETERS,
    PEAK,
    RATE,
    SAMPLES,
    SECONDS,
    STEP_TIME,
    TOKENS,
    Program,
    within,
)
from scalesweep.importers.training_logs.progress import Row, Start, by_printer

# With fewer lines nothing tells where a warm-up ends (analysis/steady_state.py).
FEWEST_LINES = 4
# Fewer show no trend, even where each is above the one before (analysis/steady_state.py).
FEWEST_DRIFTING = 6
# Halves of fewer lines are not looked at by themselves.
FEWEST_IN_HALF = 10
# Several lines before the steady ones that are faster by this share were no warm-up.
FASTER = 0.05
# Last lines that are all slower by this share than so many of those before are another state.
SLOWER, NEARLY_ALL = 0.15, 0.9
# Lines without labels are of two runs where one of each step takes this much longer than another
# in the median, and this much in nearly every step. Simulated with noise that no two ranks share,
# although ranks wait for each other: of 2 to 64 ranks 5 % of noise is never two runs, 10 % in at
# most 1 %; two runs that differ by 25 % are found in 97 % of 8 steps.
MOST_APART, APART_EACH, APART_SHARE, FEWEST_APART = 1.2, 1.1, 0.9, 8
# Rates of all and of a device, of three digits each.
RATES_APART = 0.05
# Half of a last digit is kept where it is more than this share of a value.
ROUNDED_FROM = 1e-3
_WORDS = 100
Flags = NDArray[np.bool_]  # by line
# Facts that are no parameters of their own: what follows from them is (``_point``).
_CONVERTED = ("ranks", "global_batch_size", "tokens_per_step", "gpu", "ranks_per_node")


@dataclass(frozen=True)
class _Lines:
    """The lines of all ranks that print: ``values`` by group, [line, printer]."""

    steps: list[int]
    values: Mapping[str, Floats]
    rounding: Mapping[str, Floats]  # half of the last digit of each value
    spoiled: Flags
    without: Flags  # first lines, whose time or rate is none yet
    settings: Mapping[str, str]
    changed: Flags  # lines before the last change of a setting


def run_of(start: Start, program: Program, file: Path, ranks: int | None) -> ImportedRun:
    """The run of one start, of ``ranks`` where the log states no number.

    Raises ImportRefusedError where a line is damaged or nothing tells the ranks, or with too few
    lines to find the warm-up in.
    """
    streams = by_printer(start)
    lines = _read(program, streams)
    facts = {name: fact.text for name, fact in start.facts.items() if fact.text}
    facts |= lines.settings
    known = _settled(program, facts, start)
    count = known.get("ranks") or ranks
    if not isinstance(count, int):
        raise ImportRefusedError(
            f"{program.name} does not state the number of GPUs here: --ranks N", start.first_line
        )
    if len(streams) > count:
        raise ImportRefusedError(
            f"{len(streams)} ranks print lines of each step, of {count} in all", start.first_line
        )
    known = {**known, "ranks": count}
    _check_layout(known, start.first_line)
    kept, warm = _kept(program, lines, streams[0])
    if len(streams) > len(start.rows):
        _check_alike(program, lines, kept, streams)
    arrays = _arrays(program, lines, kept, warm)
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    evidence = [
        program.name, sorted(it for it in facts.items() if it[0] not in DESCRIBING),
        [[[row.step, sorted(row.values.items())] for row in rows] for rows in streams],
    ]  # fmt: skip
    metrics = _metrics(program, lines, kept, known, start.first_line)
    if doubt := contradiction(metrics, known):
        raise ImportRefusedError(doubt, start.first_line)
    gpu = known.get("gpu")
    return ImportedRun(
        benchmark=program.benchmark,
        made=program.made,
        point=_point(program, known),
        file=file,
        line=start.first_line,
        source_digest=digest_of([repr(part) for part in evidence]),
        started=modified,
        ended=modified,
        variant={GPU: shown(str(gpu))[:_WORDS]} if gpu else {},
        samples=arrays,
        samples_per_epoch=0,
        metrics=metrics,
        notes={
            "importer": f"{program.name} log",
            "lines": [start.first_line, start.last_line],
            "dates": file_dates("the log"),
            "facts": {name: shown(text)[:_WORDS] for name, text in facts.items()},
            "printers": len(streams),
            "ranks_from": "the log" if "ranks" in _settled(program, facts, start) else "--ranks",
            "warm_up": warm,
            **({"first_step": streams[0][0].step} if streams[0][0].step > 1 else {}),
            **({"cut_lines": start.broken} if start.broken else {}),
        },
        unfinished=_unfinished(warm),
    )


def _check_layout(known: Mapping[str, Any], line: int) -> None:
    """Raises ImportRefusedError where the ranks cannot share the model as the log says."""
    axes = [name for name in ("tp", "pp", "cp") if known.get(name)]
    size = math.prod(known[name] for name in axes)
    if known["ranks"] % size:
        said = " x ".join(axes)
        raise ImportRefusedError(f"{known['ranks']} ranks, no multiple of {said} = {size}", line)


def _check_alike(
    program: Program, lines: _Lines, kept: Flags, streams: Sequence[Sequence[Row]]
) -> None:
    """Raises ImportRefusedError where lines without labels of their own are of runs of unlike
    speed: ranks of one run take the same time for a step."""
    times = _times(program, lines)
    assert times is not None  # ``_kept`` needs them
    times = times[kept]
    medians = np.median(times, axis=0)
    slow, fast = int(medians.argmax()), int(medians.argmin())
    apart = medians[slow] > MOST_APART * medians[fast]
    always = (times[:, slow] > APART_EACH * times[:, fast]).mean() >= APART_SHARE
    if len(times) >= FEWEST_APART and apart and always:
        raise ImportRefusedError(
            f"the lines of each step differ by {medians[slow] / medians[fast] - 1:.0%} in their "
            "times, and no label tells them apart: lines of several runs are mixed",
            streams[-1][0].line,
        )


def _unfinished(warm: Mapping[str, Any]) -> str:
    """Why the mean of a run's lines stands for nothing; empty where it does."""
    if "drifting" in warm:
        return "the times of its steps still drift at the end"
    if step := warm.get("slower_after"):
        return f"its steps became slower at step {step} and stayed so: no warm-up"
    return ""


def _settled(program: Program, facts: Mapping[str, str], start: Start) -> dict[str, Any]:
    """Parameters by the facts; numbers are whole. Raises ImportRefusedError."""
    known: dict[str, Any] = {}
    kinds = {name: entry[0] for name, entry in {**PARAMETERS, **program.parameters}.items()}
    for name, text in facts.items():
        whole = text.replace(",", "")
        if kinds.get(name) == "string" or name == "gpu":
            known[name] = shown(text)[:_WORDS]
        elif kinds.get(name) == "boolean":
            known |= stated(**{name: flag(text)})
        elif (name in kinds or name in _CONVERTED) and whole.isascii() and whole.isdigit():
            known[name] = int(whole[:18])
    known |= program.settle(facts)
    known |= device_of(known.get("gpu"))
    line = min((fact.line for fact in start.facts.values()), default=start.first_line)
    known = {
        name: value for name, value in known.items() if name not in MODEL or value is False or value
    }
    for name, value in known.items():
        if not isinstance(value, bool | str) and not 0 < value < 1e18:
            raise ImportRefusedError(f"{name} is {value}", line)
    return known


def _read(program: Program, streams: Sequence[Sequence[Row]]) -> _Lines:
    """The values of all lines. Raises ImportRefusedError where one of a time or rate is none."""
    steps = [row.step for row in streams[0]]
    names = [name for name in program.values if any(name in row.values for row in streams[0])]
    values = {
        name: np.array(
            [[row.values.get(name, math.nan) for row in rows] for rows in streams], np.float64
        ).T
        * program.values[name].times
        for name in names
    }
    without = np.zeros(len(steps), bool)
    for name in names:
        if program.values[name].way in (SECONDS, RATE):
            begin = _first_value(program.values[name].metric, name, values[name], streams)
            without[:begin] = True
    last = streams[0][-1].settings
    settings = [row.settings for row in streams[0]]
    ends = next((n for n in range(len(settings), 0, -1) if settings[n - 1] != last), 0)
    return _Lines(
        steps,
        values,
        {
            name: np.array([row.rounding.get(name, 0.0) for row in streams[0]])
            * program.values[name].times
            for name in names
        },
        np.array([any(row.spoiled for row in rows) for rows in zip(*streams, strict=True)]),
        without,
        last,
        np.arange(len(steps)) < ends,
    )


def _first_value(metric: str, name: str, values: Floats, streams: Sequence[Sequence[Row]]) -> int:
    """The first line from which on every printed time or rate is one; before, 0 or no number may
    stand for none yet. Raises ImportRefusedError."""
    printed = np.array([[name in row.values for row in rows] for rows in streams]).T
    good = ((values > 0) & (values < math.inf)) | ~printed
    lines = good.all(axis=1)
    begin = int(lines.argmax()) if lines.any() else 0
    if not lines[begin:].all():
        at = begin + int(lines[begin:].argmin())
        printer = int(good[at].argmin())
        row = streams[printer][at]
        raise ImportRefusedError(f"{metric} of {row.values[name]:g}", row.line)
    return begin


def _times(program: Program, lines: _Lines) -> Floats | None:
    """Times of lines, up to a factor, [line, printer]: printed, or one over a rate; None without
    either."""
    for way in (SECONDS, RATE):
        for name, values in lines.values.items():
            if program.values[name].way == way and np.isfinite(values[~lines.without]).all():
                with np.errstate(divide="ignore"):  # of lines that do not count
                    return values if way == SECONDS else 1.0 / values
    return None


def steady_from(times: Floats) -> tuple[int | None, bool]:
    """The first time from which on they are steady, None if they never are; and whether they still
    drift. What drifts in its first half only counts from there on."""
    state = steady_state(times, 0, fewest_drifting=FEWEST_DRIFTING)
    if state.drifting and len(times) >= 2 * FEWEST_IN_HALF:
        half = len(times) // 2
        later = steady_state(times[half:], 0, fewest_drifting=FEWEST_DRIFTING)
        if later.detected is not None and not later.drifting:
            return half + later.detected, False
    if state.detected is None or state.detected >= len(times) - 1:
        return None, False
    return state.detected, state.drifting


def slowed_down(times: Floats, first: int) -> bool:
    """Whether the times before the first steady one were faster: nothing warms up so."""
    if first < FEWEST_LINES:
        return False
    return bool(np.median(times[:first]) < (1 - FASTER) * np.median(times[first:]))


def slow_end(times: Floats, first: int) -> int | None:
    """From which of the times on all are slower than nearly all before, from the first steady one
    on, to the end; None where the last are as the others."""
    steady = times[first:]
    for begin in range(len(steady) - FEWEST_LINES, 2 * len(steady) // 3 - 1, -1):
        before, last = steady[:begin], float(steady[begin:].min())
        if len(before) < FEWEST_LINES or last < (1 + SLOWER) * float(np.median(before)):
            return None
        if last > float(np.quantile(before, NEARLY_ALL)):
            return first + begin
    return None


def _kept(program: Program, lines: _Lines, rows: Sequence[Row]) -> tuple[Flags, dict[str, Any]]:
    """Which lines count, and what is said of those that do not: warm-up, evaluations, changes."""
    each = _times(program, lines)
    if each is None:
        raise ImportRefusedError("lines of progress without a time or a rate", rows[-1].line)
    times = np.median(each, axis=1)
    usable = np.flatnonzero(~(lines.spoiled | lines.changed | lines.without))
    if len(usable) < FEWEST_LINES:
        raise ImportRefusedError(
            f"{len(usable)} lines of progress: too few to tell where the warm-up ends "
            f"({FEWEST_LINES} are needed)",
            rows[-1].line,
        )
    first, drifting = steady_from(times[usable])
    if first is None:
        raise ImportRefusedError(
            f"the times of {len(usable)} lines of progress never become steady", rows[-1].line
        )
    kept = np.zeros(len(lines.steps), bool)
    kept[usable[first:]] = True
    said: dict[str, Any] = {
        "lines": int(usable[first]),
        "found": "where the times become steady (analysis/steady_state.py)",
    }
    if spoiled := int(lines.spoiled.sum()):
        said["with_evaluation"] = spoiled
    if changed := int(lines.changed.sum()):
        said["before_a_change"] = changed
    if slowed_down(times[usable], first):
        said["slower_after"] = lines.steps[usable[first]]
    elif (end := slow_end(times[usable], first)) is not None:
        said["slower_after"] = lines.steps[usable[end]]
    if drifting:
        said["drifting"] = True
    return kept, said


def _arrays(
    program: Program, lines: _Lines, kept: Flags, warm: Mapping[str, Any]
) -> dict[str, Floats]:
    """Values [line, printer]; ``step_times`` only of lines that are single steps, all of them."""
    arrays: dict[str, Floats] = {"logged_steps": np.array(lines.steps, np.float64)}
    single = not program.averages or within(lines.steps)
    for name, values in lines.values.items():
        printed = program.values[name]
        if printed.metric == STEP_TIME and printed.way == SECONDS and single:
            arrays[STEP_TIMES] = values[kept]
            if warm["lines"]:
                arrays[WARMUP_STEP_TIMES] = values[: warm["lines"]]
        else:
            arrays[f"logged_{printed.metric}"] = values
    return arrays


def _mean(program: Program, name: str, values: Floats) -> float | None:
    """One value of those [line, printer] that count; None where one is missing."""
    way = program.values[name].way
    if way == LAST:
        return _finite(float(values[-1].mean()))
    known = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        return None
    if way == PEAK:  # 0 is printed where nothing was measured
        return _finite(float(known.max(axis=0).mean())) or None
    if way == RATE:
        return _finite(float((1.0 / (1.0 / known).mean(axis=0)).mean()))
    return _finite(float(known.mean()))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _metrics(
    program: Program, lines: _Lines, kept: Flags, known: Mapping[str, Any], line: int
) -> dict[str, dict[str, Any]]:
    """Metrics of the lines that count, and those that follow from them and what is stated.

    Raises ImportRefusedError where rates of all and of a device are those of other ranks.
    """
    metrics: dict[str, dict[str, Any]] = {}
    for name, values in lines.values.items():
        printed = program.values[name]
        value = _mean(program, name, values if printed.way in (LAST, PEAK) else values[kept])
        if value is not None:
            half = float(lines.rounding[name][kept].max())
            metrics[printed.metric] = {
                "value": value, "unit": printed.unit, "better": printed.better,
                "scope": printed.scope,
                **({"rounding": half} if half > ROUNDED_FROM * abs(value) else {}),
            }  # fmt: skip
    if TOKENS in metrics and f"{TOKENS}_per_device" in metrics:
        ratio = metrics[TOKENS]["value"] / metrics[f"{TOKENS}_per_device"]["value"]
        if abs(ratio / known["ranks"] - 1) > RATES_APART:
            raise ImportRefusedError(
                f"tokens per second of all over those of a device are {ratio:.4g}, of "
                f"{known['ranks']} ranks",
                line,
            )
    for name, value in _derived({key: it["value"] for key, it in metrics.items()}, known).items():
        unit, better, scope, _ = DERIVED[name]
        metrics.setdefault(name, {"value": value, "unit": unit, "better": better, "scope": scope})
    return metrics


def _derived(values: Mapping[str, float], known: Mapping[str, Any]) -> dict[str, float]:
    """Step time, tokens and samples per second of all ranks, as far as they follow."""
    batch, length = known.get("global_batch_size"), known.get("sequence_length")
    tokens = known.get("tokens_per_step") or (batch * length if batch and length else None)
    rate = values.get(TOKENS)
    if rate is None and (each := values.get(f"{TOKENS}_per_device")):
        rate = each * known["ranks"]
    time = values.get(STEP_TIME)
    if time is None and rate and tokens:
        time = tokens / rate
    if time is None and batch and values.get(SAMPLES):
        time = batch / values[SAMPLES]
    if rate is None and time and tokens:
        rate = tokens / time
    samples = values.get(SAMPLES) or (batch / time if batch and time else None)
    derived = {TOKENS: rate, SAMPLES: samples, STEP_TIME: time}
    return {name: value for name, value in derived.items() if value is not None}


def _point(program: Program, known: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the run: what is of all ranks together, by rank."""
    names = {*PARAMETERS, *program.parameters, "ranks", "ranks_per_node"}
    point = {name: value for name, value in known.items() if name in names}
    tokens = known.get("tokens_per_step")
    for name, total in (
        ("batch_per_rank", known.get("global_batch_size")),
        ("tokens_per_rank", tokens),
    ):
        if total:
            each = total / known["ranks"]
            point[name] = int(each) if each == int(each) else each
    return point
