"""MLPerf's logs: their events, which of them make up one run, and what all runs share.

A line is ``:::MLLOG`` and an object of JSON (mlcommons/logging, mlperf_logging/mllog), behind
whatever a launcher put before it. What is known of an event is its key: published logs have
wrong event types, evaluations without the number of their epoch, and lines once for every rank.
"""

import ast
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from scalesweep.compute.log_lines import Line
from scalesweep.importers.imported_run import ImportRefusedError

_MARK = ":::MLLOG"
# Logs of v0.6 and older, which had other lines and no CosmoFlow, are refused by name.
SIGN = re.compile(rf"{_MARK}\b|:::(?:MLL \d|MLPv\d)")
_SRUN_LABEL = re.compile(r" *(\d{1,7}): ?")
# Keys that a run begins with again once the one before has ended.
_HEAD = ("cache_clear", "submission_benchmark", "submission_org", "init_start")
_NEEDED = re.compile(
    r"submission_\w+|opt_\w+|(?:run|init|staging|epoch|block|eval)_(?:start|stop)|cache_clear|seed"
    r"|(?:train|eval)_samples|global_batch_size|number_of_(?:ranks|nodes)|accelerators_per_node"
    r"|dropout|target_mae|epochs|sample_shape|eval_(?:error|accuracy)|learning_rate|tracked_stats"
    r"|gradient_accumulation_(?:steps|frequency)|max_sequence_length"
)
_LONGEST = 20_000  # characters of an event
_LATEST_MS = 4e12
# Ranks that all write a line do so within this.
STRAGGLE_MS = 10_000.0
Span = tuple[str, float, float]  # a phase, its begin and end in Unix seconds
# Beside the logs: the factor that MLPerf multiplies the score by (mlcommons/logging,
# result_summarizer.py: _get_scaling_factor).
SCALING = "scaling.json"
SCORE = "score"  # note of a run: how MLPerf counts its score
NOT_STATED = "not stated"
# Folders of a submission since v1.0: the logs themselves do not say it (MLPerf HPC training rules,
# "Weak-scaling": models that are trained at the same time, whose result is models per minute).
_SUBMISSIONS = re.compile(r"(?:^|[_-])(?P<kind>weak|strong)(?:[_-]|$)")


@dataclass(frozen=True, slots=True)
class Event:
    """One line; ``ms`` is Unix time in milliseconds, 0 of a line that is damaged."""

    key: str
    value: Any
    metadata: Mapping[str, Any]
    ms: float
    line: int

    @property
    def instance(self) -> str:
        """Which of the models that share a log it is of; empty if it does not say."""
        return str(self.metadata.get("instance", self.metadata.get("instance_id", "")))


@dataclass
class Job:
    """The events of one run, those before its run_start included."""

    events: list[Event] = field(default_factory=list)
    damaged: list[Event] = field(default_factory=list)
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
                words = f"{key} is {events[0].value!r} and {event.value!r}: of several runs?"
                raise ImportRefusedError(words, event.line)
        return events[0].value if events else None

    def count(self, key: str, least: int = 0) -> int | None:
        """A whole number that the log states (24.0 is one). Raises ImportRefusedError."""
        value = self.value(key)
        if value is None:
            return None
        if not is_number(value) or not least <= value < 2**53 or value != int(value):
            words = f"{key} {str(value)[:40]!a} is not a whole number from {least} on"
            raise ImportRefusedError(words, self.find(key)[0].line)
        return int(value)

    def moment(self, key: str) -> float | None:
        """Time in ms: of several ranks the first to start, the last to stop."""
        times = [event.ms for event in self.find(key)]
        return (max if key.endswith("_stop") else min)(times, default=None)

    def span(self, name: str, key: str) -> list[Span]:
        """A phase from ``key_start`` to ``key_stop``, if both are there."""
        return span_of(name, self.moment(f"{key}_start"), self.moment(f"{key}_stop"))

    def takes(self, event: Event) -> bool:
        """Whether an event is of this run and not the first of another."""
        if self.began is None:
            return True
        if event.key == "run_start":
            return not self.ended and abs(event.ms - self.began) <= STRAGGLE_MS
        if self.ended:
            return event.key not in _HEAD
        return event.key != "init_start" or event.ms < self.began

    def add(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)
        if event.key == "run_start":
            self.began = event.ms if self.began is None else min(self.began, event.ms)
        self.ended = self.ended or (event.key == "run_stop" and self.began is not None)


