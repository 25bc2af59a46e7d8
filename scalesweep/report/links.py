"""Addresses in the report: of files, and of the evidence of findings."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import quote

from scalesweep.core.formatting import text_of
from scalesweep.experiment.cells import Target
from scalesweep.findings.base import Finding


class Links:
    """Relative addresses from the page to files."""

    def __init__(self, out: Path) -> None:
        self._base = out.parent.absolute()

    def to(self, path: Path) -> str:
        """Relative address of ``path``, percent-encoded; "./" keeps a name with a colon from being
        read as a scheme."""
        return f"./{quote(os.path.relpath(path, self._base))}"


def figure_id(section: str, name: str) -> str:
    """Id of a figure on the page."""
    return f"{section}-{re.sub(r'[^A-Za-z0-9-]', '-', name)}"


def evidence_links(
    finding: Finding,
    section: str,
    tables: Collection[str],
    csv: Mapping[str, str],
) -> list[Target]:
    """The link from a finding of a ``section`` of the page to its rows, if there is one: in one of
    ``tables`` (ids), else the CSV file (addresses by name)."""
    evidence = finding.evidence
    table = str(evidence.get("table"))
    name = f"{section}-{'points' if table == 'scaling' else table}"
    if name in tables:
        key = evidence.get("key") or {}
        single = {k: text_of(v) for k, v in key.items() if not isinstance(v, list | dict)}
        return [Target("rows", f"#{name}", name, single)]
    return [Target(f"{table}.csv", csv[table])] if table in csv else []
