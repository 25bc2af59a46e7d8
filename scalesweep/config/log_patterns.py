"""``result`` of a benchmark.yaml: ``native``, ``wall_time``, or how what it prints is read."""

import re
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr

from scalesweep.analysis.metrics import EVERY_KEY, QUANTITIES
from scalesweep.compute.external_program import WALL_TIME, WALL_TIME_MEANS
from scalesweep.compute.job_spec import Meaning, Patterns
from scalesweep.compute.log_metrics import READER, value_group
from scalesweep.compute.log_reader import Reader, Value, reader_of
from scalesweep.compute.stamps import STAMPED
from scalesweep.config.models import FILLED, Flag, Model, Name, Pattern, Text, Whole, matching
from scalesweep.config.parameter import check_metrics
from scalesweep.config.study import named_file
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.paths import RESOURCES
from scalesweep.core.record import OF_STEPS

Kind = Literal["extensive", "intensive", "latency"]
_READERS = RESOURCES / "readers"
# Names of arrays of native programs and of stamps, and of quantities made from them.
RESERVED = frozenset(("local_times", "global_times", "span", "span_wait", *OF_STEPS, *QUANTITIES))


_MATCHES = "one of first, last, mean, median, all, or a percentile, p1 to p99"
_SOURCES = "stdout, stderr or the path of a file in {out}, without '..'"
_Source = Annotated[str, matching(r"(?![/~])(?!.*\.\.).+", _SOURCES)]


class ExtractedMetric(Model):
    """A metric that is extracted."""

    metric: Name
    """its name"""
    pattern: Annotated[Pattern, AfterValidator(lambda it: value_group(re.compile(it)) and it)]
    """regular expression for a line: the group `value`, or the only group, is the number; a group
    `key` makes a metric `<metric>_<key>` for each key; a group `rank` says who printed it"""
    unit: Text
    """`"1"` for a plain number"""
    better: Literal["higher", "lower"]
    """which direction is better"""
    scope: Literal["rank", "total"]
    """`rank`: what each rank has, of which the mean is taken; `total`: what all have together"""
    kind: Kind | None = None
    """as of a metric above; default: by unit and name"""
    match: Annotated[str, matching("first|last|mean|median|all|p[1-9][0-9]?", _MATCHES)] = "last"
    """which counts: `first`, `last`, `mean`, `median`, a percentile (`p1` to `p99`), or `all`:
    their mean, with each of them in `samples.npz`"""
    skip: Annotated[Whole, Field(ge=0)] = 0
    """matches of each rank that are left out first, of steps that compile or warm up"""
    source: _Source = Field("stdout", alias="from")
    """or `stderr`, or a file in `{out}`; as many files (`logs/*.txt`) as ranks: one of each"""
    printed_by: Literal["rank_0", "every_rank", "unknown"] = "unknown"
    """where no labels identify the rank"""
    optional: Flag = False
    """whether it may be missing"""

    @property
    def name(self) -> str:
        """Its name in records; with a value for each key, their pattern (``EVERY_KEY``)."""
        keyed = "key" in re.compile(self.pattern).groupindex
        return self.metric + EVERY_KEY if keyed else self.metric

    @property
    def meaning(self) -> Meaning:
        """Unit, direction and scope, as a record has them."""
        return {"unit": self.unit, "better": self.better, "scope": self.scope}


class Result(Model):
    """How what a program prints is read."""

    FORM: ClassVar[str] = "native, wall_time, or a map of reader, stamps and extract"
    SOME: ClassVar[str] = FORM
    reader: Text | None = None
    """a shipped [reader](../guide/training_logs.md) (`torchtitan`) of its log, or a file beside
    benchmark.yaml (`my_trainer.yaml`)"""
    stamps: _Source | None = None
    """where it prints [stamps](stamps.md) of its steps: `stdout`, `stderr`, or files in `{out}`"""
    warmup: Annotated[Whole, Field(ge=0)] = 0
    """steps that stamps leave out first, beside those that the program marks"""
    metrics: Annotated[tuple[ExtractedMetric, ...], FILLED] = Field((), alias="extract")
    """patterns for what it prints"""

    _read_by: Reader | None = PrivateAttr(None)

    def settle(self, path: Path) -> Self:
        """Find the reader of a benchmark's file, and check the metrics. Raises UserError."""
        where, names = f"{path}: result", [entry.metric for entry in self.metrics]
        if self.reader:
            file = path.parent / self.reader
            if file.suffix != ".yaml":
                shipped = _READERS.glob("*.yaml")
                file = named_file("reader", self.reader, shipped, f"{where}.reader")
            self._read_by = load_reader(file)
        if self.warmup and not self.stamps:
            raise UserError(f"{where}.warmup: steps that stamps leave out; add stamps")
        for place, name in enumerate(names):
            if name in RESERVED:
                raise UserError(f"{where}.extract[{place}]: {name!r} is reserved by scalesweep")
            if name in names[:place] or name in self.given:
                raise UserError(f"{where}.extract[{place}]: two metrics {name!r}")
        check_metrics(names, f"{where}.extract")
        return self

    @cached_property
    def order(self) -> Patterns:
        """How the launcher is to read the logs; kinds change no number."""
        metrics = [entry.model_dump(exclude={"kind"}) for entry in self.metrics]
        order: Patterns = {"metrics": metrics, "digest": ""}
        if self.stamps:
            order["stamps"] = {"source": self.stamps, "warmup": self.warmup}
        if self._read_by:
            order["reader"] = self._read_by.declared
        return {**order, "digest": digest_of([READER, order], 8)}

    @property
    def given(self) -> dict[str, Value]:
        """What stamps and the reader may give, by name, which no benchmark.yaml needs to define."""
        read_by = self._read_by.metrics if self._read_by else {}
        return {**(STAMPED if self.stamps else {}), **read_by}

    @property
    def known(self) -> dict[str, Meaning]:
        """What each metric means, by its name or the pattern of its names."""
        if not (self.reader or self.stamps or self.metrics):
            return {WALL_TIME: WALL_TIME_MEANS}
        spans: Meaning = {"unit": "s", "better": "lower", "scope": "rank"}
        return {
            **{name: it.meaning for name, it in self.given.items()},
            **({"span" + EVERY_KEY: spans} if self.stamps else {}),
            **{entry.name: entry.meaning for entry in self.metrics},
        }

    def meaning_of(self, metric: str) -> Meaning | None:
        """Unit, direction and scope of a metric; None where no record has it."""
        return next((of for name, of in self.known.items() if fnmatchcase(metric, name)), None)

    @property
    def main_metric(self) -> str | None:
        """That of the reader, else the first with one value, else of stamps or the wall time."""
        if self._read_by:
            return self._read_by.main
        plain = [entry.metric for entry in self.metrics if entry.name == entry.metric]
        usual = [it for it in ("samples_per_second", WALL_TIME) if it in self.known]
        return next(iter((*plain, *usual)), None)


@cache
def shipped_readers() -> dict[str, Reader]:
    """The readers that come with scalesweep, by the names of their files."""
    return {path.stem: load_reader(path) for path in sorted(_READERS.glob("*.yaml"))}


def load_reader(path: Path) -> Reader:
    """The reader in a file; its benchmark has the file's name. Raises UserError."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    content = load_yaml(path)
    try:
        return reader_of(content, path.stem, str(path))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: a value is of no kind that fits its key ({error})") from None
