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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

from scalesweep.compute.log_lines import Line
from scalesweep.importers.imported_run import ImportRefusedError

# Logs of v0.6 and older, which had other lines and no CosmoFlow.
OLD = re.compile(r":::(?:MLL \d|MLPv\d)")
SIGN = re.compile(rf":::MLLOG\b|{OLD.pattern}")

_MARK = ":::MLLOG"
_SRUN_LABEL = re.compile(r" *(\d{1,7}): ?")
_INSTANCES = ("instance", "instance_id")
# Keys that a run begins with again once the one before has ended.
_HEAD = ("cache_clear", "submission_benchmark", "submission_org", "init_start")
_EPOCH_KEYS = {
    "epoch_start": "start", "epoch_stop": "stop", "block_start": "start", "block_stop": "stop",
    "eval_start": "eval_start", "eval_stop": "eval_stop", "eval_error": "error",
    "learning_rate": "rate",
}  # fmt: skip
_RUN_KEYS = (
    *("run_start", "run_stop", "init_start", "init_stop", "staging_start", "staging_stop"),
    *("cache_clear", "train_samples", "eval_samples", "global_batch_size", "seed"),
    *("number_of_ranks", "number_of_nodes", "accelerators_per_node", "dropout"),
    *("target_mae", "epochs", "sample_shape"),  # of our own program
)
# What logs of other benchmarks than CosmoFlow say besides.
_OTHER_KEYS = (
    *("eval_accuracy", "tracked_stats", "gradient_accumulation_steps", "max_sequence_length"),
    *("gradient_accumulation_frequency", "target_avg_lddt_ca_value", "target_accuracy_reached"),
)
_KEYS = frozenset((*_RUN_KEYS, *_OTHER_KEYS, *_EPOCH_KEYS))
_LONGEST = 20_000  # characters of an event
_KEY = re.compile(r'"key": *"(\w{1,60})"')
_MOST_EVENTS = 500_000
_LATEST_MS = 4e12
_LARGEST = 2**1000
# Ranks that all write a line do so within this.
_STRAGGLE_MS = 10_000.0


