"""Gate: what published files say comes out as they say it, by the readers that stay.

`imports/expected.yaml` has a row for each reader and for each kind of file that broke one.
"""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.conftest import Project, make_project

FOLDER = Path(__file__).with_name("imports")
CALLS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "expected.yaml").read_text())
ROWS = [(call, row) for call in CALLS for row in call["rows"]]
NEAR = 1e-9
Run = dict[str, Any]
Fact = tuple[str, Any, Any]  # name, what is there, what a row expects


class Imported:
    """What a call of `scalesweep import` left."""

    def __init__(self, project: Project, call: dict[str, Any]) -> None:
        source = f"imports/{call['source']}"
        self.results = project.path / "imported" / call["source"].replace("/", "_")
        words = [source, "--results", str(self.results), *call.get("words", [])]
        words += [] if call.get("report") else ["--no-report"]
        if call.get("map"):
            words += ["--map", str(Path(source).with_suffix(".yaml"))]
        self.done = project.scalesweep("import", *words)
        self.runs = [
            json.loads(path.read_text()) | {"folder": path.parent}
            for path in self.results.glob("runs/*/*/record.json")
        ]

    def runs_of(self, row: dict[str, Any]) -> list[Run]:
        """The runs that a row is about."""
        where = row.get("where", {}).items()
        file = row.get("file", "")
        return [
            run for run in self.runs
            if f"/{file}" in run["notes"]["imported_from"]
            and run["benchmark"].startswith("messages_") == ("message_bytes" in dict(where))
            and all(run["point"].get(name) == value for name, value in where)
        ]  # fmt: skip


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``imported(source)``: that call of `scalesweep import`, made once."""
    project = make_project(tmp_path_factory.mktemp("imports") / "project")
    shutil.copytree(FOLDER, project.path / "imports")
    for script in project.path.glob("imports/*/*.sql"):  # as a database, which git cannot compare
        database = sqlite3.connect(script.with_suffix(".sqlite"))
        database.executescript(script.read_text())
        database.close()
        script.unlink()
    calls = {call["source"]: call for call in CALLS}
    return cache(lambda source: Imported(project, calls[source]))


def facts(found: Imported, row: dict[str, Any], asked: dict[str, Any]) -> Iterator[Fact]:
    """What is there and what a row expects, by name."""
    runs = found.runs_of(row)
    yield "exit", found.done.returncode, asked.get("exit", found.done.returncode)
    yield "runs", len(runs), asked.get("runs", len(runs))
    points = len({json.dumps(run["point"]) for run in runs})
    yield "points", points, asked.get("points", points)
    for draft in found.results.glob("*.map.yaml"):
        parameters = yaml.safe_load(draft.read_text())["parameters"]
        for name, column in asked.get("draft", {}).items():
            yield f"draft of {name}", parameters[name]["column"], column
    if asked.keys() & {"benchmark", "point", "metrics", "arrays", "failed"}:
        yield "runs", len(runs), 1
        (run,) = runs
        yield "failed", run.get("failed"), asked.get("failed")
        yield "benchmark", run["benchmark"], asked.get("benchmark", run["benchmark"])
        for name, value in asked.get("point", {}).items():
            yield name, run["point"].get(name), value
        for name, value in asked.get("metrics", {}).items():
            yield name, run["metrics"].get(name, {}).get("value"), value
        with np.load(run["folder"] / "samples.npz") as arrays:
            for name, values in asked.get("arrays", {}).items():
                yield name, arrays[name], np.asarray(values)


def check(found: Imported, row: dict[str, Any], asked: dict[str, Any]) -> None:
    """Hold what a row, or its `today`, says of the runs of the row."""
    for name, there, expected in facts(found, row, asked):
        number = there is not None and isinstance(expected, int | float | np.ndarray)
        right = pytest.approx(expected, rel=NEAR, abs=0) if number else expected
        assert there == right, f"{name}; {found.done.stdout}{found.done.stderr}"


@pytest.mark.parametrize(
    ("call", "row"), ROWS, ids=[f"{call['source']}-{row.get('file', '')}" for call, row in ROWS]
)
def test_what_a_file_says_comes_out(imported: Any, call: Any, row: dict[str, Any]) -> None:
    found = imported(call["source"])
    if "today" in row:
        with pytest.raises(AssertionError):  # else it is right now: delete `today`
            check(found, row, row)
    check(found, row, row.get("today", row))
