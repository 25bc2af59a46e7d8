"""What the parts of a page are made of, and addresses in it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scalesweep.core.plan_format import Plan
from scalesweep.tables.provenance import Environment, RunFacts

Links = Callable[[Path], str]
MAX_SVG_BYTES = 3_000_000


def links_from(out: Path) -> Links:
    """Relative addresses of files on the page ``out``, percent-encoded; "./" keeps a name with a
    colon from being read as a scheme."""
    return lambda path: f"./{quote(os.path.relpath(path, out.parent.absolute()))}"


@dataclass
class PageInputs:
    """Folders of ``tables``, ``figures`` and ``runs``; ``count`` experiments share the page's room,
    ``svg`` bytes of figures one after the other."""

    plan: Plan
    count: int
    tables: Path
    figures: Path
    runs: Path
    links: Links
    facts: Mapping[str, RunFacts]
    environments: Sequence[Environment]
    charts: dict[str, Any] = field(default_factory=dict)
    svg: int = MAX_SVG_BYTES
