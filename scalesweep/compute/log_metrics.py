"""Metrics from what a program printed: patterns, what their matches mean, and the numbers.

Standard library only: the launcher reads logs on compute nodes.
"""

import array
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalesweep.compute.job_spec import STREAMS
from scalesweep.compute.log_lines import MARKER, DamagedPackError, read_lines
from scalesweep.compute.native_format import Meaning, MetricValue
from scalesweep.compute.torch_labels import labels_of
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, natural_order
from scalesweep.core.host import cpu_set
from scalesweep.core.npy import array_of
from scalesweep.core.record import OF_STEPS, STEP_TIMES, WARMUP_STEP_TIMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Raised when the same patterns would give other numbers: logs are read again.
_READER = 3
MAX_KEYS = 1000
# Ranks that print one total may differ by this much before it is worth a word.
AGREE = 0.01
_SHOWN = 60  # characters of a value that is no number
# Rules of ``match`` beside first, last, mean, median and all.
PERCENTILES = frozenset(f"p{percent}" for percent in range(1, 100))
_NUMBER = re.compile(
    r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)(?:[eEdD][+-]?\d+)?"
)
_SPECIAL = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
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
    type: str = "number"
    match: str = "last"
    source: str = "stdout"
    optional: bool = False
    printed_by: str = "unknown"
    skip: int = 0  # matches of a rank that are left out: the first

    @property
    def meaning(self) -> Meaning:
        """Unit, direction and scope, as a record has them."""
        return {"unit": self.unit, "better": self.better, "scope": self.scope}


def digest_of_metrics(metrics: Sequence[Metric]) -> str:
    """What the metrics of a record were read with."""
    return digest_of([_READER, [asdict(metric) for metric in metrics]], 8)


@dataclass
class Reading:
    """What the logs of a run give: metrics and notes as in a record, arrays for samples.npz."""

    metrics: dict[str, MetricValue] = field(default_factory=dict)
    arrays: dict[str, "NDArray[Any]"] = field(default_factory=dict)
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)
    of_stamps: list[str] = field(default_factory=list)  # warnings

    def add(self, other: "Reading") -> None:
        """Take what another reading gives as well; raises UnreadableError for a metric of both."""
        if twice := sorted(self.metrics.keys() & other.metrics.keys()):
            raise UnreadableError(f"metric {twice[0]}: a pattern and the reader both give it")
        self.metrics |= other.metrics
        self.arrays |= other.arrays
        self.notes |= other.notes

    @property
    def warnings(self) -> list[str]:
        """What should be looked at, a line each."""
        said = [f"{name}: {n['warning']}" for name, n in self.notes.items() if "warning" in n]
        return [*said, *(f"stamps: {warning}" for warning in self.of_stamps)]


class _Series:
    """Matches of one metric and key, in the order in which one rank (or an unknown one)
    printed them."""

    def __init__(self) -> None:
        self.values = array.array("d")
        self.lines = array.array("q")
        self.files: dict[str, int] = {}  # name -> its first match
        self._bad: dict[int, str] = {}

    def add(self, text: str, file: str, line: int, whole: bool) -> None:
        number = _number(text, whole)
        if isinstance(number, str):
            text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            self._bad[len(self.values)] = f"{text!r} in line {line} of {file} is {number}"
            number = 0.0
        self.files.setdefault(file, len(self.values))
        self.values.append(number)
        self.lines.append(line)

    def checked(self, name: str, places: range) -> list[float]:
        """The numbers at ``places``; raises UnreadableError if one is none."""
        for place in places if self._bad else ():
            if place in self._bad:
                raise UnreadableError(f"metric {name}: {self._bad[place]}")
        return [self.values[place] for place in places]

    def place(self, index: int) -> tuple[str, int]:
        """File and line of a match."""
        file = [name for name, first in self.files.items() if first <= index][-1]
        return file, self.lines[index]


def _number(text: str, whole: bool) -> float | str:
    """The number that a text is, or what is wrong with it."""
    text = text.strip()
    if _SPECIAL.fullmatch(text):
        return "not finite"
    if not _NUMBER.fullmatch(text):
        return "not a number"
    number = float(text.replace(",", "").translate(str.maketrans("dD", "ee")))
    if number in (float("inf"), float("-inf")):
        return "not finite"
    if whole and not number.is_integer():
        return "not an integer"
    return number


# Metric -> key (None without one) -> rank (None without a label) -> matches.
_SeriesOf = dict[str | None, dict[int | None, _Series]]


