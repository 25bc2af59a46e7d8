"""``result`` of a benchmark.yaml: ``native``, ``wall_time``, or how what it prints is read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from scalesweep.analysis.metrics import EVERY_KEY, QUANTITIES
from scalesweep.compute.external_program import WALL_TIME, WALL_TIME_MEANS
from scalesweep.compute.job_spec import STREAMS, Patterns, StampsOrder
from scalesweep.compute.log_metrics import (
    Metric,
    digest_of_metrics,
    value_group,
)
from scalesweep.compute.log_reader import Reader
from scalesweep.compute.log_values import Value
from scalesweep.compute.native_format import Meaning
from scalesweep.compute.stamp_metrics import MEANINGS, digest_of_stamps
from scalesweep.config.log_readers import find_reader
from scalesweep.config.reserved_names import check_metrics
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.record import OF_STEPS, STEP_TIMES

# Names with a meaning of their own: arrays of native programs, and quantities made from them.
RESERVED = frozenset(("local_times", "global_times", "span_wait", *QUANTITIES))
_OF_STAMPS = "samples_per_second"
# What stamps give, for the report.
STAMP_METRICS = {
    "samples_per_second": "samples of all ranks in the steps after the warm-up / time of these "
    "steps and between them, on the rank that takes longest",
    "tokens_per_second": "tokens of all ranks in the steps after the warm-up / time of these "
    "steps and between them, on the rank that takes longest",
    "step_times": "seconds of a step after the warm-up, mean over steps and ranks",
    "peak_rss": "resident memory of a rank at its most, mean over ranks",
    "peak_memory_allocated": "memory that a rank's tensors take at their most, mean over ranks",
    "peak_memory_reserved": "memory that a rank's allocator holds at its most, mean over ranks",
}
# What the seconds of each step and rank have to be read with.
_AS_STEPS = {"match": "all", "scope": "rank", "unit": "s"}


@dataclass(frozen=True)
class Extract:
    """The metrics of a foreign program, and the digest of what they are read with. Without metrics
    and stamps it is its wall time that is measured.

    ``kinds`` of those that state it (``analysis.metrics.kind_of``): they change no number.
    ``stamps``: how the stamps of its steps are read; None where it prints none.
    """

    metrics: tuple[Metric, ...]
    digest: str
    kinds: Mapping[str, str] = field(default_factory=dict)
    stamps: StampsOrder | None = None
    reader: Reader | None = None

    @property
    def wall_time(self) -> bool:
        """Whether the wall time is all that is measured."""
        return not self.metrics and self.stamps is None and self.reader is None

    @property
    def order(self) -> Patterns:
        """How the launcher is to read the logs."""
        order: Patterns = {"metrics": [asdict(it) for it in self.metrics], "digest": self.digest}
        if self.stamps is not None:
            order["stamps"] = self.stamps
        if self.reader is not None:
            order["reader"] = self.reader.declared
        return order

    @property
    def definitions(self) -> dict[str, str]:
        """What metrics mean that no benchmark.yaml needs to define."""
        stamped = STAMP_METRICS if self.stamps else {}
        return {**stamped, **{name: it.definition for name, it in self._read.items()}}

    @property
    def _read(self) -> Mapping[str, Value]:
        return self.reader.metrics if self.reader else {}

    def names(self, metric: str) -> bool:
        """Whether a record may have a metric of this name."""
        if self.wall_time:
            return metric == WALL_TIME
        if metric in self._read:
            return True
        if self.stamps is not None and metric.startswith((*MEANINGS, "span_")):
            return True
        return any(
            metric.startswith(f"{entry.metric}_") if keyed(entry) else metric == entry.metric
            for entry in self.metrics
        )

    def meaning_of(self, metric: str) -> Meaning | None:
        """Unit, direction and scope of a metric; None where only its runs can say."""
        if self.wall_time:
            return WALL_TIME_MEANS if metric == WALL_TIME else None
        if it := self._read.get(metric):
            return {"unit": it.unit, "better": it.better, "scope": it.scope}
        if self.stamps is not None and metric in MEANINGS:
            return MEANINGS[metric]
        return next(
            (
                entry.meaning
                for entry in self.metrics
                if (
                    metric.startswith(f"{entry.metric}_")
                    if keyed(entry)
                    else metric == entry.metric
                )
            ),
            None,
        )

    @property
    def main_metric(self) -> str | None:
        """That of the reader, else the first metric that has one value, without any the rate of
        stamps; None if there is none."""
        if self.reader is not None:
            return self.reader.main
        usual = WALL_TIME if self.wall_time else None if self.stamps is None else _OF_STAMPS
        return next((entry.metric for entry in self.metrics if not keyed(entry)), usual)

    @property
    def allowed(self) -> list[str]:
        """The metrics by name, ``_<key>`` behind those that have a value for each key."""
        if self.wall_time:
            return [WALL_TIME]
        patterns = [m.metric + ("_<key>" if keyed(m) else "") for m in self.metrics]
        return [*self._read, *patterns, *(MEANINGS if self.stamps is not None else ())]


def keyed(metric: Metric) -> bool:
    """Whether a metric has a value for each key."""
    return "key" in re.compile(metric.pattern).groupindex


def load_extract(result: Any, path: Path) -> Extract | None:
    """The patterns of ``result`` after a look at each; None for ``native``.

    Raises UserError naming file, key and what is wrong.
    """
    if result == "native":
        return None
    if result == WALL_TIME:
        return Extract((), digest_of_metrics(()))
    metrics: list[Metric] = []
    kinds: dict[str, str] = {}
    for index, entry in enumerate(result.get("extract", ())):
        metric = _metric(entry, f"{path}: result.extract[{index}]")
        if metric.metric in [other.metric for other in metrics]:
            raise UserError(f"{path}: result.extract[{index}]: two metrics {metric.metric!r}")
        metrics.append(metric)
        if "kind" in entry:
            kinds[metric.metric + (EVERY_KEY if keyed(metric) else "")] = entry["kind"]
    _check_steps(metrics, path)
    check_metrics([metric.metric for metric in metrics], path, "result.extract")
    digest, stamps = digest_of_metrics(metrics), None
    if "stamps" in result:
        stamps = _stamps(result["stamps"], f"{path}: result.stamps")
        _check_apart(metrics, path)
        digest = digest_of_stamps(stamps, digest)
    if "reader" not in result:
        return Extract(tuple(metrics), digest, kinds, stamps)
    reader = find_reader(result["reader"], path.parent, f"{path}: result.reader")
    for index, metric in enumerate(metrics):
        if metric.metric in reader.metrics:
            raise UserError(f"{path}: result.extract[{index}].metric: the reader gives it")
    return Extract(tuple(metrics), digest_of([digest, reader.declared]), kinds, stamps, reader)


def _stamps(content: Any, where: str) -> StampsOrder:
    """How stamps are read; raises UserError for a place that none can be read from."""
    given: Mapping[str, Any] = {"from": content} if isinstance(content, str) else content
    source = given["from"].removeprefix("{out}/")
    _check_source(source, f"{where}.from", "")
    warmup = given.get("warmup", 0)
    return {"source": source, "warmup": int(warmup), "meet": given.get("meet")}


def _check_apart(metrics: Sequence[Metric], path: Path) -> None:
    """Raise UserError for a pattern that gives what stamps give."""
    for index, metric in enumerate(metrics):
        if metric.metric in MEANINGS or _of_steps(metric):
            raise UserError(
                f"{path}: result.extract[{index}].metric: the stamps give {metric.metric!r}; "
                "choose another name, or leave out result.stamps"
            )


def _metric(entry: Mapping[str, Any], where: str) -> Metric:
    name, source = entry["metric"], entry.get("from", "stdout")
    if name in RESERVED:
        raise UserError(f"{where}.metric: {name!r} is reserved by scalesweep; choose another name")
    try:
        value_group(re.compile(entry["pattern"]))
    except (re.error, OverflowError, RecursionError) as error:
        shown = f"{where}.pattern: '{entry['pattern']}' of {name} is not a regular expression"
        raise UserError(f"{shown} ({error})") from None
    except ValueError as error:
        raise UserError(f"{where}.pattern: '{entry['pattern']}' of {name} {error}") from None
    _check_source(source, f"{where}.from", f" of {name}")
    return Metric(
        **{key: value for key, value in entry.items() if key not in ("from", "kind")},
        source=source,
    )


def _check_source(source: str, where: str, of: str) -> None:
    """Raise UserError for a place that is no stream and no file in the attempt's folder."""
    parts = PurePosixPath(source).parts
    if source not in STREAMS and (source.startswith(("/", "~")) or ".." in parts or not parts):
        raise UserError(
            f"{where}: {source!r}{of}; allowed: {', '.join(STREAMS)}, or the path of a "
            "file in {out}, without '..'"
        )
    if source in (suspects := {file: stream for stream, file in STREAMS.items()}):
        raise UserError(f"{where}: {source!r}{of}: write {suspects[source]}")


