"""MLPerf's logs: their events, which of them make up one run, and what its epochs were.

A line is ``:::MLLOG`` and an object of JSON (mlcommons/logging, mlperf_logging/mllog), behind
whatever a launcher put before it. What is known of an event is its key: published logs have
wrong event types, evaluations without the number of their epoch, and lines once for every rank.
"""

import ast
import json
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

from scalesweep.compute.log_lines import Line
from scalesweep.importers.imported_run import ImportRefusedError

# Logs of v0.6 and older, which had other lines and no CosmoFlow.
_OLD = re.compile(r":::(?:MLL \d|MLPv\d)")
SIGN = re.compile(rf":::MLLOG\b|{_OLD.pattern}")
_MARK = ":::MLLOG"
_SRUN_LABEL = re.compile(r" *(\d{1,7}): ?")
# Keys that a run begins with again once the one before has ended.
_HEAD = ("cache_clear", "submission_benchmark", "submission_org", "init_start")
_EPOCH_KEYS = {
    "epoch_start": "start", "epoch_stop": "stop", "block_start": "start", "block_stop": "stop",
    "eval_start": "eval_start", "eval_stop": "eval_stop", "eval_error": "error",
    "learning_rate": "rate",
}  # fmt: skip
_KEYS = frozenset((
    "run_start", "run_stop", "init_start", "init_stop", "staging_start", "staging_stop",
    "cache_clear", "train_samples", "eval_samples", "global_batch_size", "seed", "number_of_ranks",
    "number_of_nodes", "accelerators_per_node", "dropout", "target_mae", "epochs", "sample_shape",
    # What logs of other benchmarks than CosmoFlow say besides.
    "eval_accuracy", "tracked_stats", "gradient_accumulation_steps", "max_sequence_length",
    "gradient_accumulation_frequency", "target_avg_lddt_ca_value", "target_accuracy_reached",
    *_EPOCH_KEYS,
))  # fmt: skip
_LONGEST = 20_000  # characters of an event
_KEY = re.compile(r'"key": *"(\w{1,60})"')
_LATEST_MS = 4e12
# Ranks that all write a line do so within this.
_STRAGGLE_MS = 10_000.0
Span = tuple[str, float, float]  # a phase, its begin and end in Unix seconds


@dataclass(frozen=True, slots=True)
class Event:
    """One line; ``ms`` is Unix time in milliseconds."""

    key: str
    value: Any
    metadata: Mapping[str, Any]
    ms: float
    line: int

    @property
    def instance(self) -> str:
        """Which of the models that share a log it is of; empty if it does not say."""
        names = [
            str(self.metadata[it]) for it in ("instance", "instance_id") if it in self.metadata
        ]
        return names[0] if names else ""


class Damaged(NamedTuple):
    """A line that is no whole event: where, how it begins, and whether what it was of is needed."""

    line: int
    text: str
    needed: bool


@dataclass
class Job:
    """The events of one run, those before its run_start included."""

    events: list[Event] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)
    began: float | None = None
    ended: bool = False

    @property
    def lines(self) -> list[int]:
        """Where it begins and ends in its file."""
        numbers = [event.line for event in self.events]
        return [min(numbers), max(numbers)]

    def find(self, *keys: str) -> list[Event]:
        """All events of these keys."""
        return [event for event in self.events if event.key in keys]

    def value(self, key: str) -> Any:
        """What the log says of a key; None if nothing. Raises ImportRefusedError if two things."""
        events = [event for event in self.find(key) if event.value is not None]
        for event in events[1:]:
            if event.value != events[0].value:
                raise ImportRefusedError(
                    f"{key} is {events[0].value!r} and {event.value!r}: of several runs?",
                    event.line,
                )
        return events[0].value if events else None

    def count(self, key: str, least: int = 0) -> int | None:
        """A whole number that the log states (24.0 is one). Raises ImportRefusedError."""
        value = self.value(key)
        if value is None:
            return None
        if not is_number(value) or not least <= value < 2**53 or value != int(value):
            raise ImportRefusedError(
                f"{key} {str(value)[:40]!a} is not a whole number from {least} on",
                self.find(key)[0].line,
            )
        return int(value)

    def moment(self, key: str) -> float | None:
        """Time in ms: of several ranks the first to start, the last to stop."""
        times = [event.ms for event in self.find(key)]
        if not times:
            return None
        return max(times) if key.endswith("_stop") else min(times)

    def span(self, name: str, key: str) -> list[Span]:
        """A phase from ``key_start`` to ``key_stop``, if both are there."""
        start, stop = self.moment(f"{key}_start"), self.moment(f"{key}_stop")
        known = start is not None and stop is not None and stop >= start
        return [(name, start / 1000, stop / 1000)] if known else []  # type: ignore[operator]

    def takes(self, event: Event) -> bool:
        """Whether an event is of this run and not the first of another."""
        if self.began is None:
            return True
        if event.key == "run_start":
            return not self.ended and abs(event.ms - self.began) <= _STRAGGLE_MS
        if self.ended:
            return event.key not in _HEAD
        return event.key != "init_start" or event.ms < self.began

    def add(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)
        if event.key == "run_start":
            self.began = event.ms if self.began is None else min(self.began, event.ms)
        self.ended = self.ended or (event.key == "run_stop" and self.began is not None)


