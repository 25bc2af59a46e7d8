"""Metrics from what a program printed: patterns, what their matches mean, and the numbers.

Patterns are known to the front too; NumPy is imported once logs are read.
"""

import array
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalesweep.compute.job_spec import STREAMS, Meaning
from scalesweep.compute.log_lines import MARKER, DamagedPackError, Line, rank_lines
from scalesweep.compute.log_reader import number_of
from scalesweep.core.errors import UserError
from scalesweep.core.files import natural_order
from scalesweep.core.host import cpu_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Raised when the same logs would give other numbers by patterns or stamps: they are read again.
READER = 6
# Ranks that print one total may differ by this much before it is worth a word.
AGREE = 0.01
_SHOWN = 60  # characters of a value that is no number
_KEY = re.compile(r"[^A-Za-z0-9_.-]")


class UnreadableError(UserError):
    """The program ended well, but what it printed does not give the metrics."""


class LogsGoneError(UserError):
    """A log that the launcher wrote is not there any more."""


@dataclass(frozen=True)
class Metric:
    """An entry of ``result.extract`` (docs/guide/external_programs.md); ``source``: ``from``."""

    metric: str
    pattern: str
    unit: str
    better: str
    scope: str
    match: str = "last"  # first, last, mean, median, all, or a percentile, p1 to p99
    source: str = "stdout"
    optional: bool = False
    printed_by: str = "unknown"
    skip: int = 0  # matches of a rank that are left out: the first

    @property
    def meaning(self) -> Meaning:
        """Unit, direction and scope, as a record has them."""
        return {"unit": self.unit, "better": self.better, "scope": self.scope}


def value_group(pattern: "re.Pattern[str]") -> str | int:
    """The group that holds the number: ``value``, or the only one besides ``key`` and ``rank``.
    Raises ValueError saying what is missing."""
    if "value" in pattern.groupindex:
        return "value"
    others = {pattern.groupindex.get(name, 0) for name in ("key", "rank")}
    numbers = set(range(1, pattern.groups + 1)) - others
    if len(numbers) != 1:
        problem = f"{len(numbers)} groups" if numbers else "no group"
        text = f"'{pattern.pattern}' has {problem} for the number"
        raise ValueError(f"{text}; put it in (?P<value>...)")
    return numbers.pop()


@dataclass
class Reading:
    """What the logs of a run give: arrays for samples.npz, and parts of its record (``of_metrics``:
    its notes on metrics; the rest are empty but of stamps). ``warnings``: a line each."""

    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    arrays: dict[str, "NDArray[Any]"] = field(default_factory=dict)
    of_metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    versions: dict[str, str | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, other: "Reading") -> None:
        """Take what another reading gives as well; raises UnreadableError for a metric of both."""
        if twice := sorted(self.metrics.keys() & other.metrics.keys()):
            raise UnreadableError(f"metric {twice[0]}: two of pattern, reader and stamps give it")
        for name, value in vars(other).items():
            own = getattr(self, name)
            setattr(self, name, own + value if isinstance(own, list) else own | value)


class _Series:
    """Matches of one metric, key and rank (or an unknown one), in the order in which they were
    printed; ``bad``: those that are no numbers, in words."""

    def __init__(self) -> None:
        self.values = array.array("d")
        self.bad: dict[int, str] = {}

    def add(self, text: str, place: str) -> None:
        """Add a match, which stands at ``place``."""
        number = math.nan if text.strip()[-1:].isalpha() else number_of(text)
        if not math.isfinite(number):
            text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            self.bad[len(self.values)] = f"{text!r} in {place} is no finite number"
        self.values.append(number)

    def taken(self, metric: Metric, name: str) -> "NDArray[Any]":
        """The numbers that a metric's rule takes, without those to ``skip``. Raises UnreadableError
        if none is left or one is no number."""
        import numpy as np

        total, begin = len(self.values), metric.skip
        if begin >= total:
            left = f"skip: {metric.skip} leaves none of {total} matches"
            raise UnreadableError(f"metric {name}: {left}")
        last = begin + 1 if metric.match == "first" else total
        begin = total - 1 if metric.match == "last" else begin
        if bad := [place for place in self.bad if begin <= place < last]:
            raise UnreadableError(f"metric {name}: {self.bad[bad[0]]}")
        return np.array(self.values[begin:last])


_ByRank = dict[int | None, _Series]  # by rank; None without a label


def read_metrics(
    metrics: Sequence[Metric], work: Path, ranks: int, srun_labels: bool = False
) -> Reading:
    """Read the logs in ``work``, the folder of an attempt of a run with ``ranks`` ranks.

    The rank of a match is that of its group ``rank``, else of its line's label. ``srun_labels``:
    the launcher's command labels lines as ``srun --label`` does. Raises UnreadableError naming
    metric and pattern or a damaged packed file, LogsGoneError if stdout.log or stderr.log is not
    there, OSError if a file cannot be read.
    """
    # Metric -> key (None without one) -> matches.
    series_of: dict[str, dict[str | None, _ByRank]] = {metric.metric: {} for metric in metrics}
    for source in dict.fromkeys(metric.source for metric in metrics):
        compiled = [(it, re.compile(it.pattern)) for it in metrics if it.source == source]
        wanted = [(it, pattern, value_group(pattern)) for it, pattern in compiled]
        for name, line in source_lines(source, work, ranks, srun_labels):
            if line.text.find(MARKER) > 0:  # half a line, cut by a stamp
                continue
            for metric, pattern, group in wanted:
                for match in pattern.finditer(line.text):
                    groups = match.groupdict()
                    said = groups.get("rank") or ""
                    rank = int(said) if said.isdecimal() and len(said) < 8 else line.rank
                    by_rank = series_of[metric.metric].setdefault(groups.get("key"), {})
                    series = by_rank.setdefault(rank, _Series())
                    series.add(match[group] or "", f"line {line.number} of {name}")
    reading = Reading()
    for metric in metrics:
        keys = series_of[metric.metric]
        if not keys and not metric.optional:
            raise UnreadableError(_nothing(metric, work))
        for key, by_rank in keys.items():
            name = metric.metric if key is None else f"{metric.metric}_{_KEY.sub('_', key.strip())}"
            _reduce(metric, name, by_rank, ranks, reading)
    if not reading.metrics:
        raise UnreadableError(
            "no pattern matches any line (all metrics are optional, but one must match)"
        )
    said = reading.of_metrics.items()
    reading.warnings = [f"{name}: {note['warning']}" for name, note in said if "warning" in note]
    return reading


