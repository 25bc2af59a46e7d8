"""Files of Extra-P. Texts are those of its own tests (github.com/extra-p/extrap, tests/data): whole
numbers of ``input/experiments_SP/experiment2.txt``, ``json/new/input1.json``, ``talpas``,
``jsonlines``; what is damaged is damaged as there (``experiment_MP_neg1``, ``experiment_neg``)."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalesweep.core.errors import UserError
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import Table, read_table
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import runs_of
from scalesweep.importers.which_importer import hint

TEXT = """# from a run
PARAMETER p
POINTS (1000) (2000) (4000)
METRIC test

REGION met1 
DATA 4.1 3.9 4.0 4.0 4.1
DATA 4.1 3.9 4.0
DATA 256.01 255.99 256 256 

REGION main->met2
METRIC visits
DATA 1
DATA 4
DATA 16
"""  # noqa: W291 - as it is there
TWO = (
    "PARAMETER x\nPARAMETER y\nPOINTS ( 20 1 ) ( 20 2 )\nREGION reg\nMETRIC metr\nDATA 1\nDATA 2\n"
)
NEW = {
    "parameters": ["x"],
    "measurements": {
        "sweep": {"time": [{"point": [4], "values": [3.5, 3.5]}, {"point": [8], "values": [5.5]}]}
    },
}
OLD = {
    "callpaths": [{"id": 1, "name": "sweep"}],
    "parameters": [{"id": 1, "name": "x"}],
    "metrics": [{"id": 1, "name": "time"}],
    "coordinates": [
        {"id": i, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": value}]}
        for i, value in ((1, 4), (2, 8))
    ],
    "measurements": [
        {"id": i, "coordinate_id": at, "callpath_id": 1, "metric_id": 1, "value": value}
        for i, at, value in ((1, 1, 3.5), (2, 1, 3.5), (3, 2, 5.5))
    ],
}
TALPAS = (
    '{"parameters":{"x":20};"metric":"time";"callpath":"compute";"value":82.0}\n'
    '{"parameters":{"x":20};"metric":"time";"callpath":"compute";"value":81.4}\n'
)
LINES = (
    '{"params":{"x":20},"metric":"metr","value":82.0}\n\n'
    '{"params":{"x":20},"metric":"metr","value":81.4}\n{"params":{"x":30},"value":2}\n'
)


def table_of(folder: Path, text: str) -> Table:
    """The table of a file with this text."""
    file = folder / "measured.txt"
    file.write_text(text)
    return read_table(file)


def cells(table: Table) -> list[list[object]]:
    """Its rows, as lists."""
    return [[row.cells[name] for name in table.columns] for row in table.rows]


def test_a_text_file_has_a_row_for_each_repeat_of_a_point_and_call_path(tmp_path: Path) -> None:
    table = table_of(tmp_path, TEXT)
    assert table.columns == ("p", "callpath", "repeat", "test", "visits")
    assert (table.parameters, table.metrics) == (("p",), ("test", "visits"))
    assert [row[3] for row in cells(table)[5:8]] == [4.1, 3.9, 4.0]
    assert cells(table)[-1] == [4000, "main->met2", 0, None, 16] and not table.refusals
    assert len(table.rows) == 5 + 3 + 4 + 3


def test_it_is_imported_by_the_draft_of_its_map(tmp_path: Path) -> None:
    table = table_of(tmp_path, TEXT)
    (tmp_path / "map.yaml").write_text(draft_of(table))
    runs = runs_of(load_map(tmp_path / "map.yaml", table.file)).runs
    assert {run.point["ranks"] for run in runs} == {1000, 2000, 4000}
    assert {run.point["callpath"] for run in runs} == {"met1", "main->met2"}
    assert runs[0].metrics["test"]["value"] == 4.1


def test_another_importer_names_the_one_that_reads_it(tmp_path: Path) -> None:
    table_of(tmp_path, TEXT)
    assert "--as table` reads tables" in hint(tmp_path, "logs")


@pytest.mark.parametrize("points", ["( 20 1 ) ( 20 2 )", "(20 1)(20 2)", "((20) (1)) ((20) (2))"])
def test_points_of_several_parameters(tmp_path: Path, points: str) -> None:
    table = table_of(tmp_path, TWO.replace("( 20 1 ) ( 20 2 )", points))
    assert cells(table) == [[20, 1, "reg", 0, 1], [20, 2, "reg", 0, 2]]


def test_both_json_formats_say_the_same(tmp_path: Path) -> None:
    new = table_of(tmp_path, json.dumps(NEW, indent=1))
    old = table_of(tmp_path, json.dumps(OLD))
    assert cells(new) == cells(old)
    assert cells(new) == [[4, "sweep", 0, 3.5], [4, "sweep", 1, 3.5], [8, "sweep", 0, 5.5]]


def test_a_value_in_each_of_several_lines_is_a_repeat(tmp_path: Path) -> None:
    assert cells(table_of(tmp_path, TALPAS)) == [[20, "compute", 0, 82.0], [20, "compute", 1, 81.4]]
    table = table_of(tmp_path, LINES)
    assert table.columns == ("x", "callpath", "repeat", "metr", "value")
    assert cells(table) == [[20, "", 0, 82.0, None], [20, "", 1, 81.4, None], [30, "", 0, None, 2]]


def test_a_block_that_is_short_of_points_is_refused_and_the_rest_read(tmp_path: Path) -> None:
    table = table_of(tmp_path, TEXT.replace("DATA 4.1 3.9 4.0\n", ""))
    assert {row.cells["callpath"] for row in table.rows} == {"main->met2"}
    ((refusal),) = table.refusals
    assert refusal.line == 6 and "2 DATA lines of 'met1', 'test' for 3 points" in refusal.reason


def test_a_value_that_is_no_number_costs_its_line_alone(tmp_path: Path) -> None:
    table = table_of(tmp_path, TEXT.replace("DATA 4.1 3.9 4.0\n", "DATA 4.1 n/a inf\n"))
    assert [(one.line, "'4.1 n/a inf'" in one.reason) for one in table.refusals] == [(8, True)]
    assert len(table.rows) == 5 + 4 + 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("PARAMETER p\n", ""), ":2: POINTS before any PARAMETER"),
        (TEXT.replace("(4000)", "(4000"), ":3: POINTS with a bracket that is not closed"),
        (TEXT.replace("(4000)", "(4 5)"), ":3: POINTS (4 5): 2 coordinates, 1 parameters"),
        (TEXT.replace("(4000)", "(4k)"), ":3: POINTS (4k): not all of it are numbers"),
        ("PARAMETER p\nDATA 1\n", ":2: DATA before any POINTS"),
        ("PARAMETER p\n", "holds no POINTS"),
        (json.dumps({**NEW, "parameters": "x"}), "'parameters' is no list of names"),
        (json.dumps({**OLD, "metrics": 4}), "not whole: TypeError"),
        (TEXT.replace("METRIC test", "METRIC p"), "two columns are named 'p'"),
    ],
)
def test_what_cannot_be_trusted_is_refused_in_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(UserError) as error:
        table_of(tmp_path, text)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_measurement_with_too_few_coordinates_is_named(tmp_path: Path) -> None:
    text = json.dumps(NEW).replace("[8]", "[]")
    table = table_of(tmp_path, text)
    assert len(table.rows) == 2
    assert "measurement 2 ('sweep', 'time'): 0 coordinates" in table.refusals[0].reason


@given(
    text=st.sampled_from([TEXT, TWO, json.dumps(NEW), json.dumps(OLD), TALPAS, LINES]),
    share=st.floats(0.01, 0.99),
    other=st.sampled_from(["", "\x00", "NaN", "9" * 400, "(", "\n{", '"', "PARAMETER"]),
)
def test_a_cut_or_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, share: float, other: str
) -> None:
    cut = int(len(text) * share)
    for damaged in (text[:cut] + other, text[:cut] + other + text[cut + len(other) :]):
        try:
            table = table_of(tmp_path_factory.getbasetemp(), damaged)
        except UserError as error:
            assert "\n" not in str(error)
        else:
            assert table.rows or table.refusals or table.columns