def read_metrics(
    metrics: Sequence[Metric], work: Path, ranks: int, srun_labels: bool = False
) -> Reading:
    """Read the logs in ``work``, the folder of an attempt of a run with ``ranks`` ranks.

    ``srun_labels``: the launcher's command labels lines as ``srun --label`` does. Raises
    UnreadableError naming metric and pattern or a damaged packed file, LogsGoneError if
    stdout.log or stderr.log is not there, OSError if a file cannot be read.
    """
    series_of: dict[str, _SeriesOf] = {metric.metric: {} for metric in metrics}
    for source in dict.fromkeys(metric.source for metric in metrics):
        group = [metric for metric in metrics if metric.source == source]
        _search(group, log_files(source, work), work, ranks, srun_labels, series_of)
    reading = Reading()
    for metric in metrics:
        keys = series_of[metric.metric]
        if not keys and not metric.optional:
            raise UnreadableError(_nothing(metric, work))
        for key, series in keys.items():
            _reduce(metric, _name(metric, key), series, ranks, reading)
    if not reading.metrics:
        raise UnreadableError(
            "no pattern matches any line (all metrics are optional, but one must match)"
        )
    return reading


def _nothing(metric: Metric, work: Path) -> str:
    where = STREAMS.get(metric.source, metric.source)
    if metric.source not in STREAMS and not log_files(metric.source, work):
        return f"metric {metric.metric}: no file '{where}' in {work.name}"
    return f"metric {metric.metric}: pattern '{metric.pattern}' matches no line of {where}"


def log_files(source: str, work: Path) -> list[Path]:
    """The files that ``from`` names, numbers in their names in order; raises LogsGoneError."""
    if source in STREAMS:
        path = work / STREAMS[source]
        if not path.is_file():
            raise LogsGoneError(f"{work.name}/{path.name} is gone")
        return [path]
    names = [path for path in work.glob(source) if path.is_file()]
    return sorted(names, key=natural_order)


def _search(
    metrics: Sequence[Metric],
    files: Sequence[Path],
    work: Path,
    ranks: int,
    srun_labels: bool,
    series_of: Mapping[str, _SeriesOf],
) -> None:
    """Add the matches in ``files``, each read once."""
    # As many files as ranks: each is of one rank.
    of_a_rank = len(files) == ranks > 1
    compiled = [re.compile(metric.pattern) for metric in metrics]
    wanted = [(m, p, value_group(p)) for m, p in zip(metrics, compiled, strict=True)]
    name = ""
    try:
        for index, path in enumerate(files):
            name = str(path.relative_to(work))
            labels = labels_of(path, ranks, srun_labels)
            for line in read_lines(path, srun_labels):
                plain, labelled = labels.of(line)
                if plain.find(MARKER) > 0:  # half a line, cut by a stamp
                    continue
                for metric, pattern, group in wanted:
                    matches, known = list(pattern.finditer(plain)), labelled
                    if not matches and plain is not line.text:
                        # A pattern may be of a line with what might be its label.
                        matches, known = list(pattern.finditer(line.text)), line.rank
                    for match in matches:
                        rank = _rank(match, index if of_a_rank and known is None else known)
                        series = _series(series_of[metric.metric], metric, match, rank)
                        text = match[group] or ""
                        series.add(text, name, line.number, metric.type == "integer")
    except DamagedPackError as error:
        raise UnreadableError(f"{name}: {error.strerror}") from None


def _rank(match: "re.Match[str]", labelled: int | None) -> int | None:
    """The rank that printed a match: as its group ``rank`` says, else as its line is labelled."""
    text = match["rank"] if "rank" in match.re.groupindex else None
    return int(text) if text is not None and text.isdecimal() and len(text) < 8 else labelled


def value_group(pattern: "re.Pattern[str]") -> str | int:
    """The group that holds the number: ``value``, or the only one besides ``key`` and ``rank``.

    Raises ValueError saying what is missing.
    """
    if "value" in pattern.groupindex:
        return "value"
    others = {pattern.groupindex.get(name, 0) for name in ("key", "rank")}
    numbers = set(range(1, pattern.groups + 1)) - others
    if len(numbers) != 1:
        problem = f"{len(numbers)} groups" if numbers else "no group"
        raise ValueError(f"has {problem} for the number; put it in (?P<value>...)")
    return numbers.pop()


def _series(by_key: _SeriesOf, metric: Metric, match: "re.Match[str]", rank: int | None) -> _Series:
    key = match["key"] if "key" in match.re.groupindex else None
    if key not in by_key and len(by_key) == MAX_KEYS:
        raise UnreadableError(
            f"metric {metric.metric}: more than {MAX_KEYS} keys, the last {key!r}"
        )
    by_rank = by_key.setdefault(key, {})
    return by_rank.setdefault(rank, _Series())


