"""What the log of a run gives by the reader of its program: where the steps of a start become
steady, their metrics, their arrays.

It needs NumPy: a launcher imports it once the program has ended.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.steady_state import steady_state
from scalesweep.analysis.types import Floats
from scalesweep.compute.job_spec import STREAMS
from scalesweep.compute.log_lines import read_lines
from scalesweep.compute.log_metrics import Reading, UnreadableError, log_files
from scalesweep.compute.log_reader import (
    DERIVED,
    SAMPLES,
    STEP_TIME,
    TOKENS,
    Reader,
    Value,
    number_of,
    reader_of,
    rounding_of,
)
from scalesweep.compute.log_starts import LogError, Row, Start, by_printer, facts_of, starts_of
from scalesweep.core.record import STEP_TIMES, WARMUP_STEP_TIMES

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
# Rates of a device and of all, and by which factor they may differ: of three digits each; the time
# between steps is in a total alone, and in some modes lines are of all workers.
RATES = (
    (f"{TOKENS}_per_device", TOKENS, 1.05),
    ("images_per_second", "total_images_per_second", 2.0),
)
# Totals of one job's ranks differ by less.
SAME = 0.05
# Half of a last digit is kept where it is more than this share of a value.
ROUNDED_FROM = 1e-3
Flags = NDArray[np.bool_]  # by line


@dataclass(frozen=True)
class Steps:
    """The lines of all ranks that print: ``values`` by group, [line, printer]."""

    reader: Reader
    streams: Sequence[Sequence[Row]]
    meant: Mapping[str, Value]  # by group; times of a clock are those of steps
    values: Mapping[str, Floats]
    without: Flags  # first lines, whose time or rate is none yet
    settings: Mapping[str, str]
    changed: Flags  # lines before the last change of a setting

    @property
    def numbers(self) -> list[int]:
        """The step of each line."""
        return [row.step for row in self.streams[0]]

    @property
    def spoiled(self) -> Flags:
        """Lines whose time is not of steps alone."""
        each = np.array([[row.spoiled for row in rows] for rows in self.streams], bool)
        return np.asarray(each.any(axis=0))

    @property
    def end(self) -> int:
        """The last line."""
        return self.streams[0][-1].line

    def rounding(self, name: str, kept: Flags) -> float:
        """By how much a printed value of the lines that count may differ from the true one."""
        rows = [row for row, counts in zip(self.streams[0], kept, strict=True) if counts]
        most = max((rounding_of(row.texts.get(name, "")) for row in rows), default=0.0)
        return most * self.meant[name].times


def steps_of(reader: Reader, start: Start) -> Steps:
    """The values of all lines. Raises LogError where a line is damaged, or a time or rate is
    none."""
    streams = by_printer(start)
    for row in (rows[-1] for rows in streams):
        if reader.ends and reader.ends not in row.texts:
            what = reader.values[reader.ends].metric.replace("_", " ")
            raise LogError(f"cut: no {what} behind step {row.step}", row.line)
    apart = np.diff([row.step for row in streams[0]])[:, None]
    values: dict[str, Floats] = {}
    without = np.zeros(len(streams[0]), bool)
    for name, value in reader.values.items():
        printed = np.array([[name in row.texts for row in rows] for rows in streams]).T
        if not printed[:, 0].any():
            continue
        texts = [[row.texts.get(name, "") for row in rows] for rows in streams]
        array = np.array([[number_of(text) for text in each] for each in texts], np.float64).T
        array = np.where(np.isfinite(array), array, math.nan) * value.times
        if value.way == "elapsed":
            passed = np.diff(array, axis=0) / apart
            array = np.vstack([np.full((1, len(streams)), math.nan), passed])
            again = np.flatnonzero((passed <= 0).any(axis=1))
            array[: 2 + again[-1] if len(again) else 0] = math.nan  # the clock began anew
        if value.way in ("seconds", "rate", "elapsed"):
            begin, bad = _first_value((array > 0) | ~printed)
            if bad:
                row = streams[bad[1]][bad[0]]
                raise LogError(f"{value.metric} of {row.texts[name].strip()}", row.line)
            without[:begin] = True
        values[name] = array
    settings = [row.settings for row in streams[0]]
    other = [number for number, it in enumerate(settings) if it != settings[-1]]
    changed = np.arange(len(settings)) <= (other[-1] if other else -1)
    meant = {
        name: it._replace(way="seconds") if it.way == "elapsed" else it
        for name, it in reader.values.items()
    }
    return Steps(reader, streams, meant, values, without, settings[-1], changed)


def _first_value(good: NDArray[np.bool_]) -> tuple[int, tuple[int, int] | None]:
    """The first line from which on every printed time or rate is one; before, 0 or no number may
    stand for none yet. And where, line and printer, one is none all the same."""
    lines = good.all(axis=1)
    begin = int(lines.argmax()) if lines.any() else 0
    if lines[begin:].all():
        return begin, None
    at = begin + int(lines[begin:].argmin())
    return begin, (at, int(good[at].argmin()))


def _times(steps: Steps) -> Floats:
    """Times of lines, up to a factor, [line, printer]: printed, or one over a rate.

    Raises LogError without either."""
    for way in ("seconds", "rate"):
        for name, values in steps.values.items():
            if steps.meant[name].way == way and np.isfinite(values[~steps.without]).all():
                with np.errstate(divide="ignore"):  # of lines that do not count
                    return values if way == "seconds" else 1.0 / values
    raise LogError("lines of progress without a time or a rate", steps.end)


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


def kept_lines(steps: Steps) -> tuple[Flags, dict[str, Any]]:
    """Which lines count, and what is said of those that do not: warm-up, evaluations, changes.
    Raises LogError with too few lines to tell."""
    numbers, spoiled = steps.numbers, steps.spoiled
    usable = np.flatnonzero(~(spoiled | steps.changed | steps.without))
    if not steps.reader.steady:
        return ~steps.without, {"lines": 0}
    if len(usable) < FEWEST_LINES:
        raise LogError(
            f"{len(usable)} lines of progress: too few to tell where the warm-up ends "
            f"({FEWEST_LINES} are needed)",
            steps.end,
        )
    times = np.median(_times(steps), axis=1)
    first, drifting = steady_from(times[usable])
    if first is None:
        never = f"the times of {len(usable)} lines of progress never become steady"
        raise LogError(never, steps.end)
    kept = np.zeros(len(numbers), bool)
    kept[usable[first:]] = True
    said: dict[str, Any] = {"lines": int(usable[first])}
    counts = {"with_evaluation": spoiled.sum(), "before_a_change": steps.changed.sum()}
    said |= {name: int(count) for name, count in counts.items() if count}
    if slowed_down(times[usable], first):
        said["slower_after"] = numbers[usable[first]]
    elif (slow := slow_end(times[usable], first)) is not None:
        said["slower_after"] = numbers[usable[slow]]
    if drifting:
        said["drifting"] = True
    return kept, said


def unfinished(warm: Mapping[str, Any]) -> str:
    """Why the mean of a run's lines stands for nothing; empty where it does."""
    if "drifting" in warm:
        return "the times of its steps still drift at the end"
    if step := warm.get("slower_after"):
        return f"its steps became slower at step {step} and stayed so: no warm-up"
    return ""


