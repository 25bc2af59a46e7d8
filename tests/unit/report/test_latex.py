"""LaTeX tables: columns, values and heads of the report's table; any text stays text."""

import re
from pathlib import Path

from scalesweep.experiment.points_table import point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.export_tables import MAX_ROWS, NAMES, latex_table, latex_text
from tests.fakes.results import Fake, demo, make_results, studies_of

HOSTILE = "\\input{x}%$a_b^c~#&{}\n[x]<y>|\"`'--\x07\u202e–±"
UNESCAPED = re.compile(r"(?<!\\)(?:\\\\)*[%$#&_]|\^|~")


def one(root: Path, fake: Fake) -> ExperimentResults:
    return studies_of(make_results(root, [fake]))[fake.name]


def rows_of(text: str | None) -> list[list[str]]:
    """Rows of a table as cells, below the two of its heads."""
    body = text.partition(r"\midrule")[2]
    lines = [line for line in body.splitlines() if line.endswith(r" \\")]
    assert not any(line.startswith(("[", "*")) for line in lines)
    cells = [re.split(r"(?<!\\)&", line.removesuffix(r"\\")) for line in lines]
    return [[cell.strip() for cell in row] for row in cells]


def test_it_shows_what_the_report_shows(tmp_path: Path) -> None:
    study = one(tmp_path, demo()[0])
    text = latex_table(study, "scaling", "demo_1") or ""
    shown = [[latex_text(cell.text) for cell in row] for row in point_table(study, 100).rows]
    assert rows_of(text) == shown and len(shown) == 11
    assert shown[-2][1:] == [r"0/3 NODE\_FAIL", *["–"] * 8]
    assert r"\label{tab:io_weak_scaling-scaling}" in text and r"(campaign demo\_1)" in text
    assert "Efficiency" in text and "Efficiency" not in str(latex_table(study, "points", "c"))


def test_a_long_table_says_how_many_rows_there_are(tmp_path: Path) -> None:
    study = one(tmp_path, Fake("e", {"size": list(range(MAX_ROWS + 1))}, repeats=1, epochs=1))
    text = latex_table(study, "points", "c") or ""
    assert f"The first {MAX_ROWS} of {MAX_ROWS + 1} rows." in text
    assert len(rows_of(text)) == MAX_ROWS


def test_any_text_stays_text(tmp_path: Path) -> None:
    values = [HOSTILE, "[64,64]", "* star", "\\", "plain", "{", "}", "a & b \\\\ c"]
    study = one(tmp_path, Fake("e", {"mode": values, "ranks": [1, 2]}, "weak", repeats=1))
    for name in NAMES:
        text = latex_table(study, name, "c") or ""
        rows = rows_of(text)
        assert len(rows) == 2 * len(values)
        assert "\\input{" not in text and "\x07" not in text and "\u202e" not in text
        for cell in (cell for row in rows for cell in row):
            plain = re.sub(r"\$\\?[a-z-]+\$|\\text\w+\{\}", "", cell)
            assert not UNESCAPED.search(plain), cell