def span_of(name: str, start: float | None, stop: float | None) -> list[Span]:
    """A phase from its begin and end in ms, if both are known and in order."""
    if start is None or stop is None or stop < start:
        return []
    return [(name, start / 1000, stop / 1000)]


def read_runs(lines: Iterable[Line]) -> list[Job]:
    """The runs of a log in order, unfinished ones too.

    Of lines with ranks' labels those of the lowest rank count, and of what that rank does not print
    (ranks that evaluate may print run_stop) those of the lowest that does; and those without a
    label. Raises ImportRefusedError if no event is whole.
    """
    lowest: dict[str, int] = {}
    kept: list[tuple[int | None, Event]] = []
    for rank, event in _entries(lines):
        if rank is not None and rank < (before := lowest.get(event.key, rank + 1)):
            kept = [it for it in kept if it[0] != before or it[1].key != event.key]
            lowest[event.key] = rank
        if rank is None or rank == lowest[event.key]:
            kept.append((rank, event))
    jobs = _split([event for _, event in kept])
    if not jobs:
        raise ImportRefusedError("no whole event in it; MLPerf Training before v0.7 is not read", 1)
    # A wrapper's line of before a run may be printed behind it: no run is made of that alone.
    whole = [job for job in jobs if {event.key for event in job.events} != {"cache_clear"}]
    return whole or jobs


def _entries(lines: Iterable[Line]) -> Iterator[tuple[int | None, Event]]:
    """Rank and event; of a damaged line that may be needed its text, as an event without a key."""
    for line in lines:
        before, *texts = line.text.split(_MARK)
        label = _SRUN_LABEL.fullmatch(before) if texts and line.rank is None else None
        rank = int(label[1]) if label else line.rank
        for text in texts:
            if not text.lstrip().startswith("{"):
                continue  # of somebody who speaks of such lines
            event = _event(text.strip()[:_LONGEST], line.number)
            if event is None:
                keys = re.findall(r'"key": *"(\w{1,60})"', text[:_LONGEST])
                if len(keys) != 1 or _NEEDED.fullmatch(re.sub("^(?:opt|init|seed)", "no", keys[0])):
                    yield rank, Event("", text.strip()[:60], {}, 0.0, line.number)
            elif _NEEDED.fullmatch(event.key):
                yield rank, event


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
    if not (isinstance(key, str) and isinstance(metadata, dict) and is_number(ms)):
        return None
    return Event(key, content.get("value"), metadata, ms, line) if 0 < ms < _LATEST_MS else None


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value of JSON is a number, NaN included, and none too large for one."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000
    return whole or isinstance(value, float)


def _split(events: Sequence[Event]) -> list[Job]:
    """The jobs of a log in order: a job ends where an event comes that it cannot have.

    Models trained at the same time may share a log: they are told apart by their instance. If only
    one is named, as on some of the lines of v3.0, the others are of it too.
    """
    jobs: list[Job] = []
    several = len({event.instance for event in events} - {""}) > 1
    current: dict[str, Job] = {}
    last: Job | None = None
    pending: list[Event] = []
    for event in events:
        if not event.key:  # damaged; behind a run that has ended it is of the next
            (pending if last is None or last.ended else last.damaged).append(event)
            continue
        instance = event.instance if several else ""
        if instance not in current or not current[instance].takes(event):
            current[instance] = Job(damaged=pending)
            jobs.append(current[instance])
            pending = []
        last = current[instance]
        last.add(event)
    return jobs


def beside(path: Path) -> dict[str, Any]:
    """What a file of JSON beside a log says; empty without one. Raises ImportRefusedError."""
    try:
        return dict(json.loads(path.read_bytes())) if path.is_file() else {}
    except (OSError, ValueError, TypeError) as error:
        raise ImportRefusedError(f"{path.name} beside it: no object of JSON ({error})") from None


