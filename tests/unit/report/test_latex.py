"""LaTeX tables: columns, values and heads of the report's table; any text stays text."""

import re
from pathlib import Path

import pytest

from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.experiment.points_table import point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.latex import MAX_ROWS, NAMES, ONE_PAGE, latex_table, latex_text, write_latex
from tests.fakes.results import Fake, demo, make_results

HOSTILE = "\\input{x}%$a_b^c~#&{}\n[x]<y>|\"`'--\x07\u202e–±"
UNESCAPED = re.compile(r"(?<!\\)(?:\\\\)*[%$#&_]|\^|~")


def one(root: Path, fake: Fake) -> ExperimentResults:
    root = make_results(root, [fake])
    return load_results(read_plan(root / "plan.json")["experiments"][0], root / "tables")


def parse(text: str) -> list[list[str]]:
    """Rows of a table as cells."""
    body = text.partition(r"\endlastfoot" if "longtable" in text else r"\toprule")[2]
    lines = [line for line in body.splitlines() if line.endswith(r" \\")]
    cells = [re.split(r"(?<!\\)&", line.removesuffix(r"\\")) for line in lines]
    assert not any(line.startswith(("[", "*")) for line in lines)
    return [[cell.strip() for cell in row] for row in cells]


def test_it_shows_what_the_report_shows(tmp_path: Path) -> None:
    study = one(tmp_path, demo()[0])
    text = latex_table(study, "scaling", "demo_1")
    assert text is not None
    rows = parse(text)
    table = point_table(study, 100)
    assert rows[1] == [*table.lead, *(c.heading for _, part in table.groups for c in part)]
    shown = [[latex_text(cell.text) for cell in row] for row in table.rows]
    assert rows[2:] == shown and len(shown) == 11
    assert rows[-2][1:] == [r"0/3 NODE\_FAIL", *["–"] * 8]
    assert r"\label{tab:io_weak_scaling-scaling}" in text and r"(campaign demo\_1)" in text
    points = latex_table(study, "points", "c")
    assert points is not None and "Efficiency" not in points and len(parse(points)) == 13
    written = write_latex(study, "c", tmp_path / "out")
    assert sorted(path.name for path in written) == ["points.tex", "scaling.tex"]


@pytest.mark.parametrize("count", [ONE_PAGE, MAX_ROWS + 1])
def test_long_tables_run_over_pages_up_to_a_limit(tmp_path: Path, count: int) -> None:
    study = one(tmp_path, Fake("e", {"size": list(range(count))}, repeats=1, epochs=1))
    text = latex_table(study, "points", "c")
    assert text is not None
    assert (r"\begin{longtable}" in text) == (count > ONE_PAGE)
    assert (f"The first {MAX_ROWS} of {count} rows." in text) == (count > MAX_ROWS)
    body = [row for row in parse(text) if re.fullmatch(r"\d+", row[0])]
    assert len(body) == min(count, MAX_ROWS)


def test_any_text_stays_text(tmp_path: Path) -> None:
    values = [HOSTILE, "[64,64]", "* star", "\\", "plain", "{", "}", "a & b \\\\ c"]
    study = one(tmp_path, Fake("e", {"mode": values, "ranks": [1, 2]}, "weak", repeats=1))
    for name in NAMES:
        text = latex_table(study, name, "c")
        assert text is not None
        rows = parse(text)
        assert len(rows) == 2 + 2 * len(values)
        assert "\\input{" not in text and "\x07" not in text and "\u202e" not in text
        for cell in (cell for row in rows[2:] for cell in row):
            plain = re.sub(r"\$\\?[a-z-]+\$|\\text\w+\{\}", "", cell)
            assert not UNESCAPED.search(plain), cell
    assert latex_text("[1, 2] ± µs") == "{}[1, 2] ± µs"