@dataclass(frozen=True, slots=True)
class Event:
    """One line; ``ms`` is Unix time in milliseconds."""

    key: str
    value: Any
    metadata: Mapping[str, Any]
    ms: float
    line: int


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
    def first_line(self) -> int:
        """Where it begins in its file."""
        return min(event.line for event in self.events)

    @property
    def last_line(self) -> int:
        """Where it ends."""
        return max(event.line for event in self.events)

    def of_cosmoflow(self) -> "Job":
        """The same without what only logs of other benchmarks say."""
        events = [event for event in self.events if event.key not in _OTHER_KEYS]
        return replace(self, events=events)

    def find(self, key: str) -> list[Event]:
        """All events of a key."""
        return [event for event in self.events if event.key == key]

    def value(self, key: str) -> Any:
        """What the log says of a key; None if nothing. Raises ImportRefusedError if two things."""
        values = [event for event in self.find(key) if event.value is not None]
        for event in values[1:]:
            if event.value != values[0].value:
                raise ImportRefusedError(
                    f"{key} is {values[0].value!r} and {event.value!r}: of several runs?",
                    event.line,
                )
        return values[0].value if values else None

    def moment(self, key: str) -> float | None:
        """Time in ms: of several ranks the first to start, the last to stop."""
        times = [event.ms for event in self.find(key)]
        if not times:
            return None
        return max(times) if key.endswith("_stop") else min(times)

    def takes(self, event: Event) -> bool:
        """Whether an event is of this run and not the first of another."""
        if self.began is None:
            return True
        if event.key == "run_start":
            return not self.ended and abs(event.ms - self.began) <= _STRAGGLE_MS
        if self.ended:
            return event.key not in _HEAD
        return event.key != "init_start" or event.ms < self.began


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
    label. Raises ImportRefusedError if there are too many events or none is whole.
    """
    lowest: dict[str, int] = {}
    kept: list[tuple[int | None, Event | Damaged]] = []
    for line, rank, event in _events(lines):
        key = _key(event)
        if rank is not None and rank < lowest.get(key, rank + 1):
            if key in lowest:
                kept = [it for it in kept if it[0] is None or _key(it[1]) != key]
            lowest[key] = rank
        if rank is None or rank == lowest[key]:
            kept.append((rank, event))
        if len(kept) > _MOST_EVENTS:
            raise ImportRefusedError(f"more than {_MOST_EVENTS:,} events", line)
    jobs = _split([event for _, event in kept])
    # A wrapper's line of before a run may be printed behind it: no run is made of that alone.
    whole = [job for job in jobs if {event.key for event in job.events} != {"cache_clear"}]
    return whole or jobs


def _key(event: Event | Damaged) -> str:
    return event.key if isinstance(event, Event) else ""


def _events(lines: Iterable[Line]) -> Iterator[tuple[int, int | None, Event | Damaged]]:
    """Line, rank, and the event or what is damaged."""
    for line in lines:
        before, *texts = line.text.split(_MARK)
        rank = line.rank
        if rank is None and texts and (label := _SRUN_LABEL.fullmatch(before)):
            rank = int(label[1])
        for text in texts:
            if not text.lstrip().startswith("{"):
                continue  # of somebody who speaks of such lines
            event = _event(text, line.number)
            if event is None:
                damaged = Damaged(line.number, text.strip()[:60], _is_needed(text))
                yield line.number, rank, damaged
            elif event.key in _KEYS or _is_setting(event.key):
                yield line.number, rank, event


def read_events(lines: Iterable[Line], keys: Collection[str]) -> Iterator[Event]:
    """The events of these keys, whichever run they are of. Raises ImportRefusedError for a damaged
    line."""
    for line in lines:
        for text in line.text.split(_MARK)[1:]:
            if not text.lstrip().startswith("{"):
                continue
            event = _event(text, line.number)
            if event is None:
                raise ImportRefusedError(f"a damaged line: {text.strip()[:60]!a}", line.number)
            if event.key in keys:
                yield event


def _is_setting(key: str) -> bool:
    return key.startswith(("submission_", "opt_"))


def _is_needed(text: str) -> bool:
    """Whether what a damaged line was of is needed, as far as its key shows."""
    keys = _KEY.findall(text[:_LONGEST])
    if len(keys) != 1 or keys[0].startswith("submission_"):
        return True
    return keys[0] in _KEYS and keys[0] != "init_start"


def _event(text: str, line: int) -> Event | None:
    """The event of a line; None if it is damaged."""
    text = text.strip()[:_LONGEST]
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
    return (
        Event(key, content.get("value"), metadata, float(ms), line) if 0 < ms < _LATEST_MS else None
    )


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value of JSON is a number, NaN included, and none too large for one."""
    if isinstance(value, float):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST


def _instance(event: Event) -> str:
    names = [event.metadata[name] for name in _INSTANCES if name in event.metadata]
    return str(names[0]) if names else ""


def _split(entries: Sequence[Event | Damaged]) -> list[Job]:
    """The jobs of a log in order: a job ends where an event comes that it cannot have.

    Lines of several instances in one log are told apart by their instance. Raises
    ImportRefusedError if all lines are damaged.
    """
    jobs: list[Job] = []
    # By instance: models trained at the same time may share a log. Where only one is named, as on
    # some of the lines of v3.0, the others are of it too.
    named = {_instance(entry) for entry in entries if isinstance(entry, Event)} - {""}
    current: dict[str, Job] = {}
    last: Job | None = None
    pending: list[Damaged] = []
    for entry in entries:
        if isinstance(entry, Damaged):
            # Behind a run that has ended it is of the next.
            (pending if last is None or last.ended else last.damaged).append(entry)
            continue
        instance = _instance(entry) if len(named) > 1 else ""
        if instance not in current or not current[instance].takes(entry):
            current[instance] = Job(damaged=pending)
            jobs.append(current[instance])
            pending = []
        last = current[instance]
        last.events.append(entry)
        if entry.key == "run_start":
            last.began = entry.ms if last.began is None else min(last.began, entry.ms)
        last.ended = last.ended or (entry.key == "run_stop" and last.began is not None)
    if pending and not jobs:
        raise ImportRefusedError(
            f"a damaged line and no intact one: {pending[0].text!a}", pending[0].line
        )
    return jobs