def system_of(log: Path) -> dict[str, Any]:
    """What ``systems/NAME.json`` of a submission says of a log below ``results/NAME``, with its
    name as ``file``; empty without one. Raises ImportRefusedError."""
    folders = [log.absolute(), *log.absolute().parents]
    for inner, folder in pairwise(folders):
        if folder.name == "results":
            said = beside(path := folder.parent / "systems" / f"{inner.name}.json")
            return {"file": path.name, **said} if said else {}
    return {}


def submission_kind(file: Path) -> str | None:
    """``weak`` or ``strong``, as the nearest folder of the log is named; None if none says."""
    names = (_SUBMISSIONS.search(folder.name.lower()) for folder in file.absolute().parents)
    return next((match["kind"] for match in names if match), None)


def ranks_of(
    job: Job, given: int | None, assumed: dict[str, str], system: Mapping[str, Any]
) -> dict[str, int]:
    """Ranks and ranks of a node: as the log states them, else the accelerators (or nodes without)
    of the system's description, else as they are ``given``; ``assumed`` gets where they are from.
    Raises ImportRefusedError."""
    stated, nodes = job.count("number_of_ranks"), job.count("number_of_nodes")
    each, words = job.count("accelerators_per_node"), "one for each accelerator"
    if not stated and not (nodes and each) and system:
        words = f"the accelerators of systems/{system['file']}"
        try:
            nodes, each = int(system["number_of_nodes"]), int(system["accelerators_per_node"]) or 1
        except (KeyError, TypeError, ValueError):
            nodes = each = None
    if stated:
        ranks = stated
    elif nodes and each:
        ranks, assumed["ranks"] = nodes * each, words
    elif given:
        ranks, assumed["ranks"] = given, "--ranks"
    else:
        what = "neither log nor systems/NAME.json of its submission states the ranks: add --ranks N"
        raise ImportRefusedError(what, job.lines[0])
    if given not in (None, ranks):
        assumed["ranks"] = f"{assumed.get('ranks', 'the log')}, not --ranks {given}"
    return {"ranks": ranks, **({"ranks_per_node": ranks // nodes} if nodes and not ranks % nodes
                               else {})}  # fmt: skip


def ending(job: Job, met: bool | None, after: str = "") -> tuple[str, bool, str]:
    """How the run ended, in words; whether it met its target; and why it has no result: it was cut
    or broken off, ``after`` so much, empty if neither.

    ``met``: whether it did by its last evaluation, which counts if the log does not say it; None
    if that is not known either.
    """
    stops = job.find("run_stop")
    if not stops:
        return "unfinished: no run_stop", False, f"cut{after}: the log has no run_stop"
    status = stops[0].metadata.get("status", stops[0].value)
    if status is None:
        return NOT_STATED, bool(met), ""
    reached = str(status).lower() == "success"
    return str(status)[:40], reached, "" if reached else f"{str(status)[:40]}{after}"


def times_of(job: Job, spans: Sequence[Span]) -> dict[str, Any]:
    """Dates and phases of a run, as of an ``ImportedRun``; the log has milliseconds."""
    start, stop, begin = (job.moment(key) for key in ("run_start", "run_stop", "init_start"))
    assert start is not None
    end = stop or max(event.ms for event in job.events)
    phases: dict[str, float] = {}
    for name, since, until in spans:
        phases[name] = round(phases.get(name, 0.0) + until - since, 3)
    return {
        "started": datetime.fromtimestamp(min(begin or start, start) / 1000, UTC),
        "ended": datetime.fromtimestamp(end / 1000, UTC),
        "phases": phases,
        "phase_spans": spans,
    }


def notes_of(
    job: Job, submission: Mapping[str, Any], assumed: Mapping[str, str], status: str
) -> dict[str, Any]:
    """What the record says of how the log was read."""
    return {
        "importer": "MLPerf log",
        "lines": job.lines,
        "submission": dict(submission),
        "assumed": dict(assumed),
        "status": status,
        "dates": "started is init_start, ended run_stop or the last line",
        "time_to_target": "from run_start to run_stop, staging included, as MLPerf counts it",
    }
