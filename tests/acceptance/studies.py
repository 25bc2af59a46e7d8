"""The rows of docs/studies.md, and the shipped small campaigns as one that makes them."""

import csv
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT, Project, make_project
from tests.fakes.torch_python import TORCH
from tests.workflow.warm_site import start_warm

CAMPAIGNS = ROOT / "config" / "campaigns"
RESULTS = "results"
KEPT: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("studies.yaml").read_text()
)
# Those that go back to no published study, and need PyTorch; `make test` leaves them out.
OF_NO_STUDY = {"frameworks", "torch_scaling"}
# All of it, on a slow machine whose cores others use too.
MINUTES = 40


@dataclass(frozen=True)
class Row:
    """A figure, table or statement of a study."""

    name: str
    made: tuple[str, ...]  # campaigns, options and commands
    wanted: tuple[str, ...]  # where it is found in the results
    tests: tuple[str, ...]  # of run, plan, import; or a file of tests


def rows(kind: str = "") -> list[Row]:
    """Rows of the page, of a kind of test or all."""
    read = []
    for line in (ROOT / "docs" / "studies.md").read_text().splitlines():
        if re.match(r"\| [A-Z]\d+ \|", line):
            name, _, made, wanted, tests = (it.strip() for it in re.split(r"(?<!\\)\|", line)[1:-1])
            code = [tuple(re.findall("`([^`]+)`", cell)) for cell in (made, wanted)]
            row = Row(name, code[0], code[1], tuple(tests.split(", ")))
            read += [row] if not kind or kind in row.tests else []
    return read


def campaign(torch: bool) -> dict[str, Any]:
    """All of them as one; names of experiments begin with their campaign's (`prefix`)."""
    experiments = {}
    for name, kept in KEPT.items():
        if name in OF_NO_STUDY and not torch:
            continue
        content = yaml.safe_load((CAMPAIGNS / "small" / f"{name}_small.yaml").read_text())
        for key, less in kept.items():
            title, _, profile = key.partition(", ")
            experiment = content["experiments"][title] | {"repeats": 1}
            for part, values in less.items():
                inside = part in experiment and isinstance(values, dict)
                experiment[part] = experiment[part] | values if inside else values
            marked = {"profile": profile} if profile else {}
            experiments[f"{prefix(name, profile)}{title}"] = experiment | marked
    head = {"campaign": "small_campaigns", "site": "local", "results": RESULTS}
    return head | {"experiments": experiments}


def prefix(campaign: str, profile: str = "") -> str:
    """What the names of a campaign's experiments begin with."""
    return f"{profile}_{campaign}_" if profile else f"{campaign}_"


def run_all(folder: Path, whole: bool) -> Project:
    """Run them in a project of their own, with TensorFlow and PyTorch started once."""
    torch = whole and TORCH.exists()
    project = start_warm(make_project(folder / "project"), torch)
    project.write("c.yaml", yaml.safe_dump(campaign(torch), sort_keys=False))
    done = project.snakemake("--configfile", "c.yaml", minutes=MINUTES)
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def is_there(results: Path, wanted: str, prefix: str) -> bool:
    """A figure (a pattern), a finding by its rule, or a column that is not empty, in experiments
    whose names begin so."""
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
