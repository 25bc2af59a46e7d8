"""Published tables: read in every form, described by a map, and imported to the last digit."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from scalesweep.core.errors import UserError
from scalesweep.importers.imported_run import ImportedRun
from scalesweep.importers.made_benchmark import Made, make_benchmark
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import read_table
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import TableRuns, runs_of
from scalesweep.importers.which_importer import kind_of
from tests.fakes.imported_runs import import_runs

RATE = {"column": "rate", "unit": "samples/s", "better": "higher", "scope": "total"}
PLAIN = "name,ranks,samples,time_s\na,1,256,8.0\na,2,512,8.2\nb,1,64,2.0\nb,2,128,2.5\n"
Import = Callable[..., TableRuns]


def map_of(**changes: Any) -> dict[str, Any]:
    usual = {"name": "training", "parameters": {"ranks": {"column": "ranks"}}}
    content = {**usual, "metrics": {"rate": RATE}, **changes}
    return {key: value for key, value in content.items() if value is not None}


@pytest.fixture
def read(tmp_path: Path) -> Import:
    """Read a table by its map."""

    def load(text: str, content: dict[str, Any]) -> TableRuns:
        (tmp_path / "table.csv").write_text(text)
        (tmp_path / "map.yaml").write_text(yaml.safe_dump(content))
        return runs_of(load_map(tmp_path / "map.yaml", tmp_path / "table.csv"))

    return load


def values(runs: list[ImportedRun], name: str = "rate") -> list[float]:
    return [run.metrics[name]["value"] for run in runs]


def reasons(found: TableRuns) -> str:
    return "\n".join(refusal.message for refusal in found.refusals)


ROWS = [{"ranks": 1, "name": "a", "rate": 1.5}, {"ranks": 2, "name": "b", "rate": 2.5}]
CSV = "ranks,name,rate\n1,a,1.5\n2,b,2.5\n"
FORMS = {
    **{f"t{ord(mark)}.csv": CSV.replace(",", mark) for mark in ",;\t|"},
    "blanks.txt": CSV.replace(",", "   "),
    "lines.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    "list.json": json.dumps(ROWS, indent=1),
    "inner.json": json.dumps({"results": ROWS}),
    "page.md": "# Title\n\nWords | more.\n\n| ranks | name | rate |\n|--:|---|:-:|\n"
    "| 1 | `a` | **1.5** |\n| 2 | [b](x) | 2.5 |\n\nEnd.\n",
    "plain.md": "ranks | name | rate\n-- | -- | --\n1 | a | 1.5\n2 | b | 2.5\n",
    "border.txt": "+-------+------+------+\n| ranks | name | rate |\n+-------+------+------+\n"
    "|     1 | a    |  1.5 |\n|     2 | b    |  2.5 |\n+-------+------+------+\n",
}


@pytest.mark.parametrize("name", [*FORMS, "packed.csv.gz", "t.parquet", "folder"])
def test_every_form_of_a_table(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name in FORMS:
        file.write_text(FORMS[name])
    elif name == "packed.csv.gz":
        file.write_bytes(gzip.compress(CSV.encode()))
    elif name == "t.parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), file)
    else:
        file.mkdir()
        for row in ROWS:
            more = {**row, "per_rank": [{"step": 1.0}]}
            (file / f"run_{row['ranks']}.json").write_text(json.dumps(more))
    table = read_table(file)
    assert table.columns == ("ranks", "name", "rate")
    assert [row.cells["name"] for row in table.rows] == ["a", "b"]
    assert [table.number(row.cells["rate"]) for row in table.rows] == [1.5, 2.5]
    assert kind_of(file) == "table"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"PK\x03\x04 rest", "save the sheet as CSV"), (b"", "is empty"),
        (b"PAR1xx", "not a whole"), ("ranks,x\n1,é\n".encode("latin-1"), ":2: not UTF-8"),
        (b"[1, 2]", "no object of JSON"), (b"a,a\n1,2\n", "two columns are named 'a'"),
        (b"just words\n", "no table"), (b"a trainer, on 8\nstep 1\n", "no row .*--reader FILE"),
        (b"a\x1b[2J,value\n1,2\n", "column 1 has no name that can be printed"),
        (b"a|b\n-|-\n1|2\n\nc|d\n-|-\n3|4\n", "several headings .lines 1, 5."),
        (b"{'loss': 2.1, 'epoch': 1}\nx\n", "import the trainer_state.json"),
    ],
)  # fmt: skip
def test_what_is_no_table(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "file.csv"
    file.write_bytes(content)
    with pytest.raises(UserError, match=told):
        kind_of(file)


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("ranks;rate\n1;1,234\n", {}, "say which in the map"),
        ("ranks;rate\n1;1,234\n", {"decimal": ","}, 1.234),
        ("ranks;rate\n1;1,234\n", {"decimal": "."}, 1234),
        ("ranks;rate\n1;926,5\n", {}, 926.5),
        ("ranks;rate\n1;1.024,5\n", {}, "if '.' stands between thousands, say so in the map"),
        ("ranks;rate\n1;12.003.880,25\n", {"thousands": "."}, 12003880.25),
        ("ranks;rate\n1;1 024.5\n", {"thousands": " "}, 1024.5),
        ('ranks,rate\n1,"1,024.5"\n', {}, 1024.5),
    ],
)
def test_marks_of_numbers(read: Import, text: str, form: dict[str, str], expected: Any) -> None:
    found = read(text, map_of(table=form))
    if isinstance(expected, str):
        assert expected in reasons(found)
    else:
        assert values(found.runs)[-1] == expected


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("2,0.0", "0 samples/s is not positive"), ("2,1e999", "not a finite number"),
        ("2,fast", "'fast' is not a number"), ("2,1...9", "values were left out"),
        ("0,9", "ranks is 0"), ("2.5,9", "ranks is 2.5"), (",9", "number of ranks is missing"),
        ("2,50 %", "'50 %' is a percentage, and the metric's unit is samples/s"),
        ("2", "1 fields, the heading has 2"), ("2,9,9", "3 fields"), ("-2,9", "ranks is -2"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_costs_no_other(read: Import, row: str, told: str) -> None:
    found = read(f"ranks,rate\n1,100.5\n{row}\n", map_of())
    assert len(found.runs) == 1 and told in reasons(found)
    assert found.refusals[0].line == 3


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("8,3,1", "mesh.dp: 2.6666666666666665 is not a whole number"),
        ("8,0,1", "fails: "),
        ("4096,4096,1", "transformer.sequence: 0 should be greater than or equal to 1"),
    ],
)
def test_rows_whose_ranks_make_no_mesh_are_refused(read: Import, row: str, told: str) -> None:
    content = map_of(
        parameters={"ranks": {"column": "ranks"}, "tp": {"column": "tp"}},
        mesh={"dp": "ranks / tp", "tp": "tp"},
        transformer={"layers": 24, "width": 2048, "sequence": "2048 // tp"},
    )
    found = read(f"ranks,tp,rate\n8,1,9\n{row}\n", content)
    assert len(found.runs) == 1 and told in reasons(found)


def test_columns_formulas_constants_and_what_follows(read: Import) -> None:
    content = map_of(
        parameters={
            "ranks": {"column": "ranks"}, "name": {"column": "name", "workload": True},
            "batch": {"value": 4, "unit": "samples"},
            "samples_per_rank": {"formula": "samples / ranks"},
            "steps": {"derive": "samples_per_rank // batch"},
        },
        metrics={"rate": {**RATE, "column": None, "formula": "samples / time_s"}},
        work={"scope": "rank", "samples": "samples_per_rank"},
    )  # fmt: skip
    found = read(PLAIN, content)
    assert values(found.runs) == pytest.approx([32, 512 / 8.2, 32, 51.2])
    assert found.runs[1].point == {
        "ranks": 2, "name": "a", "batch": 4, "samples_per_rank": 256, "steps": 64,
    }  # fmt: skip
    content["metrics"]["rate"]["formula"] = "samples / (ranks - 1)"
    found = read(PLAIN, content)
    assert len(found.runs) == 2 and reasons(found).count("division by zero") == 2


def test_scales_in_the_headings_and_missing_values(read: Import, tmp_path: Path) -> None:
    text = "method,1 GPU,4 GPUs\nlora,100,360\nfull,,180\n"
    (tmp_path / "t.csv").write_text(text)
    draft = draft_of(read_table(tmp_path / "t.csv")).content
    with pytest.raises(UserError, match=r"value\.better: '\?' is not one of higher, lower"):
        read(text, draft)
    draft["metrics"]["value"] |= {"unit": "images/s", "better": "higher"}
    found = read(text, draft)
    points = [(run.point["method"], run.point["ranks"]) for run in found.runs]
    assert points == [("lora", 1), ("lora", 4), ("full", 4)]
    # The column's cell would make a failed run of each value in its row.
    assert [*found.notes] == ["without a value: 1 of the runs that rows and columns could hold"]
    assert values(found.runs, "value") == [100, 360, 180]


def test_a_row_without_a_value_may_have_failed(read: Import) -> None:
    text = "ranks,rate\n1,100\n2,\n"
    (note,) = read(text, map_of()).notes
    content = map_of(**yaml.safe_load(note.split("`")[1]))
    assert [run.failed for run in read(text, content).runs] == ["", "NOT_STATED"]


def test_one_point_in_several_rows(read: Import) -> None:
    found = read("name,ranks,rate\na,1,9\nb,1,8\n", map_of())
    assert len(found.runs) == 1 and "the same point as line 2, but another name" in reasons(found)
    found = read("name,ranks,rate\na,1,9\nb,1,8\n", map_of(ignore=["name"]))
    assert [run.point["ranks"] for run in found.runs] == [1, 1] and not found.refusals
    for copy in ("2,190", "2,190.00", "2,1.9e2"):
        found = read(f"ranks,rate\n1,100\n2,190.0\n{copy}\n", map_of())
        assert len(found.runs) == 2 and "a copy of line 3" in reasons(found)
    assert len(read("ranks,rate\n2,190.0\n2,190.1\n", map_of()).runs) == 2


@pytest.mark.parametrize(
    ("failed", "rows", "causes"),
    [
        (None, "1,ok,9\n2,x,OOM\n", ["", "OUT_OF_MEMORY"]),
        ({"column": "rate", "values": {"NaN": "KILLED"}}, "1,ok,9\n2,x,nan\n", ["", "KILLED"]),
        ({"column": "end", "values": ["bad"]}, "1,ok,9\n2,BAD,\n", ["", "NOT_STATED"]),
        ({"column": "end", "values": ["", "bad"]}, "1,ok,9\n2,,\n", ["", "NOT_STATED"]),
    ],
)
def test_rows_of_failed_runs(read: Import, failed: Any, rows: str, causes: list[str]) -> None:
    found = read(f"ranks,end,rate\n{rows}", map_of(failed=failed, ignore=["end"]))
    assert [run.failed for run in found.runs] == causes and not found.refusals
    assert [bool(run.metrics) for run in found.runs] == [True, False]
    assert found.runs[1].unfinished.startswith("column ")


MISTAKES = yaml.safe_load(Path(__file__).with_name("map_mistakes.yaml").read_text())


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row["said"])
def test_mistakes_of_a_map(read: Import, row: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=row["said"]) as error:
        read("ranks,rate\n1,9\n", map_of(**row["changes"]))
    assert "map.yaml: " in str(error.value)


@pytest.mark.parametrize(
    ("text", "ranks", "scale", "metrics", "opened"),
    [
        ("nodes,time\n1,10\n2,6\n", "nodes", "nodes", {"time": ("s", "lower", "total")}, []),
        ("Nodes,WORLD_SIZE,img/s/GPU\n1,8,10\n2,16,9\n", "WORLD_SIZE", None,
         {"img_s_gpu": ("images/s", "higher", "rank")}, ["Nodes"]),
        ("No. GPUs,Throughput (T/s),emissions_rate\n1,10,3\n2,9,4\n", "No. GPUs", "gpus",
         {"throughput_t_s": ("items/s", "higher", "total")}, ["emissions_rate"]),
        ("gpus,step_time_ms\n1,10\n2,OOM\n", "gpus", "gpus",
         {"step_time_ms": ("ms", "lower", "total")}, []),
    ],
)  # fmt: skip
def test_a_draft_says_what_is_sure_and_asks_the_rest(
    tmp_path: Path, text: str, ranks: str, scale: str | None, metrics: Any, opened: list[str]
) -> None:
    (tmp_path / "t.csv").write_text(text)
    draft = draft_of(read_table(tmp_path / "t.csv"))
    assert draft.content["parameters"]["ranks"] == {"column": ranks}
    assert draft.content.get("scale") == scale
    found = {
        name: (it["unit"], it["better"], it["scope"])
        for name, it in draft.content["metrics"].items()
    }
    assert found == metrics and list(draft.open) == opened
    assert yaml.safe_load(draft.text("t.csv")) == draft.content


def test_a_draft_has_the_mesh_that_makes_up_the_ranks(tmp_path: Path) -> None:
    text = "gpus,tp,pp,dp,gbs,tokens/s\n8,2,2,2,64,10\n16,2,1,8,32,20\n32,4,1,8,64,30\n"
    for written, mesh in ((text, ["dp", "tp", "pp"]), (text.replace("16,2,1,8", "16,2,1,4"), [])):
        (tmp_path / "t.csv").write_text(written)
        content = draft_of(read_table(tmp_path / "t.csv")).content
        assert [*content.get("mesh", ())] == mesh and content["parameters"]["gbs"]["workload"]
        assert content["parameters"]["dp"].get("derive") == ("ranks // (tp * pp)" if mesh else None)


def test_a_table_of_nodes_and_times_needs_its_scaling_alone(read: Import) -> None:
    runs = read("nodes,time\n1,10\n2,6\n", {"scaling": "strong"}).runs
    assert [run.point["ranks"] for run in runs] == [1, 2] and values(runs, "time") == [10, 6]


def test_the_made_benchmark_grows_and_never_changes(tmp_path: Path) -> None:
    batch, kind = (
        {name: {"type": [of, "null"], "default": None, "doc": "Of a column."}}
        for name, of in (("batch", "integer"), ("kind", "string"))
    )
    first = make_benchmark(tmp_path, "training", Made("A table.", batch, {"rate": "as printed"}))
    time = {"time": {"definition": "as printed", "kind": "intensive"}}
    second = make_benchmark(tmp_path, "training", Made("Another.", batch | kind, time))
    ids = {it.run_id({**it.defaults, "ranks": 2, "batch": 4}, 0) for it in (first, second)}
    assert len(ids) == 1
    assert set(second.metrics) == {"rate", "time"} and second.main_metric == "rate"
    assert second.kinds == {"time": "intensive"}


def test_a_corrected_map_replaces_what_the_first_one_made(read: Import, tmp_path: Path) -> None:
    text = "ranks,rate\n1,9\n2,17\n"
    make_benchmark(tmp_path, "training", Made("A table.", {}, {"rate": "rate"}))
    import_runs(read(text, map_of()).runs, tmp_path / "runs" / "imported")
    found = read(text, map_of(metrics={"rate": {**RATE, "unit": "images/s"}}))
    written, refused = import_runs(found.runs, tmp_path / "runs" / "imported")
    assert [(run.point["ranks"], run.repeat) for run in written] == [(1, 0), (2, 0)] and not refused
    for path in (tmp_path / "runs").glob("*/*/record.json"):
        assert json.loads(path.read_text())["metrics"]["rate"]["unit"] == "images/s"


def test_rows_that_contradict_what_follows_from_others_are_refused(read: Import) -> None:
    derive = {"tp": {"column": "tp"}, "dp": {"column": "dp", "derive": "8 * ranks // tp"}}
    content = map_of(parameters={"ranks": {"column": "ranks"}, **derive})
    table = read("ranks,tp,dp,rate\n4,2,16,9\n4,4,16,9\n4,0,8,9\n", content)
    assert [run.point["dp"] for run in table.runs] == [16]
    assert [(refusal.line, refusal.reason) for refusal in table.refusals] == [
        (3, "dp is 16, but 8 * ranks // tp = 8"),
        (4, "parameters.dp.derive: '8 * ranks // tp' fails: integer division or modulo by zero"),
    ]
