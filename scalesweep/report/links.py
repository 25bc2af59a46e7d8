"""Addresses in the report: of files, and of the evidence of findings."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scalesweep.aspects.find import rules
from scalesweep.core.formatting import text_of
from scalesweep.experiment.cells import Target
from scalesweep.findings.base import Finding, figure_of


class Links:
    """Relative addresses from the page to files."""

    def __init__(self, out: Path) -> None:
        self._base = str(out.parent.resolve())
        self._folders: dict[Path, str] = {}

    def to(self, path: Path) -> str:
        """Relative address of ``path``, percent-encoded."""
        folder = self._folders.get(path.parent)
        if folder is None:
            folder = quote(os.path.relpath(path.parent.resolve(), self._base))
            self._folders[path.parent] = folder
        # "./" keeps a name with a colon from being read as a scheme.
        return f"./{quote(path.name)}" if folder == "." else f"./{folder}/{quote(path.name)}"


def figure_id(section: str, name: str) -> str:
    """Id of a figure on the page."""
    return f"{section}-{re.sub(r'[^A-Za-z0-9-]', '-', name)}"


def evidence_links(
    finding: Finding,
    section: str,
    tables: Collection[str],
    figures: Sequence[Mapping[str, Any]],
    csv: Mapping[str, str],
) -> list[Target]:
    """Links from a finding of a ``section`` of the page to its figure and to its rows, those that
    there are: ids of ``tables``, figures, and addresses of CSV files by name."""
    evidence = finding.evidence
    targets = []
    shows = {figure["name"]: figure["shows"] for figure in figures}
    if (figure := figure_of(finding, shows, rules()[finding.rule].figures)) is not None:
        targets.append(Target("figure", f"#{figure_id(section, figure)}"))
    table = str(evidence.get("table"))
    name = f"{section}-{'points' if table == 'scaling' else table}"
    if name in tables:
        key = evidence.get("key") or {}
        single = {k: text_of(v) for k, v in key.items() if not isinstance(v, list | dict)}
        targets.append(Target("rows", f"#{name}", name, single))
    elif table in csv:
        targets.append(Target(f"{table}.csv", csv[table]))
    return targets
