"""Small result files: histories of Keras's and rates of Lightning's CSVLogger, what Hugging Face's
Trainer leaves, DLIO's summaries. ``resources/imported`` declares program, parameters and
metrics of each; ``result_csv`` and ``result_json`` read them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import PACKED, Line
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Refusal,
    declared_metrics,
    shown,
)
from scalesweep.importers.made_benchmark import declared, made_of
from scalesweep.importers.write_campaign import plain_name

Lines = Callable[[], Iterable[Line]]
# Folders whose names say nothing of the training.
_INNER = re.compile(
    r"checkpoint-\d{1,9}|trainer_output|output|results?|version_\d{1,6}|lightning_logs|csv(?:_logs)?"
    r"|logs?"
)
_UNKNOWN = "one, as none are named (--ranks N)"


@dataclass
class Result:
    """What a file, or a training in it, states."""

    values: dict[str, float | None] = field(default_factory=dict)  # by metric
    point: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, Floats] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    evidence: Any = None
    line: int | None = None
    span: tuple[datetime, datetime] | None = None
    unfinished: str = ""
    per_rank: tuple[str, ...] = ()  # metrics of all ranks whose values are of one


@dataclass(frozen=True)
class Kind:
    """A kind of result file: the sign of its lines, how it is called, and what reads it."""

    benchmark: str
    sign: re.Pattern[str]
    read: Callable[[Lines, Path], Iterator[Result]]
    called: Callable[[Path], bool] = lambda _: True

    def runs(self, lines: Lines, file: Path, ranks: int | None) -> Iterator[ImportedRun | Refusal]:
        """The runs of a file, or why it has none."""
        try:
            yield from (_run(self.benchmark, it, file, ranks) for it in self.read(lines, file))
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line, self.benchmark)

    def reader(self, ranks: int | None) -> Callable[[Lines, Path], Iterator[ImportedRun | Refusal]]:
        """What reads such files; ``ranks`` of those that state none."""
        return partial(self.runs, ranks=ranks)


def _run(benchmark: str, result: Result, file: Path, ranks: int | None) -> ImportedRun:
    """The run of a result; of ``ranks``, or of one if neither they nor the file say it."""
    stated = result.point.pop("ranks", None)
    origin = result.notes.pop("ranks", "the file") if stated else "--ranks" if ranks else _UNKNOWN
    count = stated or ranks or 1
    values = {
        name: value * (count if name in result.per_rank else 1)
        for name, value in result.values.items()
        if value is not None
    }
    dates = "as the file has them, without a time zone: taken for UTC"
    return ImportedRun(
        benchmark=benchmark,
        made=made_of(declared(benchmark)),
        point={"ranks": count, **result.point},
        variant={} if stated or ranks else {"ranks": "not stated"},
        file=file,
        line=result.line,
        source_digest=digest_of([benchmark, repr(result.evidence)]),
        started=result.span[0] if result.span else None,
        ended=max(result.span) if result.span else None,
        samples=result.samples,
        metrics=declared_metrics(benchmark, values),
        notes={
            "importer": declared(benchmark)["program"],
            "assumed": {"ranks": origin},
            **({"dates": dates} if result.span else {}),
            **result.notes,
        },
        unfinished=result.unfinished,
    )


def file_name(file: Path) -> str:
    """A file's name without the ending of gzip or xz."""
    return re.sub("|".join(rf"{re.escape(end)}$" for end in PACKED), "", file.name)


def folder_name(file: Path) -> str | None:
    """The nearest folder whose name says something of the training, without a repeat's number."""
    names = (folder.name for folder in file.absolute().parents)
    name = next((name for name in names if name and not _INNER.fullmatch(name)), "")
    return plain_name(shown(name))[:100] or None
