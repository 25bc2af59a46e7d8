"""Where a campaign's sessions are kept, and how later ones are judged against them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MARGIN = 0.03


@dataclass(frozen=True)
class HistorySettings:
    """Where a campaign's finished points are kept, and how later ones are judged against them.

    ``margin``: the relative change that matters, ``margins``: another one of some metrics;
    ``baseline``: commit or tag that counts as 1.0, empty: the last stable level of each point.
    """

    folder: Path
    margin: float = MARGIN
    margins: Mapping[str, float] = field(default_factory=dict)
    baseline: str = ""

    def margin_of(self, metric: str) -> float:
        """The relative change of a metric that matters."""
        return self.margins.get(metric, self.margin)