def arrays_of(steps: Steps, kept: Flags, first: int) -> dict[str, Floats]:
    """Values [line, printer]; ``step_times`` only of lines that are single steps, all of them.

    ``first``: lines of the warm-up."""
    arrays: dict[str, Floats] = {"logged_steps": np.array(steps.numbers, np.float64)}
    within = all(after - before == 1 for before, after in itertools.pairwise(steps.numbers))
    for name, values in steps.values.items():
        value = steps.meant[name]
        single = within or not steps.reader.averages
        if value.metric == STEP_TIME and value.way == "seconds" and single:
            arrays[STEP_TIMES] = values[kept]
            early = values[:first][np.isfinite(values[:first]).all(axis=1)]
            if len(early):
                arrays[WARMUP_STEP_TIMES] = early
        else:
            arrays[f"logged_{value.metric}"] = values
    return arrays


def _mean(it: Value, values: Floats) -> float | None:
    """One value of those [line, printer] that count; None where one is missing."""
    way = it.way
    if way == "last" and it.scope == "total":
        values = values[:, :1]
    known = values[-1:] if way == "last" else values[np.isfinite(values).all(axis=1)]
    if not len(known):
        return None
    if way == "peak":  # 0 is printed where nothing was measured
        value = float(known.max(axis=0).mean()) or math.nan
    elif way == "rate":
        value = float((1.0 / (1.0 / known).mean(axis=0)).mean())
    else:
        value = float(known.mean())
    return value if math.isfinite(value) else None


