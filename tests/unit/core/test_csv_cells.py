import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalesweep.core.csv_cells import CsvWriter, cell, read_rows, text_of_cell
from scalesweep.core.visible import visible

FORMULAS = [
    *("=cmd|' /C calc'!A0", '=HYPERLINK("http://x","y")', "+1+cmd", "-2+3", "@SUM(A1)", " =1+1"),
    *("\t=1", "\n=1", "\uff1dcmd", "'=1", "''", "'quoted'", "-", "--mca x", "-infinity"),
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula_and_reading_restores_it(text: str) -> None:
    shown = cell(text)
    assert shown in ("-", f"'{text}")
    assert text_of_cell(shown) == text


@pytest.mark.parametrize("value", ["-1", "+2.5e-3", "-.5", "-inf", "1e9", "abc", "", 5, -2.5, None])
def test_numbers_and_plain_text_stay(value: object) -> None:
    assert cell(value) is value or cell(value) == value


def test_what_cannot_be_seen_is_shown() -> None:
    assert cell("a\x1b[2Jb\u202e") == "a\\x1b[2Jb\\u202e"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_every_text_comes_back(texts: list[str]) -> None:
    seen = [visible(text) for text in texts]
    file = io.StringIO(newline="")
    writer = CsvWriter(file)
    writer.writerow([f"c{place}" for place in range(len(texts))])
    writer.writerow(texts)
    raw = next(csv.reader(io.StringIO(file.getvalue().split("\n", 1)[1], newline="")))
    assert not any(text.lstrip().startswith(("=", "@")) for text in raw)
    file.seek(0)
    assert [list(row.values()) for row in read_rows(file)] == [seen]


def test_rows_of_other_columns_are_none() -> None:
    assert list(read_rows(io.StringIO("a,b\n1,2\n"), ("a", "c"))) == []
    assert list(read_rows(io.StringIO("a,b\n1\n1,2\n"), ("a", "b"))) == [{"a": "1", "b": "2"}]
