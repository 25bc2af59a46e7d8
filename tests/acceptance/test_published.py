"""Numbers of published studies come out of an import of what was published.

A study is a folder of tests/published. Its ``study.yaml`` has the words of `scalesweep import`, and
the numbers that must come out: ``published``, as they are printed, and ``recomputed``, a formula
over the columns of a table's rows (``{NAME}`` stands for a cell of the published row). A number may
differ by half of its last digit (where the source cuts digits, by a whole one), plus ``within`` if
it follows from rounded numbers. What the source itself has wrong is ``known`` up to a size, so that
a reader that breaks later is still found.

Logs of some studies are not in this repository. Who has them sets PUBLISHED_SOURCES to a folder
with a checkout each, named as the study is here; without it these studies are not collected.
"""

import csv
import html
import json
import math
import os
import re
import shlex
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance import studies
from tests.acceptance.made import make_tables
from tests.acceptance.places import NORMAL, Row, experiments, fixed, read
from tests.conftest import ROOT, Project, make_project

PUBLISHED = ROOT / "tests" / "published"
SOURCES = Path(os.environ.get("PUBLISHED_SOURCES", os.devnull))
STUDIES = {
    path.parent.name: yaml.safe_load(path.read_text())
    for path in sorted(PUBLISHED.glob("*/study.yaml"))
}
SHIPPED = [
    name
    for name, study in STUDIES.items()
    if all((PUBLISHED / name / words.split()[0]).exists() for words in study["imports"])
]
CHECKS = [
    pytest.param(name, check, id=f"{name}: {check['name']}")
    for name, study in STUDIES.items()
    if name in SHIPPED or (SOURCES / name).is_dir()
    for check in study["checks"]
]
# Rows of docs/studies.md that are held by nothing else.
IMPORTED = [row for row in studies.rows("import") if row.tests == ("import",)]
ROUNDING = 1e-9
COMBINE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "max": max, "median": statistics.median,
    # MLPerf's: without the fastest and the slowest; a run that reaches no target is the slowest.
    "olympic": lambda values: statistics.fmean(sorted(values)[1:-1]),
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the project for all studies."""
    return make_project(tmp_path_factory.mktemp("published") / "project")


@pytest.fixture(scope="module")
def results_of(project: Project, whole: bool) -> Callable[[str], Path]:
    """Where a study is imported: those of this repository into one folder, with one report, or by
    `make test` with the tables alone."""

    @cache
    def imported(folder: str) -> Path:
        names = SHIPPED if folder == "shipped" else [folder]
        calls = [words for name in names for words in import_words(name, project.path)]
        results = f"results/{folder}"
        for words in calls:
            report = [] if whole and words is calls[-1] else ["--no-report"]
            done = project.scalesweep("import", *words, "--results", results, *report)
            assert done.returncode == 0, done.stdout + done.stderr
        if not whole:
            make_tables(project, f"{results}/campaign")
        return project.path / results

    return lambda name: imported("shipped" if name in SHIPPED else name)


def import_words(name: str, made: Path) -> Iterator[list[str]]:
    """The words of each import of a study, with whole paths; ``made`` gets tables of figures."""
    folder = (PUBLISHED if name in SHIPPED else SOURCES) / name
    for text in STUDIES[name]["imports"]:
        words = [str(folder / w) if (folder / w).exists() else w for w in shlex.split(text)]
        if words[0].endswith(".html"):
            words[0] = str(points_of_figure(Path(words[0]), STUDIES[name]["columns"], made))
        yield words


def points_of_figure(page: Path, columns: Mapping[str, str], folder: Path) -> Path:
    """A table of the points of a figure of Plotly, by what patterns find in their texts."""
    text, decoder = page.read_text(), json.JSONDecoder()
    traces, end = decoder.raw_decode(text, text.index("[", text.index("Plotly.newPlot(")))
    layout, _ = decoder.raw_decode(text, text.index("{", end))
    rows = [list(columns)]
    for trace in (each for each in traces if isinstance(each.get("text"), list)):
        low, high = layout[f"xaxis{trace.get('xaxis', 'x')[1:]}"]["domain"]
        panel = next(note["text"] for note in layout["annotations"] if low <= note["x"] <= high)
        for point in trace["text"]:
            lines = f"panel: {panel}<br>{point}".replace("<br>", "\n")
            said = html.unescape(re.sub("<[^>]*>", "", lines))
            found = [re.search(pattern, said, re.MULTILINE) for pattern in columns.values()]
            rows.append([match[1].replace(",", "") if match else "" for match in found])
    table = folder / f"{page.stem}.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return table


@pytest.mark.slow
@pytest.mark.parametrize(("study", "check"), CHECKS)
def test_numbers_come_out(
    results_of: Callable[[str], Path], study: str, check: Mapping[str, Any]
) -> None:
    results, table = results_of(study), check["recomputed"]["table"]
    pattern = check["recomputed"].get("experiment", STUDIES[study].get("experiment", "*"))
    names = [name for name in experiments(results, table) if fnmatch(name, pattern)]
    rows = [fixed(results, name) | row for name in names for row in read(results, table, name)]
    numbers = published(PUBLISHED / study, check["published"])
    assert numbers
    assert [why for number in numbers if (why := differs(check, *number, rows))] == []


@pytest.mark.slow
@pytest.mark.parametrize("row", IMPORTED, ids=lambda row: row.name)
def test_rows_that_are_imported(results_of: Callable[[str], Path], row: studies.Row) -> None:
    """What a row of docs/studies.md names is in the results; of others it names what runs leave."""
    results = results_of(SHIPPED[0])
    assert [each for each in row.wanted if not studies.is_there(results, each, "")] == []


@pytest.mark.slow
def test_studies_lie_within_published(project: Project, results_of: Callable[[str], Path]) -> None:
    """`scalesweep normal` has the rates of these studies."""
    results = results_of("llm_foundry")
    done = project.scalesweep("normal", str(results))
    assert done.returncode == 0, done.stdout + done.stderr
    with (results / NORMAL).open(newline="") as file:
        judged = [row for row in csv.DictReader(file) if row["verdict"]]
    assert len(judged) > 100 and {row["verdict"] for row in judged} == {"within"}


def published(folder: Path, what: Any) -> list[tuple[str, Row]]:
    """Each number as it is printed, with the row that it stands in."""
    if isinstance(what, list):
        return [(row["value"], row) for row in what]
    lines = (folder / what["file"]).read_text().splitlines()
    if what["file"].endswith(".csv"):
        rows: list[Row] = list(csv.DictReader(lines))
    else:  # columns of a printed table
        head, _, *cells = (re.split(" {2,}", line.strip()) for line in lines)
        rows = [dict(zip(head, row, strict=True)) for row in cells]
    return [
        (row[what["column"]], row)
        for row in rows
        if row[what["column"]] and fits(row, what.get("rows", {}))
    ]


def differs(check: Mapping[str, Any], printed: str, row: Row, rows: Sequence[Row]) -> str:
    """How a published number differs from the one that comes out; empty if it does not."""
    made = check["recomputed"]
    out = value(made, made.get("rows", {}), made["value"], row, rows)
    if "over" in made:
        out /= value(made, made["over"], made.get("over_value", made["value"]), row, rows)
    plain = re.sub(r"[ ,x%]", "", printed)
    number, half = float(plain), 0.5 * 10.0 ** -len(plain.partition(".")[2])
    allowed = half + (check.get("within", {}).get("relative", 0) + ROUNDING) * abs(number)
    if abs(out - number - (half if check.get("cut") else 0)) <= allowed:
        return ""
    for known in check.get("known", ()):
        if fits(row, known["rows"]) and abs(out - number) <= known["up_to"] * abs(number):
            return ""
    return f"{printed}, {row}: {out} comes out (nan: no row, or several that differ)"


def value(
    made: Mapping[str, Any], match: Mapping[str, Any], formula: str, row: Row, rows: Sequence[Row]
) -> float:
    """The formula's value of the rows that match; not a number for none, or if several differ."""
    wanted = {
        key: row[cell["column"]] if isinstance(cell, dict) else cell for key, cell in match.items()
    }
    found = [evaluated(formula.format(**row), each) for each in rows if fits(each, wanted)]
    values = [each for each in found if not math.isnan(each)]
    if "combine" in made and values:
        missing = len(found) - len(values) if made["combine"] == "olympic" else 0
        return COMBINE[made["combine"]]([*values, *missing * [math.inf]])
    alike = values and max(values) - min(values) <= ROUNDING * abs(values[0])
    return values[0] if alike else math.nan


def fits(row: Row, wanted: Mapping[str, Any]) -> bool:
    """Whether a row has these values, each of a column or of a formula over columns."""
    return all(
        same(row[key] if key in row else evaluated(key, row), cell) for key, cell in wanted.items()
    )


def same(cell: object, wanted: Any) -> bool:
    """Whether two are the same number, or the same word; of a list, one of them."""
    if isinstance(wanted, list):
        return any(same(cell, each) for each in wanted)
    try:
        numbers = [float(str(each).replace(",", "")) for each in (cell, wanted)]
        return math.isclose(*numbers, rel_tol=ROUNDING)
    except ValueError:
        return str(cell).lower() == str(wanted).lower()


def evaluated(formula: str, row: Row) -> float:
    """A formula's value of a row; not a number where one of its numbers is missing."""
    names = re.findall(r"\b[A-Za-z_]\w*", formula)
    numbers = {name: float(row.get(name) or "nan") for name in names}
    return float(eval(formula, {"__builtins__": {}}, numbers))
