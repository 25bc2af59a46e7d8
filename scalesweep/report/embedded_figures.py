"""Figures on the page: embedded as SVG while there is room for them, else linked."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from scalesweep.core.errors import UserError
from scalesweep.report.links import Links, figure_id


def read_index(figures: Path) -> list[dict[str, Any]]:
    """The index of all figures in a folder. Raises UserError if they were not drawn."""
    path = figures / "index.json"
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise UserError(f"{path}: no index of figures; draw the figures first") from None
    return content if isinstance(content, list) else []


def embedded_figures(
    index: Sequence[Mapping[str, Any]],
    name: str,
    section: str,
    figures: Path,
    links: Links,
    budget: dict[str, int],
) -> list[dict[str, Any]]:
    """Figures of an experiment, embedded while the page's budget lasts, else linked only."""
    embedded = []
    for entry in index:
        if entry["experiment"] != name:
            continue
        svg = None
        if "missing" not in entry:
            path = figures / entry["files"]["svg"]
            svg = path.read_text("utf-8") if path.stat().st_size <= budget["svg"] else None
        if svg is not None:
            budget["svg"] -= len(svg)
        box = (svg or "").partition('viewBox="')[2].partition('"')[0].split()
        embedded.append(
            {
                "id": figure_id(section, entry["name"]),
                "name": entry["name"],
                "title": entry["title"],
                "caption": entry["caption"],
                "missing": "missing" in entry,
                "shows": entry["shows"],
                # Written by scalesweep.figures, which serialises every label as XML text.
                "svg": None if svg is None else Markup(svg),
                "wide": len(box) == 4 and float(box[2]) > 450,
                "files": {
                    kind: links.to(figures / file) for kind, file in sorted(entry["files"].items())
                },
            }
        )
    return embedded