def _of_steps(metric: Metric) -> frozenset[str]:
    """The arrays of steps that an entry may leave."""
    if not keyed(metric):
        return OF_STEPS & {metric.metric}
    return frozenset(name for name in OF_STEPS if name.startswith(f"{metric.metric}_"))


def _check_steps(metrics: Sequence[Metric], path: Path) -> None:
    """Raise UserError where seconds of steps would not be known as that: arrays [step, rank]."""
    known: set[str] = set().union(*map(_of_steps, metrics))
    for index, metric in enumerate(metrics):
        of_steps = sorted(_of_steps(metric))
        where = f"{path}: result.extract[{index}].metric: {metric.metric!r}"
        if of_steps and any(getattr(metric, key) != word for key, word in _AS_STEPS.items()):
            needed = ", ".join(f"{key}: {word}" for key, word in _AS_STEPS.items())
            raise UserError(
                f"{where}: {of_steps[0]} is the seconds of each step and rank: it needs {needed}; "
                "or choose another name"
            )
        if of_steps and STEP_TIMES not in known:
            raise UserError(f"{where}: spans are parts of steps: {STEP_TIMES} is needed beside it")


def check_main_metric(extract: Extract | None, named: str | None, path: Path) -> str | None:
    """The main metric: the one named, or the first; raises UserError for one that is not there."""
    if extract is None:
        return named
    if named is not None and not extract.names(named):
        allowed = ", ".join(extract.allowed)
        raise UserError(f"{path}: main_metric: {named!r} is not one of {allowed}")
    return named or extract.main_metric
