"""What every importer yields: runs in terms of our benchmarks, and refusals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError

# Entry of ``variant``: the kind of GPU.
GPU = "GPU"


class LogRefused(UserError):
    """Why a run in a log is not imported, and the line that shows it."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Refusal:
    """A file (or folder), or what begins at one of its lines, that was not imported, and why."""

    file: Path
    reason: str
    line: int | None = None

    @property
    def message(self) -> str:
        """The refusal in one line."""
        return f"{_place(self.file, self.line)}: {self.reason}"


def _place(file: Path, line: int | None) -> str:
    return str(file) if line is None else f"{file}:{line}"


@dataclass(frozen=True)
class ImportedRun:
    """A run that another program measured.

    ``point`` has the parameters that the source states. ``source_digest`` is of what the run was
    read from: equal digests are the same run. ``samples_per_epoch`` is None where the benchmark's
    own ``work`` tells it, 0 where nothing does. ``variant`` is what sets runs of one point apart
    without being a parameter (the GPU, a flag): runs that differ in it are never repeats.
    ``metrics``, ``phases``, ``parts``, ``phase_spans``, ``environment`` and ``notes`` are as in a
    record.
    """

    benchmark: str
    point: Mapping[str, Any]
    file: Path
    source_digest: str
    started: datetime
    ended: datetime
    notes: Mapping[str, Any]
    samples: Mapping[str, Floats]
    line: int | None = None
    samples_per_epoch: int | None = None
    variant: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    phase_spans: Sequence[tuple[str, float, float]] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where the run was read: ``file`` or ``file:line``."""
        return _place(self.file, self.line)

    def refused(self, reason: str) -> Refusal:
        """Why this run is not imported."""
        return Refusal(self.file, reason, self.line)