def source_lines(
    source: str, work: Path, ranks: int, srun_labels: bool
) -> Iterator[tuple[str, Line]]:
    """The lines of what ``from`` names, each with its file's name. Their rank is their label's,
    else their file's if there are as many files as ranks."""
    files = log_files(source, work)
    for index, path in enumerate(files):
        own = index if len(files) == ranks > 1 else None
        name = str(path.relative_to(work))
        try:
            lines = rank_lines(path, ranks, srun_labels)
            if own is not None:
                lines = (it if it.rank is not None else it._replace(rank=own) for it in lines)
            yield from ((name, line) for line in lines)
        except DamagedPackError as error:
            raise UnreadableError(f"{name}: {error.strerror}") from None


def log_files(source: str, work: Path) -> list[Path]:
    """The files that ``from`` names, numbers in their names in order; raises LogsGoneError."""
    if source in STREAMS:
        path = work / STREAMS[source]
        if not path.is_file():
            raise LogsGoneError(f"{work.name}/{path.name} is gone")
        return [path]
    names = [path for path in work.glob(source) if path.is_file()]
    return sorted(names, key=natural_order)


def _nothing(metric: Metric, work: Path) -> str:
    where = STREAMS.get(metric.source, metric.source)
    if not log_files(metric.source, work):
        return f"metric {metric.metric}: no file '{where}' in {work.name}"
    return f"metric {metric.metric}: pattern '{metric.pattern}' matches no line of {where}"


def _reduce(metric: Metric, name: str, by_rank: _ByRank, ranks: int, reading: Reading) -> None:
    """Make one number of the matches of a metric, and note what is odd.

    Ranks that labels tell apart give a number each by the metric's rule; a total is that of the
    lowest rank. Arrays have a place for each of the run's ``ranks``, NaN if one printed nothing.
    """
    import numpy as np

    if name in reading.metrics:
        raise UnreadableError(f"metric {name}: two metrics or keys have this name")
    known = sorted(rank for rank in by_rank if rank is not None)
    notes = reading.of_metrics[name] = {"ranks": cpu_set(set(known))}
    if metric.printed_by == "rank_0":
        known = known[:1]
    else:
        _note_missing(metric, name, known, ranks, notes)
    counted: Sequence[int | None] = known or [None]
    lists = {rank: by_rank[rank].taken(metric, name) for rank in counted}
    rule = {"median": "p50"}.get(metric.match, metric.match)
    means = {
        rank: float(np.percentile(numbers, int(rule[1:])) if rule[0] == "p" else numbers.mean())
        for rank, numbers in lists.items()
    }
    value = means[counted[0]]
    if len(means) > 1 and metric.scope == "rank":
        value = float(np.mean(list(means.values())))
        rows = lists if metric.match == "all" else {rank: [mean] for rank, mean in means.items()}
        table = np.full((max(map(len, rows.values())), max(ranks, known[-1] + 1)), np.nan)
        for rank, row in rows.items():
            table[: len(row), rank] = row
        reading.arrays[name] = table if metric.match == "all" else table[0]
    elif metric.match == "all":
        reading.arrays[name] = lists[counted[0]]
    low, high = min(means.values()), max(means.values())
    if metric.scope == "total" and high - low > AGREE * abs(value):
        said = f"{len(means)} ranks disagree: {low:.6g} to {high:.6g}, using {value:.6g}"
        notes["warning"] = said
    reading.metrics[name] = {"value": value, **metric.meaning}


def _note_missing(
    metric: Metric, name: str, known: Sequence[int], ranks: int, notes: dict[str, Any]
) -> None:
    """Warn of ranks that printed nothing, where others did.

    Raises UnreadableError where the metric is of every rank and not optional: a mean over the
    others is another number; and if no label says which rank printed what.
    """
    every, of_rank = metric.printed_by == "every_rank", metric.scope == "rank"
    missing = set(range(ranks)) - set(known)
    if not known and every and of_rank and ranks > 1:
        raise UnreadableError(
            f"metric {name}: no label says which of {ranks} ranks printed what (printed_by: "
            "every_rank): let the launcher label lines (mpirun --tag-output, srun --label, "
            "torchrun --tee 3), or give the pattern a group (?P<rank>...)"
        )
    if not (known and missing) or not (every or (of_rank and len(known) > 1)):
        return
    printed = f"{len(known)} of {ranks} ranks printed it, missing: {cpu_set(missing)}"
    if every and of_rank and not metric.optional:
        raise UnreadableError(f"metric {name}: {printed} (printed_by: every_rank)")
    notes["warning"] = printed
