"""Tables of others whose columns and cells want to be carried out, and tables of ours read back."""

from pathlib import Path

import pytest

from scalesweep.core.csv_cells import CsvWriter
from scalesweep.core.errors import UserError
from scalesweep.importers.table_file import read_table

CELLS = ['=HYPERLINK("http://x")', "@SUM(A1)", "+cmd|'/C calc'!A0", "'quoted'", "-5", "plain"]


def test_a_table_of_ours_comes_back_as_its_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        writer = CsvWriter(file)
        writer.writerow(["=label", "value"])
        for number, text in enumerate(CELLS):
            writer.writerow([text, number])
    rows = read_table(path).rows
    names = list(rows[0].cells)
    assert [row.cells[names[0]] for row in rows] == CELLS
    assert "\n=" not in path.read_text() and not path.read_text().startswith("=")


@pytest.mark.parametrize("name", ["a\x1b[2J", "\u202eeman", "a\u2028b"])
def test_a_column_that_cannot_be_seen_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{name},value\n1,2\n")
    with pytest.raises(UserError, match=r"characters that do not print|names no columns") as caught:
        read_table(path)
    assert str(caught.value).isprintable()
