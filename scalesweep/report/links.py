"""Addresses in the report: of files, and of the evidence of findings."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scalesweep.aspects.find import rules
from scalesweep.findings.base import Finding, figure_of

# The table on the page that shows the rows of a table of the results.
_SHOWN_IN = {
    "points": "points",
    "scaling": "points",
    "runs": "runs",
    "accuracy": "accuracy",
    "phases": "phases",
}


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


@dataclass(frozen=True)
class Target:
    """Where evidence is: an address, and of rows the table they are in with the values to show."""

    text: str
    href: str
    rows: str = ""
    key: str = ""


@dataclass(frozen=True)
class Anchors:
    """What an experiment's section has to link to: figures by name, with what each shows, tables by
    name, CSV files."""

    section: str
    tables: frozenset[str]
    figures: Mapping[str, str]
    shows: Mapping[str, Mapping[str, Any]]
    csv: Mapping[str, str]


def figure_id(section: str, name: str) -> str:
    """Id of a figure on the page."""
    return f"{section}-{re.sub(r'[^A-Za-z0-9-]', '-', name)}"


def anchors(
    section: str,
    tables: Iterable[str],
    figures: Sequence[Mapping[str, Any]],
    csv: Sequence[tuple[str, str]],
) -> Anchors:
    """Of a section of the page: its tables' names, its figures, and (name, address) of its CSV."""
    return Anchors(
        section,
        frozenset(tables),
        {figure["name"]: figure["id"] for figure in figures},
        {figure["name"]: figure["shows"] for figure in figures},
        {name.removesuffix(".csv"): href for name, href in csv},
    )


def evidence_links(finding: Finding, there: Anchors) -> list[Target]:
    """Links from a finding to its figure and to its rows, those that there are."""
    evidence = finding.evidence
    targets = []
    figure = there.figures.get(str(figure_of(finding, there.shows, rules()[finding.rule].figures)))
    if figure is not None:
        targets.append(Target("figure", f"#{figure}"))
    table = str(evidence.get("table"))
    name = f"{there.section}-{_SHOWN_IN.get(table)}"
    if name in there.tables:
        key = evidence.get("key") or {}
        single = {k: v for k, v in key.items() if not isinstance(v, list | dict)}
        targets.append(Target("rows", f"#{name}", name, json.dumps(single)))
    elif table in there.csv:
        targets.append(Target(f"{table}.csv", there.csv[table]))
    return targets