def _name(metric: Metric, key: str | None) -> str:
    return metric.metric if key is None else f"{metric.metric}_{_KEY.sub('_', key.strip())}"


def _reduce(
    metric: Metric, name: str, by_rank: Mapping[int | None, _Series], ranks: int, reading: Reading
) -> None:
    """Make one number of the matches of a metric, and note where it comes from."""
    if name in reading.metrics:
        raise UnreadableError(f"metric {name}: two metrics or keys have this name")
    known = sorted(rank for rank in by_rank if rank is not None)
    notes: dict[str, Any] = {
        "matches": sum(len(series.values) for series in by_rank.values()),
        "ranks": cpu_set(set(known)),
    }
    reading.notes[name] = notes
    if metric.printed_by == "rank_0":
        known = known[:1]
    else:
        _note_missing(metric, name, known, ranks, notes)
    if len(known) > 1:
        if None in by_rank:
            notes["without_rank"] = len(by_rank[None].values)
        value = _of_ranks(metric, name, {rank: by_rank[rank] for rank in known}, ranks, reading)
    else:
        series = by_rank[known[0]] if known else by_rank[None]
        value = _of_one(metric, name, series, 1 if known else ranks, reading)
    if name == STEP_TIMES:
        _keep_warm_up(metric, by_rank, ranks, reading)
    whole = metric.type == "integer" and float(value).is_integer()
    reading.metrics[name] = {"value": int(value) if whole else value, **metric.meaning}


def _keep_warm_up(
    metric: Metric, by_rank: Mapping[int | None, _Series], ranks: int, reading: Reading
) -> None:
    """Keep the times of the steps that are skipped, where it is known which rank printed which."""
    columns = [by_rank.get(rank if ranks > 1 or rank in by_rank else None) for rank in range(ranks)]
    if not metric.skip or metric.match != "all" or WARMUP_STEP_TIMES in reading.arrays:
        return
    try:
        steps = [s.checked(STEP_TIMES, range(metric.skip)) for s in columns if s is not None]
    except UnreadableError:
        return  # whatever is in a line that nobody asked for
    if len(steps) == ranks:
        values = [number for row in zip(*steps, strict=True) for number in row]
        reading.arrays[WARMUP_STEP_TIMES] = array_of(values, metric.skip, ranks)


def _places(metric: Metric, name: str, series: _Series, count: int = 1) -> range:
    """Indices of the matches that a metric's rule takes, once those to ``skip`` are left out.

    ``count`` ranks printed them, so that of each as many are skipped, and one is the first or last.
    Raises UnreadableError if none is left.
    """
    total, begin = len(series.values), metric.skip * count
    if begin >= total:
        raise UnreadableError(f"metric {name}: skip: {metric.skip} leaves none of {total} matches")
    if metric.match == "first":
        return range(begin, min(begin + count, total))
    return range(max(begin, total - count) if metric.match == "last" else begin, total)


def reduced(match: str, values: Sequence[float]) -> float:
    """One number of the matches that a rule takes: their median, a percentile (``p90``; linear
    between the two nearest, as NumPy's default), else their mean."""
    share = 0.5 if match == "median" else float(match[1:]) / 100 if match in PERCENTILES else None
    if share is None:
        return _mean(values)
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _note_missing(
    metric: Metric, name: str, known: Sequence[int], ranks: int, notes: dict[str, Any]
) -> None:
    """Warn of ranks that printed nothing, where others did.

    Raises UnreadableError where the metric is of every rank and not optional: a mean over the
    others is another number.
    """
    every = metric.printed_by == "every_rank"
    missing = set(range(ranks)) - set(known)
    several = len(known) > 1 and metric.scope == "rank"
    if not missing or not known or not (every or several):
        return
    printed = f"{len(known)} of {ranks} ranks printed it, missing: {cpu_set(missing)}"
    if every and metric.scope == "rank" and not metric.optional:
        raise UnreadableError(f"metric {name}: {printed} (printed_by: every_rank)")
    notes["warning"] = printed