def metrics_of(steps: Steps, kept: Flags, known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Metrics of the lines that count, and those that follow from them and from ``known``: ranks,
    batch, tokens.

    Raises LogError where rates of all and of a device are those of other ranks.
    """
    metrics: dict[str, dict[str, Any]] = {}
    for name, values in steps.values.items():
        it = steps.meant[name]
        if it.way == "last" and it.scope == "total":  # every printer prints the same
            _check_same(it.metric, values[-1], steps.end)
        value = _mean(it, values if it.way in ("last", "peak") else values[kept])
        if value is not None:
            metrics[it.metric] = {"value": value, **it.meaning}
            half = steps.rounding(name, kept)
            if half > ROUNDED_FROM * abs(value):
                metrics[it.metric]["rounding"] = half
    for name, it in steps.meant.items():  # of facts
        if name in known and name not in steps.values:
            metrics[it.metric] = {"value": known[name], **it.meaning}
    _check_total(metrics, known["ranks"], steps.streams[0][0].line)
    for name, value in _derived({key: it["value"] for key, it in metrics.items()}, known).items():
        metrics.setdefault(name, {"value": value, **DERIVED[name].meaning})
    return metrics


def _check_same(metric: str, values: Floats, line: int) -> None:
    """Raises LogError where a rate of all ranks is none, or they do not agree on it."""
    low, high = float(values.min()), float(values.max())
    if "per_second" in metric and low <= 0:
        raise LogError(f"{metric} of {low:g}", line)
    if "per_second" in metric and not high - low <= SAME * high:
        raise LogError(f"{metric} from {low:g} to {high:g}: not of one job", line)


def _check_total(metrics: Mapping[str, Mapping[str, Any]], ranks: int, line: int) -> None:
    """Raises LogError where a rate of all is not that of a device times the ranks."""
    for each, every, apart in RATES:
        if each in metrics and every in metrics:
            ratio = metrics[every]["value"] / metrics[each]["value"]
            if not (ranks if every == TOKENS else 1) / apart < ratio < ranks * apart:
                what = each.replace("_per_device", "").replace("_", " ")
                raise LogError(
                    f"{what} of all over those of a device are {ratio:.4g}, of {ranks} ranks", line
                )


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


def read_log(declared: Mapping[str, Any], work: Path, ranks: int, srun_labels: bool) -> Reading:
    """Read what a program printed in ``work``, the folder of an attempt, with the declaration of
    its reader, as JSON. Of several starts in one attempt the last counts.

    Raises UnreadableError where a line, or what follows from the lines, is not that of a run of
    ``ranks`` ranks; LogsGoneError if a log is not there, OSError if it cannot be read.
    """
    reader = reader_of(declared, "program", "reader")
    files = [file for stream in STREAMS for file in log_files(stream, work)]
    lines = itertools.chain.from_iterable(read_lines(file, srun_labels) for file in files)
    try:
        starts = list(starts_of(lines, reader))
        if not starts:
            raise LogError(f"no line of progress in {' or '.join(STREAMS.values())}")
        return _read(reader, starts, ranks)
    except LogError as error:
        place = f", in line {error.line}" if error.line else ""
        raise UnreadableError(f"reader {reader.program}: {error}{place}") from None


def _read(reader: Reader, starts: Sequence[Start], ranks: int) -> Reading:
    start = starts[-1]
    steps = steps_of(reader, start)
    facts = facts_of(reader, {**start.texts(), **steps.settings}, steps.numbers, start.first_line)
    if facts.setdefault("ranks", ranks) != ranks:
        raise LogError(f"the log is of {facts['ranks']} ranks, the run of {ranks}")
    kept, warm = kept_lines(steps)
    reading = Reading()
    for name, it in metrics_of(steps, kept, facts).items():
        it.pop("rounding", None)
        reading.metrics[name] = it
    notes = {"starts": len(starts), "printers": len(steps.streams), "warm_up": warm}
    if doubt := unfinished(warm):
        notes["warning"] = doubt
        reading.warnings.append(f"{reader.main}: {doubt}")
    reading.of_metrics[reader.main] = notes
    # Consumers take the second axis of these for the ranks.
    every = len(steps.streams) == ranks
    for name, values in arrays_of(steps, kept, warm["lines"]).items():
        if every or name not in (STEP_TIMES, WARMUP_STEP_TIMES):
            reading.arrays[name] = values
    return reading
