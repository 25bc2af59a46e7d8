"""``result`` of a benchmark.yaml: ``native``, ``wall_time``, or how what it prints is read."""

import re
from dataclasses import asdict
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr

from scalesweep.analysis.metrics import EVERY_KEY, QUANTITIES
from scalesweep.compute.external_program import WALL_TIME, WALL_TIME_MEANS
from scalesweep.compute.job_spec import STREAMS, Meaning, Patterns, StampsOrder
from scalesweep.compute.log_metrics import READER, Metric, value_group
from scalesweep.compute.log_reader import Reader, Value, reader_of
from scalesweep.compute.stamps import STAMPED
from scalesweep.config.models import (
    FILLED,
    Flag,
    Model,
    Name,
    Text,
    Whole,
    checked,
    instead_of,
    is_pattern,
    matching,
)
from scalesweep.config.reserved_names import check_metrics
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import digest_of
from scalesweep.core.paths import RESOURCES
from scalesweep.core.record import OF_STEPS, STEP_TIMES

Kind = Literal["extensive", "intensive", "latency"]
# Names with a meaning of their own: arrays of native programs, and quantities made from them.
RESERVED = frozenset(("local_times", "global_times", "span_wait", *QUANTITIES))
# What the seconds of each step and rank have to be read with.
_AS_STEPS = {"match": "all", "scope": "rank", "unit": "s"}


def _no_source(source: str) -> str | None:
    """What is wrong with a place that is no stream and no file in the attempt's folder."""
    parts = PurePosixPath(source.removeprefix("{out}/")).parts
    if source not in STREAMS and (source.startswith(("/", "~")) or ".." in parts or not parts):
        return (
            f"{source!r} is not one of {', '.join(STREAMS)}, or the path of a file in {{out}}, "
            "without '..'"
        )
    streams = {file: stream for stream, file in STREAMS.items()}
    return f"{source!r}: write {streams[source]}" if source in streams else None


def _no_metric_pattern(pattern: str) -> str | None:
    if fault := is_pattern(pattern):
        return fault
    try:
        value_group(re.compile(pattern))
    except ValueError as error:
        return f"'{pattern}' {error}"
    return None


_Source = Annotated[Text, checked(_no_source)]


class Stamps(Model):
    """How stamps are read."""

    FORM: ClassVar[str] = "stdout, stderr or a file in {out}, or {from: ..., warmup: ...}"
    source: _Source = Field(alias="from")
    """`stdout`, `stderr`, or files in `{out}` (`spans-*.jsonl`)"""
    warmup: Annotated[Whole, Field(ge=0)] = 0
    """steps that are left out first, beside those that the program marks"""

    @property
    def order(self) -> StampsOrder:
        """How the launcher is to read them."""
        return {"source": self.source.removeprefix("{out}/"), "warmup": self.warmup}


class ExtractedMetric(Model):
    """A metric that is extracted."""

    metric: Annotated[
        Name,
        checked(lambda name: f"{name!r} is reserved by scalesweep" if name in RESERVED else None),
    ]
    """its name"""
    pattern: Annotated[Text, checked(_no_metric_pattern)]
    """Python's regular expression, searched in one line at a time. The number is the group `value`,
    or the only group; a group `key` makes a metric `<metric>_<key>` for each key; a group `rank`
    says which rank printed it"""
    unit: Text
    """`"1"` for a plain number"""
    better: Literal["higher", "lower"]
    """which direction is better"""
    scope: Literal["rank", "total"]
    """`rank`: what one rank has (the mean over ranks is taken); `total`: what all ranks have
    together"""
    kind: Kind | None = None
    """as of a metric above; default: by unit and name"""
    match: Annotated[
        str,
        matching(
            "(first|last|mean|median|all|p[1-9][0-9]?)",
            "one of first, last, mean, median, all, or a percentile, p1 to p99",
        ),
    ] = "last"
    """which match counts: `first`, `last`, `mean`, `median`, a percentile (`p1` to `p99`), or
    `all`: their mean, and each of them in `samples.npz`"""
    skip: Annotated[Whole, Field(ge=0)] = 0
    """matches of each rank that are left out first, of steps that compile or warm up"""
    source: _Source = Field("stdout", alias="from")
    """or `stderr`, or a file in `{out}` (`logs/*.txt` is allowed; as many files as ranks are one of
    each rank)"""
    printed_by: Literal["rank_0", "every_rank"] | None = None
    """where no labels identify the rank"""
    optional: Flag = False
    """whether it may be missing"""

    @property
    def read(self) -> Metric:
        """How the launcher is to read it."""
        keys = self.model_dump(exclude={"kind"})
        return Metric(**{**keys, "printed_by": self.printed_by or "unknown"})


