"""The rows of docs/studies.md, and whether what they name lies in a results folder."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "studies.md"


@dataclass(frozen=True)
class Row:
    """A figure, table or statement of a study."""

    name: str
    made: tuple[str, ...]  # campaigns, options and commands
    wanted: tuple[str, ...]  # where it is found in the results
    tests: tuple[str, ...]  # of run, plan, import


def rows() -> list[Row]:
    """All rows of the page."""
    read = []
    for line in PAGE.read_text().splitlines():
        if re.match(r"\| [A-Z]\d+ \|", line):
            name, _, made, wanted, tests = (
                cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]
            )
            code = [tuple(re.findall("`([^`]+)`", cell)) for cell in (made, wanted)]
            read.append(Row(name, code[0], code[1], tuple(tests.split(", "))))
    return read


def rows_of(campaign: str, profile: str | None = None) -> list[Row]:
    """Rows that a run of a campaign, with a profile or without, is to show."""
    profiles = () if profile is None else (f"profile={profile}",)
    names = (campaign, f"{campaign}_small")
    return [
        row
        for row in rows()
        if "run" in row.tests and row.made[0] in names and row.made[1:] == profiles
    ]


def missing(results: Path, wanted: Iterator[Row] | list[Row], prefix: str = "") -> list[str]:
    """What rows name and the experiments that begin with ``prefix`` do not have."""
    return [
        f"{row.name}: {each}"
        for row in wanted
        for each in row.wanted
        if not _is_there(results, each, prefix)
    ]


def _is_there(results: Path, wanted: str, prefix: str) -> bool:
    """A figure (a pattern), a finding by its rule, or a column that is not empty."""
    if wanted.endswith(".svg"):
        figures = results.glob(f"figures/{prefix}*/*.svg")
        return any(fnmatch(path.name, wanted) for path in figures)
    table, _, column = wanted.partition(" ")
    if table == "finding":
        table, column = "findings", f"rule={column}"
    column, _, value = column.partition("=")
    paths = [*results.glob(f"tables/{prefix}*/{table}.csv"), *results.glob(f"tables/{table}.csv")]
    return any(_holds(path, column, value) for path in paths)


def _holds(path: Path, column: str, value: str) -> bool:
    with path.open() as file:
        cells = [row.get(column) for row in csv.DictReader(file)]
    return any(cell == value if value else cell for cell in cells)
