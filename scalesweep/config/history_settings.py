"""The keys ``history`` and ``track`` of a campaign: where its sessions are kept, and how judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scalesweep.config.percent import read_percent

MARGIN = 0.03


@dataclass(frozen=True)
class Track:
    """What is measured: its ``repository`` (None: as the records say), and the lines of shell that
    ``build`` a checkout of it, empty where nothing is built."""

    repository: Path | None = None
    build: tuple[str, ...] = ()


@dataclass(frozen=True)
class HistorySettings:
    """Where a campaign's finished points are kept, and how later ones are judged against them.

    ``margin``: the relative change that matters, ``margins``: another one of some metrics;
    ``baseline``: commit or tag that counts as 1.0, empty: the last stable level of each point;
    ``repository``: what the measured program is in, None: as the records say.
    """

    folder: Path
    margin: float = MARGIN
    margins: Mapping[str, float] = field(default_factory=dict)
    baseline: str = ""
    repository: Path | None = None

    def margin_of(self, metric: str) -> float:
        """The relative change of a metric that matters."""
        return self.margins.get(metric, self.margin)


def read_history(
    content: Mapping[str, Any],
    where: str,
    folder: str | None = None,
    baseline: str | None = None,
) -> HistorySettings | None:
    """The settings in the content of a campaign file, which ``folder`` and ``baseline`` override.

    None where neither names a folder. Raises UserError for a margin out of range.
    """
    spec = content.get("history")
    spec = {"folder": spec} if isinstance(spec, str) else dict(spec or {})
    if folder is None and "folder" not in spec:
        return None
    settings = HistorySettings(
        Path(folder or spec["folder"]).expanduser(),
        read_percent(spec["margin"], f"{where}.margin") if "margin" in spec else MARGIN,
        {
            metric: read_percent(margin, f"{where}.margins.{metric}")
            for metric, margin in spec.get("margins", {}).items()
        },
        spec.get("baseline", ""),
        read_track(content).repository,
    )
    return settings if baseline is None else replace(settings, baseline=baseline)


def read_track(content: Mapping[str, Any]) -> Track:
    """The key ``track`` in the content of a campaign file."""
    spec = content.get("track", {})
    repository = spec.get("repository")
    return Track(
        Path(repository).expanduser() if repository else None, tuple(spec.get("build", ()))
    )
