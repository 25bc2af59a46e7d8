"""What every importer reads and yields: files, runs in terms of our benchmarks, refusals."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.files import natural_order
from scalesweep.core.formatting import finite
from scalesweep.core.record import LAST_MODIFIED, MEASURED_COMMIT
from scalesweep.core.visible import visible
from scalesweep.importers.made_benchmark import Made, declared

# What becomes of what is not imported: a run that is there already loses nothing.
REFUSED, COPY, NOT_READ = "refused", "copy", "not read"
# Entries of ``variant``: the kind of GPU, and the commit that was measured.
GPU, COMMIT = "GPU", "commit"
FILE_DATES = f"started and ended are the time the source was {LAST_MODIFIED}"


class ImportRefusedError(UserError):
    """Why a run in a log, or a profile, is not imported, and the line that shows it."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Refusal:
    """A file (or folder), or what begins at one of its lines, that was not imported, and why;
    ``what``: refused, a copy, or of no known kind (not read)."""

    file: Path
    reason: str
    line: int | None = None
    # What it would have been a run of; empty where that is not known.
    benchmark: str = ""
    what: str = REFUSED

    @property
    def message(self) -> str:
        """The refusal in one line."""
        line = "" if self.line is None else f":{self.line}"
        return f"{visible(str(self.file))}{line}: {self.reason}"


def not_read(file: Path) -> Refusal:
    """A file that is of no known kind."""
    return Refusal(file, "no log of a known kind", what=NOT_READ)


def metric(value: float, unit: str, better: str, scope: str = "total") -> dict[str, Any]:
    """A metric as in a record."""
    return {"value": value, "unit": unit, "better": better, "scope": scope}


def declared_metrics(name: str, values: Mapping[str, float | None]) -> dict[str, dict[str, Any]]:
    """Metrics as ``resources/imported`` declares them, without those that have no finite value."""
    return {
        key: metric(value, it["unit"], it["better"], it.get("scope", "total"))
        for key, it in declared(name)["metrics"].items()
        if finite(value := values.get(key))
    }


@dataclass(frozen=True)
class MeasuredCommit:
    """The commit that a source was measured of, and its repository."""

    commit: str
    repository: str

    def noted(self, run: "ImportedRun") -> "ImportedRun":
        """A run with this commit, which sets it apart from runs of others."""
        variant = {**run.variant, COMMIT: self.commit[:10]}
        return replace(run, variant=variant, notes={**run.notes, MEASURED_COMMIT: asdict(self)})


@dataclass(frozen=True)
class ImportedRun:
    """A run that another program measured.

    ``point`` has the parameters that the source states. ``source_digest`` is of what the run was
    read from: equal digests are the same run. ``started`` and ``ended`` are the age of the file
    where it has no dates. ``samples_per_epoch`` is None where the benchmark's own ``work`` tells
    it, 0 where nothing does. ``variant`` is what sets runs of one point apart without being a
    parameter (the GPU, a flag): runs that differ in it are never repeats. ``metrics``, ``phases``,
    ``parts``, ``functions``, ``phase_spans`` and ``notes`` are as in a record. ``unfinished`` says
    why a run that was cut, aborted or failed has no result, ``failed`` is the cause of one that
    failed; both are empty for all others. ``made`` is what its benchmark is, where the importer
    makes it.
    """

    benchmark: str
    point: Mapping[str, Any]
    file: Path
    source_digest: str
    started: datetime | None = None
    ended: datetime | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Floats] = field(default_factory=dict)
    line: int | None = None
    samples_per_epoch: int | None = 0
    variant: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    phase_spans: Sequence[tuple[str, float, float]] = ()
    command: tuple[str, ...] = ()
    unfinished: str = ""
    failed: str = ""
    made: Made | None = None


# What a reader yields, in the order of its source.
Item = ImportedRun | Refusal


def files_below(path: Path, refusals: list[Refusal]) -> list[Path]:
    """A file, or all files below a folder in the natural order of their names.

    Links to folders and hidden files are not followed. Folders that cannot be read are added to
    ``refusals``.
    """
    if not path.is_dir():
        return [path]

    def unreadable(error: OSError) -> None:
        refusals.append(Refusal(Path(error.filename), error.strerror or "cannot be read"))

    paths = []
    for root, folders, files in os.walk(path, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(root, name) for name in files if not name.startswith(".")]
    return sorted(paths, key=natural_order)