class Result(Model):
    """How what a program prints is read."""

    FORM: ClassVar[str] = (
        "native, wall_time, or {reader: ...}, {stamps: ...}, {extract: [metric, ...]}"
    )
    SOME: ClassVar[str] = "reader, stamps or extract"
    reader: Text | None = None
    """how its log is read: a shipped reader (`torchtitan`), or a file beside benchmark.yaml
    (`my_trainer.yaml`)"""
    stamps: Annotated[Stamps, instead_of("from", str)] | None = None
    """the program prints [stamps](stamps.md) of its steps: `{from, warmup}`, or a text, which
    is `from`"""
    extract: Annotated[tuple[ExtractedMetric, ...], FILLED] | None = None
    """patterns for what it prints"""

    _read_by: Reader | None = PrivateAttr(None)

    def settle(self, path: Path) -> Self:
        """Find the reader, and check the metrics beside each other, of a benchmark's file; raises
        UserError."""
        if self.reader:
            self._read_by = find_reader(self.reader, path.parent, f"{path}: result.reader")
        for place, metric in enumerate(self.metrics):
            if fault := self._fault(metric, place):
                raise UserError(f"{path}: result.extract[{place}]: {fault}")
        check_metrics([metric.metric for metric in self.metrics], path, "result.extract")
        return self

    def _fault(self, metric: Metric, place: int) -> str | None:
        """What is wrong with a metric beside others."""
        name, of_steps = metric.metric, _of_steps(metric)
        if name in [other.metric for other in self.metrics[:place]]:
            return f"two metrics {name!r}"
        if self._read_by and name in self._read_by.metrics:
            return f"the reader gives {name!r}; choose another name"
        if self.stamps and (name in STAMPED or of_steps):
            return f"the stamps give {name!r}; choose another name"
        if of_steps and any(getattr(metric, key) != word for key, word in _AS_STEPS.items()):
            needed = ", ".join(f"{key}: {word}" for key, word in _AS_STEPS.items())
            return (
                f"{name!r}: {min(of_steps)} is the seconds of each step and rank: it needs "
                f"{needed}; or choose another name"
            )
        if of_steps and not any(STEP_TIMES in _of_steps(other) for other in self.metrics):
            return f"{name!r}: spans are parts of steps: {STEP_TIMES} is needed beside it"
        return None

    @property
    def wall_time(self) -> bool:
        """Whether the wall time is all that is measured."""
        return not (self.reader or self.stamps or self.extract)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """What patterns extract, as the launcher is to read it."""
        return tuple(entry.read for entry in self.extract or ())

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of metrics that state it (``analysis.metrics.kind_of``): they change no
        number."""
        entries = zip(self.metrics, self.extract or (), strict=True)
        return {
            metric.metric + (EVERY_KEY if keyed(metric) else ""): str(entry.kind)
            for metric, entry in entries
            if entry.kind
        }

    @property
    def digest(self) -> str:
        """Of what the metrics are read with."""
        return self.order["digest"]

    @cached_property
    def order(self) -> Patterns:
        """How the launcher is to read the logs."""
        order: Patterns = {"metrics": [asdict(it) for it in self.metrics], "digest": ""}
        if self.stamps:
            order["stamps"] = self.stamps.order
        if self._read_by:
            order["reader"] = self._read_by.declared
        return {**order, "digest": digest_of([READER, order], 8)}

    @property
    def definitions(self) -> dict[str, str]:
        """What metrics mean that no benchmark.yaml needs to define."""
        return {name: it.definition for name, it in self._values.items()}

    @property
    def _values(self) -> dict[str, Value]:
        """What stamps and the reader may give, by name."""
        read_by = self._read_by.metrics if self._read_by else {}
        return {**(STAMPED if self.stamps else {}), **read_by}

    @property
    def known(self) -> dict[str, Meaning]:
        """What each metric means; ``_<key>`` is behind the name of those with several keys."""
        if self.wall_time:
            return {WALL_TIME: WALL_TIME_MEANS}
        return {
            **{name: it.meaning for name, it in self._values.items()},
            **{m.metric + ("_<key>" if keyed(m) else ""): m.meaning for m in self.metrics},
        }

    def names(self, metric: str) -> bool:
        """Whether a record may have a metric of this name."""
        stamped = bool(self.stamps) and metric.startswith("span_")
        return stamped or self.meaning_of(metric) is not None

    def meaning_of(self, metric: str) -> Meaning | None:
        """Unit, direction and scope of a metric; None where only its runs can say."""
        for name, meaning in self.known.items():
            stem, key, _ = name.partition("<key>")
            if metric.startswith(stem) if key else metric == name:
                return meaning
        return None

    @property
    def main_metric(self) -> str | None:
        """That of the reader, else the first metric that has one value, without any the rate of
        stamps; None if there is none."""
        if self._read_by:
            return self._read_by.main
        usual = WALL_TIME if self.wall_time else self.stamps and "samples_per_second"
        return next((it.metric for it in self.metrics if not keyed(it)), usual or None)


def keyed(metric: Metric) -> bool:
    """Whether a metric has a value for each key."""
    return "key" in re.compile(metric.pattern).groupindex


def _of_steps(metric: Metric) -> frozenset[str]:
    """The arrays of steps that an entry may leave."""
    if not keyed(metric):
        return OF_STEPS & {metric.metric}
    return frozenset(name for name in OF_STEPS if name.startswith(f"{metric.metric}_"))


@cache
def shipped_readers() -> dict[str, Reader]:
    """The readers that come with scalesweep, by the names of their files."""
    return {path.stem: load_reader(path) for path in sorted((RESOURCES / "readers").glob("*.yaml"))}


def find_reader(named: str, folder: Path, where: str) -> Reader:
    """A shipped reader by its name, or that in a file below ``folder``. Raises UserError."""
    if named.endswith(".yaml"):
        return load_reader(folder / named)
    if named not in shipped_readers():
        raise UserError(f"{where}: {choices(named, shipped_readers())}, or a file NAME.yaml")
    return shipped_readers()[named]


def load_reader(path: Path) -> Reader:
    """The reader in a file; its benchmark has the file's name. Raises UserError."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    content = load_yaml(path)
    try:
        return reader_of(content, path.stem, str(path))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: a value is of another kind than its key needs ({error})"
        ) from None
