"""What Snakemake's own report (``snakemake --report``) says of figures.

It reads labels as templates with places in braces and puts them into a script; captions are
reStructuredText. So neither may hold text of a campaign as it is.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.core.visible import visible

_FOR_LABELS = str.maketrans("{}<>", "()‹›")


class FigureTexts:
    """Titles and captions of the figures of an experiment, by its index, read when asked."""

    def __init__(self, figures: str) -> None:
        self._path = Path(figures)

    def __repr__(self) -> str:
        """What Snakemake shows of the rule's parameter."""
        return str(self._path)

    def label(self, experiment: str, name: str) -> str:
        """Title as a label."""
        title = str(self._entry(experiment, name).get("title") or name)
        return visible(" ".join(title.split())).translate(_FOR_LABELS)

    def caption(self, experiment: str, name: str) -> str:
        """Caption as reStructuredText in which nothing is markup."""
        caption = str(self._entry(experiment, name).get("caption") or "")
        return re.sub(r"([^A-Za-z0-9 ])", r"\\\1", visible(" ".join(caption.split())))

    def _entry(self, experiment: str, name: str) -> Mapping[str, Any]:
        try:
            entries = json.loads((self._path / experiment / "index.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return next((entry for entry in entries if entry["name"] == name), {})