@dataclass
class Epoch:
    """What a log says of an epoch; times in ms, ``error`` NaN where it is logged as no number."""

    number: int
    line: int
    start: float | None = None
    stop: float | None = None
    eval_start: float | None = None
    eval_stop: float | None = None
    error: float | None = None
    rate: float | None = None

    def take(self, name: str, event: Event) -> None:
        """Take what an event says of it. Raises ImportRefusedError."""
        if name in ("error", "rate"):
            value = math.nan if event.value is None else event.value
            if not is_number(value):
                raise ImportRefusedError(
                    f"{event.key} {str(value)[:40]!a} is no number", event.line
                )
            if name == "error" and self.error not in (None, value) and not math.isnan(value):
                raise ImportRefusedError(
                    f"{event.key} of epoch {self.number} is {self.error} and {value}: "
                    "the lines of several runs or ranks are mixed",
                    event.line,
                )
            setattr(self, name, float(value))
            return
        before, later = getattr(self, name), max if name.endswith("stop") else min
        setattr(self, name, event.ms if before is None else later(before, event.ms))
        rates = event.metadata.get("lr")
        rate = rates[0] if isinstance(rates, list) and rates else rates
        if name == "start" and is_number(rate):
            self.rate = float(rate)

    @property
    def complete(self) -> bool:
        """Whether it ended; a run that stops in an evaluation may leave out epoch_stop."""
        evaluated = self.eval_stop is not None and self.error is not None
        return self.start is not None and (self.stop is not None or evaluated)

    @property
    def end(self) -> float:
        """When it was over, evaluation included."""
        return max(time for time in (self.stop, self.eval_stop) if time is not None)

    @property
    def trained(self) -> float:
        """When its training part was over: at its evaluation, if that lies within it."""
        if self.stop is None or (self.eval_start is not None and self.eval_start < self.stop):
            assert self.eval_start is not None
            return self.eval_start
        return self.stop


def read_runs(lines: Iterable[Line]) -> list[Job]:
    """The runs of a log in order, unfinished ones too.

    Of lines with ranks' labels those of the lowest rank count, and of what that rank does not print
    (ranks that evaluate may print run_stop) those of the lowest that does; and those without a
    label. Raises ImportRefusedError if none is whole, or all are of an older format.
    """
    lowest: dict[str, int] = {}
    kept: list[tuple[int | None, Event | Damaged]] = []
    old: list[int] = []
    for rank, entry in _entries(lines, old):
        key = _key(entry)
        if rank is not None and rank < lowest.get(key, rank + 1):
            if key in lowest:
                kept = [it for it in kept if it[0] is None or _key(it[1]) != key]
            lowest[key] = rank
        if rank is None or rank == lowest[key]:
            kept.append((rank, entry))
    jobs = _split([entry for _, entry in kept])
    if old and not jobs:
        raise ImportRefusedError(
            "of MLPerf Training v0.6 or older, whose lines are not read", old[0]
        )
    # A wrapper's line of before a run may be printed behind it: no run is made of that alone.
    whole = [job for job in jobs if {event.key for event in job.events} != {"cache_clear"}]
    return whole or jobs


def _key(entry: Event | Damaged) -> str:
    return entry.key if isinstance(entry, Event) else ""


def _entries(lines: Iterable[Line], old: list[int]) -> Iterator[tuple[int | None, Event | Damaged]]:
    """Rank, and the event or what is damaged; ``old`` gets the first line of an older format."""
    for line in lines:
        before, *texts = line.text.split(_MARK)
        if not texts and not old and _OLD.search(line.text):
            old.append(line.number)
        rank = line.rank
        if rank is None and texts and (label := _SRUN_LABEL.fullmatch(before)):
            rank = int(label[1])
        for text in texts:
            if not text.lstrip().startswith("{"):
                continue  # of somebody who speaks of such lines
            event = _event(text.strip()[:_LONGEST], line.number)
            if event is None:
                yield rank, Damaged(line.number, text.strip()[:60], _is_needed(text))
            elif event.key in _KEYS or event.key.startswith(("submission_", "opt_")):
                yield rank, event