def epochs_of(job: Job) -> list[Epoch]:
    """The epochs of a run that were ended, in order.

    Raises ImportRefusedError, with the line, where they contradict each other or one is missing.
    """
    epochs: dict[int, Epoch] = {}
    number: int | None = None
    for event in job.events:
        if (name := _EPOCH_KEYS.get(event.key)) is None:
            continue
        stated = _number(event)
        if name == "start" and stated is None:
            raise ImportRefusedError(f"{event.key} without epoch_num", event.line)
        if stated is None and number is None:
            continue  # an evaluation before the first epoch
        here = number if stated is None else stated
        assert here is not None
        if name == "start":
            number = here
        _set_value(epochs.setdefault(here, Epoch(here, event.line)), name, event)
    return _whole(epochs, job)


def _number(event: Event) -> int | None:
    """The number of the event's epoch; None if it does not say."""
    count = event.metadata.get("epoch_count", 1)
    if event.key.startswith("block_") and count != 1:
        raise ImportRefusedError(
            f"{event.key} of {count} epochs: no times of single epochs", event.line
        )
    value = event.metadata.get("epoch_num", event.metadata.get("first_epoch_num"))
    if value is None:
        return None
    if not is_number(value) or not 0 <= value < 1e9 or value != int(value):
        raise ImportRefusedError(
            f"{event.key}: epoch {str(value)[:20]!a} is no whole number", event.line
        )
    return int(value)


def _set_value(epoch: Epoch, name: str, event: Event) -> None:
    if name in ("error", "rate"):
        value = float("nan") if event.value is None else event.value
        if not is_number(value):
            raise ImportRefusedError(f"{event.key} {str(value)[:40]!a} is no number", event.line)
        if name == "error" and epoch.error not in (None, value) and not math.isnan(value):
            raise ImportRefusedError(
                f"{event.key} of epoch {epoch.number} is {epoch.error} and {value}: "
                "the lines of several runs or ranks are mixed",
                event.line,
            )
        setattr(epoch, name, float(value))
        return
    before = getattr(epoch, name)
    later = max if name.endswith("stop") else min
    setattr(epoch, name, event.ms if before is None else later(before, event.ms))
    rates = event.metadata.get("lr")
    rate = rates[0] if isinstance(rates, list) and rates else rates
    if name == "start" and is_number(rate):
        epoch.rate = float(rate)


def _whole(by_number: Mapping[int, Epoch], job: Job) -> list[Epoch]:
    """The epochs that ended; one more may have begun.

    Those that began once the run had stopped are not of it: programs of v3.0 went on training.
    """
    stop = job.moment("run_stop")
    begun = [
        by_number[number]
        for number in sorted(by_number)
        if (start := by_number[number].start) is not None and (stop is None or start < stop)
    ]
    for before, after in pairwise(begun):
        if after.number != before.number + 1:
            raise ImportRefusedError(f"epoch {before.number + 1} is missing", after.line)
        if not before.complete:
            raise ImportRefusedError(f"epoch {before.number} has no end", before.line)
    epochs = [epoch for epoch in begun if epoch.complete]
    previous = job.began
    for epoch in epochs:
        assert epoch.start is not None and previous is not None
        times = [previous, epoch.start, epoch.trained, epoch.end]
        evaluation = [time for time in (epoch.eval_start, epoch.eval_stop) if time is not None]
        if sorted(times) != times or sorted(evaluation) != evaluation:
            raise ImportRefusedError(
                f"epoch {epoch.number}: its end is earlier than its start",
                epoch.line,
            )
        previous = epoch.start
    if epochs and stop is not None and epochs[-1].end > stop + _STRAGGLE_MS:
        raise ImportRefusedError(f"epoch {epochs[-1].number} ends after run_stop", epochs[-1].line)
    return epochs