def _of_ranks(
    metric: Metric, name: str, by_rank: Mapping[int, _Series], ranks: int, reading: Reading
) -> float:
    """Ranks that are known by their labels: each gives a number by the metric's rule.

    Arrays have a place for each of the run's ``ranks``, NaN where one printed nothing.
    """
    notes = reading.notes[name]
    lists = {r: s.checked(name, _places(metric, name, s)) for r, s in by_rank.items()}
    means = {rank: reduced(metric.match, numbers) for rank, numbers in lists.items()}
    lowest = min(by_rank)
    index = _places(metric, name, by_rank[lowest])[-1]
    notes["file"], notes["line"] = by_rank[lowest].place(index)
    if metric.scope == "total":
        notes["taken_from_rank"] = lowest
        _compare(notes, list(means.values()), means[lowest])
        if metric.match == "all":
            reading.arrays[name] = array_of(lists[lowest], len(lists[lowest]))
        return means[lowest]
    places = range(max(ranks, max(by_rank) + 1))
    if metric.match == "all":
        longest = max(map(len, lists.values()))
        if min(map(len, lists.values())) < longest:
            notes["note"] = "ranks have different numbers of matches; the array is NaN behind them"
        columns = [lists.get(rank, []) for rank in places]
        rows = [[c[i] if i < len(c) else math.nan for c in columns] for i in range(longest)]
        reading.arrays[name] = array_of([n for row in rows for n in row], longest, len(places))
    else:
        values = [means.get(rank, math.nan) for rank in places]
        reading.arrays[name] = array_of(values, len(places))
    return _mean(list(means.values()))


def _of_one(metric: Metric, name: str, series: _Series, ranks: int, reading: Reading) -> float:
    """One series of matches; with ``ranks`` above 1 it is unknown which of them printed which."""
    notes = reading.notes[name]
    total = len(series.values)
    each = metric.printed_by == "every_rank" and ranks > 1
    if each and total < ranks and metric.scope == "rank" and not metric.optional:
        raise UnreadableError(
            f"metric {name}: {total} matches of {ranks} ranks (printed_by: every_rank)"
        )
    places = _places(metric, name, series, ranks if each else 1)
    values = series.checked(name, places)
    if each and metric.scope == "rank":
        _check_in_step(metric, name, series, ranks)
    index = places[0] if metric.match == "first" else places[-1]
    notes["file"], notes["line"] = series.place(index)
    if ranks > 1 and metric.printed_by != "rank_0":
        _note_duplicates(notes, total, ranks, each)
    if metric.match == "all":
        once = each and metric.scope == "rank" and len(values) == ranks
        shape = (len(values), 1) if name in OF_STEPS and ranks == 1 else (len(values),)
        reading.arrays[name] = array_of(values, *((1, ranks) if once else shape))
    if each and metric.scope == "total" and metric.match in ("first", "last"):
        value = values[0] if metric.match == "first" else values[-1]
        _compare(notes, values, value)
        return value
    return reduced(metric.match, values)


def _check_in_step(metric: Metric, name: str, series: _Series, ranks: int) -> None:
    """Raise UnreadableError where nothing says which of several matches are which rank's.

    Ranks write when they like: the last of all matches may be those of one rank. One match of each
    is no question; nor is a mean over all, if each printed as many; nor are equal numbers.
    """
    total = len(series.values)
    even = total % ranks == 0
    if total == ranks or (even and metric.match in ("mean", "all") and not metric.skip):
        return
    low, high = min(series.values), max(series.values)
    if even and high - low <= AGREE * abs(high):
        return
    raise UnreadableError(
        f"metric {name}: {total} matches of {ranks} ranks, and no label says which is whose: let "
        "the launcher label lines (mpirun --tag-output, srun --label, torchrun --tee 3), or give "
        "the pattern a group (?P<rank>...)"
    )


def _note_duplicates(notes: dict[str, Any], total: int, ranks: int, each: bool) -> None:
    """Note where one number may occur once for every rank. Nothing is ever added up."""
    if total % ranks == 0:
        sure = "" if each else "as many as if every rank had printed it; "
        notes["duplicates"] = f"{sure}{total} matches are {total // ranks} of each of {ranks} ranks"
    elif each:
        notes["warning"] = f"{total} matches do not divide evenly among {ranks} ranks"


def _compare(notes: dict[str, Any], values: Sequence[float], taken: float) -> None:
    """Note where ranks do not agree on what all of them print."""
    low, high = min(values), max(values)
    if high - low > AGREE * abs(taken):
        notes["warning"] = (
            f"{len(values)} ranks disagree: {low:.6g} to {high:.6g}, using {taken:.6g}"
        )


def _mean(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else sum(values) / len(values)


def metrics_of(entries: Iterable[Mapping[str, Any]]) -> list[Metric]:
    """Metrics from their JSON form (``dataclasses.asdict``)."""
    return [Metric(**entry) for entry in entries]