def _is_needed(text: str) -> bool:
    """Whether what a damaged line was of is needed, as far as its key shows."""
    keys = _KEY.findall(text[:_LONGEST])
    if len(keys) != 1 or keys[0].startswith("submission_"):
        return True
    return keys[0] in _KEYS and keys[0] != "init_start"


def _event(text: str, line: int) -> Event | None:
    """The event of a line; None if it is damaged."""
    try:
        content, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        try:
            with warnings.catch_warnings(action="ignore"):
                content = ast.literal_eval(text)  # a dict as Python prints it
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    if not isinstance(content, dict):
        return None
    key, ms, metadata = content.get("key"), content.get("time_ms"), content.get("metadata") or {}
    if not isinstance(key, str) or not isinstance(metadata, dict) or not is_number(ms):
        return None
    if not 0 < ms < _LATEST_MS:
        return None
    return Event(key, content.get("value"), metadata, float(ms), line)


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value of JSON is a number, NaN included, and none too large for one."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000
    return whole or isinstance(value, float)


def _split(entries: Sequence[Event | Damaged]) -> list[Job]:
    """The jobs of a log in order: a job ends where an event comes that it cannot have.

    Models trained at the same time may share a log: they are told apart by their instance. If only
    one is named, as on some of the lines of v3.0, the others are of it too. Raises
    ImportRefusedError if all lines are damaged.
    """
    jobs: list[Job] = []
    named = {entry.instance for entry in entries if isinstance(entry, Event)} - {""}
    current: dict[str, Job] = {}
    last: Job | None = None
    pending: list[Damaged] = []
    for entry in entries:
        if isinstance(entry, Damaged):
            # Behind a run that has ended it is of the next.
            (pending if last is None or last.ended else last.damaged).append(entry)
            continue
        instance = entry.instance if len(named) > 1 else ""
        if instance not in current or not current[instance].takes(entry):
            current[instance] = Job(damaged=pending)
            jobs.append(current[instance])
            pending = []
        last = current[instance]
        last.add(entry)
    if pending and not jobs:
        what = f"a damaged line and no intact one: {pending[0].text!a}"
        raise ImportRefusedError(what, pending[0].line)
    return jobs


def epochs_of(job: Job) -> list[Epoch]:
    """The epochs of a run that were ended, in order; one more may have begun.

    Those that began once the run had stopped are not of it: programs of v3.0 went on training.
    Raises ImportRefusedError, with the line, where they contradict each other or one is missing.
    """
    epochs: dict[int, Epoch] = {}
    number: int | None = None
    for event in job.find(*_EPOCH_KEYS):
        name, stated = _EPOCH_KEYS[event.key], _number(event)
        if name == "start":
            if stated is None:
                raise ImportRefusedError(f"{event.key} without epoch_num", event.line)
            number = stated
        here = number if stated is None else stated
        if here is not None:  # else an evaluation before the first epoch
            epochs.setdefault(here, Epoch(here, event.line)).take(name, event)
    stop = job.moment("run_stop")
    begun = [
        epochs[number]
        for number in sorted(epochs)
        if (start := epochs[number].start) is not None and (stop is None or start < stop)
    ]
    for before, after in pairwise(begun):
        if after.number != before.number + 1:
            raise ImportRefusedError(f"epoch {before.number + 1} is missing", after.line)
        if not before.complete:
            raise ImportRefusedError(f"epoch {before.number} has no end", before.line)
    whole = [epoch for epoch in begun if epoch.complete]
    previous = job.began
    for epoch in whole:
        times = [previous, epoch.start, epoch.trained, epoch.end]
        evaluation = [time for time in (epoch.eval_start, epoch.eval_stop) if time is not None]
        if sorted(times) != times or sorted(evaluation) != evaluation:  # type: ignore[type-var]
            what = f"epoch {epoch.number}: its end is earlier than its start"
            raise ImportRefusedError(what, epoch.line)
        previous = epoch.start
    if whole and stop is not None and whole[-1].end > stop + _STRAGGLE_MS:
        raise ImportRefusedError(f"epoch {whole[-1].number} ends after run_stop", whole[-1].line)
    return whole


def _number(event: Event) -> int | None:
    """The number of the event's epoch; None if it does not say."""
    count = event.metadata.get("epoch_count", 1)
    if event.key.startswith("block_") and count != 1:
        what = f"{event.key} of {count} epochs: no times of single epochs"
        raise ImportRefusedError(what, event.line)
    value = event.metadata.get("epoch_num", event.metadata.get("first_epoch_num"))
    if value is None:
        return None
    if not is_number(value) or not 0 <= value < 1e9 or value != int(value):
        what = f"{event.key}: epoch {str(value)[:20]!a} is no whole number"
        raise ImportRefusedError(what, event.line)
    return int(value)
