"""The keys ``history`` and ``track`` of a campaign: where its sessions are kept, and how judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scalesweep.config.campaign_keys import CampaignKeys

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


def history_of(
    keys: CampaignKeys, folder: str | None = None, baseline: str | None = None
) -> HistorySettings | None:
    """The settings of a campaign file, which ``folder`` and ``baseline`` override; None where
    neither names a folder."""
    said = keys.history.model_dump() if keys.history else {}
    said |= {key: of for key, of in (("folder", folder), ("baseline", baseline)) if of is not None}
    if "folder" not in said:
        return None
    said["folder"] = Path(said["folder"]).expanduser()
    return HistorySettings(**said, repository=track_of(keys).repository)


def track_of(keys: CampaignKeys) -> Track:
    """The measured repository of a campaign file."""
    repository = keys.track.repository
    return Track(Path(repository).expanduser() if repository else None, keys.track.build)
