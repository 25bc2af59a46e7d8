"""Published tables: read in every form, described by a map, and imported to the last digit."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from scalesweep.aspects.make_tables import make_tables
from scalesweep.config.campaign import load_campaign
from scalesweep.core.errors import UserError
from scalesweep.importers.made_benchmark import make_benchmark, parameter_entry
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import Table, read_table
from scalesweep.importers.table_map import TableMap, load_map
from scalesweep.importers.table_printed import check_printed
from scalesweep.importers.table_runs import TableRuns, runs_of
from scalesweep.importers.write_campaign import campaign_of, write_campaign
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary
from tests.fakes.imported_runs import import_runs

# Weak scaling of a training with real and dummy input; efficiencies of the rounded throughputs.
TRAINING = """;ranks;samples;times;throughputs;ideal;eff;samples_dummy;times_dummy;throughputs_dummy;eff_dummy
0;1;320;10,250;31,2195;31,2195;1,0000;320;10,000;32,0000;1,0000
1;2;640;10,500;60,9524;62,4390;0,9762;640;10,100;63,3663;0,9901
2;4;1280;11,250;113,7778;124,8780;0,9111;1280;10,300;124,2718;0,9709
"""  # noqa: E501
PLAIN = """dataset,ranks,samples,time_s,throughput
cosmo,1,256,8.0,32.0
cosmo,2,512,8.2,62.44
small,1,64,2.0,32.0
small,2,128,2.5,51.2
"""
SPREAD = """ranks\tthroughput\tstd\tn
1\t100.0\t2.0\t5
2\t190.0\t4.0\t5
"""
Import = Callable[..., tuple[TableMap, TableRuns]]


def map_of(**changes: Any) -> dict[str, Any]:
    rate = {"column": "throughput", "unit": "samples/s", "better": "higher", "scope": "total"}
    content = {
        "name": "training",
        "parameters": {"ranks": {"column": "ranks"}},
        "metrics": {"throughput": rate},
        **changes,
    }
    return {key: value for key, value in content.items() if value is not None}


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """Write a table and its map, read both."""

    def load(text: str, content: dict[str, Any], name: str = "table.csv") -> Any:
        (tmp_path / name).write_text(text)
        (tmp_path / "map.yaml").write_text(yaml.safe_dump(content))
        table_map = load_map(tmp_path / "map.yaml", tmp_path / name)
        return table_map, runs_of(table_map)

    return load


def reasons(found: TableRuns) -> str:
    return "\n".join(refusal.message for refusal in found.refusals)


def test_a_draft_names_numbers_that_it_cannot_read_and_takes_no_count_for_a_metric(
    tmp_path: Path,
) -> None:
    file = tmp_path / "german.csv"
    file.write_text("gpus;Durchsatz;Effizienz\n1;1.234,5;100 %\n2;2.400,0;97,2 %\n")
    text = draft_of(read_table(file))
    content = yaml.safe_load(text)
    assert content["ignore"] == ["Durchsatz", "Effizienz"] and content["metrics"] == {}
    assert content["parameters"] == {"ranks": {"column": "gpus"}}
    assert "# Durchsatz is left out: '1.234,5' is not a number; if '.' stands between" in text
    assert "# No column seems to be a metric: name one under metrics." in text


def test_a_draft_of_a_published_table_imports_it_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "training.csv"
    file.write_text(TRAINING)
    (tmp_path / "map.yaml").write_text(draft_of(read_table(file)))
    table_map = load_map(tmp_path / "map.yaml", file)
    found = runs_of(table_map)
    assert not found.refusals and not found.empty
    points = [(run.point["ranks"], run.point["variant"]) for run in found.runs]
    assert points == [(n, kind) for n in (1, 2, 4) for kind in ("real", "dummy")]
    assert {run.point["samples_per_rank"] for run in found.runs} == {320}
    dummy = found.runs[-1].metrics
    assert dummy["throughputs"]["value"] == 124.2718  # with a decimal comma
    assert dummy["times"] == {"value": 10.3, "unit": "s", "better": "lower", "scope": "total"}
    (check,) = check_printed(table_map, found.runs)
    assert (check.agree, check.others) == (6, ())


def test_a_printed_efficiency_that_does_not_come_out_is_named(tmp_path: Path) -> None:
    file = tmp_path / "training.csv"
    file.write_text(TRAINING.replace("0,9111", "0,9114"))
    (tmp_path / "map.yaml").write_text(draft_of(read_table(file)))
    table_map = load_map(tmp_path / "map.yaml", file)
    (check,) = check_printed(table_map, runs_of(table_map).runs)
    assert check.agree == 5
    assert f"{file}:4: throughputs: printed 0.9114, the values give 0.91111" in check.others[0]


def test_columns_formulas_and_constants(imported: Import) -> None:
    content = map_of(
        parameters={
            "ranks": {"column": "ranks"}, "dataset": {"column": "dataset", "workload": True},
            "batch_size": {"value": 4, "unit": "samples"},
            "samples_per_rank": {"formula": "samples / ranks"},
        },
        metrics={
            "throughput": {"formula": "samples / time_s", "unit": "samples/s",
                           "better": "higher", "scope": "total"},
        },
        work={"scope": "rank", "samples": "samples_per_rank"},
    )  # fmt: skip
    _, found = imported(PLAIN, content)
    assert [run.metrics["throughput"]["value"] for run in found.runs] == [
        32.0, pytest.approx(62.439024), 32.0, 51.2,
    ]  # fmt: skip
    assert found.runs[1].point == {
        "ranks": 2, "dataset": "cosmo", "batch_size": 4, "samples_per_rank": 256,
    }  # fmt: skip
    assert "columns that the map does not name: throughput" in found.notes


@pytest.mark.parametrize(
    "formula",
    [
        "__import__('os').getcwd()", "samples.real", "[x for x in (1,)]", "'a' * 9", "[0] * 9",
        "samples ** 9", "nothing / ranks", "samples /", "lambda: 1", "dataset[0]",
    ],
)  # fmt: skip
def test_a_formula_works_with_numbers_only(imported: Import, formula: str) -> None:
    content = map_of(metrics={"m": {"formula": formula, "unit": "1", "better": "higher",
                                    "scope": "total"}})  # fmt: skip
    try:
        _, found = imported(PLAIN, content)
    except UserError as error:
        assert "metrics.m" in str(error)
    else:
        assert not found.runs and "is not a number" in reasons(found)


def test_a_division_by_nothing_costs_its_row(imported: Import) -> None:
    content = map_of(metrics={"m": {"formula": "samples / (ranks - 1)", "unit": "1",
                                    "better": "higher", "scope": "total"}},
                     ignore=["dataset"])  # fmt: skip
    _, found = imported(PLAIN, content)
    assert len(found.runs) == 2 and reasons(found).count("division by zero") == 2


def test_a_stated_deviation_and_count(imported: Import) -> None:
    spread = {**map_of()["metrics"]["throughput"], "std": "std", "count": "n"}
    _, found = imported(SPREAD, map_of(metrics={"throughput": spread}))
    assert found.runs[0].metrics["throughput"]["std"] == 2.0
    assert found.runs[0].metrics["throughput"]["count"] == 5
    _, found = imported(SPREAD, map_of(metrics={"throughput": {**spread, "ddof": 0}}))
    assert found.runs[0].metrics["throughput"]["std"] == pytest.approx(2.0 * (5 / 4) ** 0.5)
    _, found = imported(
        SPREAD.replace("2.0\t5", "2.0\t2.5"), map_of(metrics={"throughput": spread})
    )
    assert "2.5 is no number of values" in reasons(found) and len(found.runs) == 1


def test_rows_that_differ_only_in_an_unnamed_column_are_no_repeats(imported: Import) -> None:
    _, found = imported(PLAIN, map_of())
    assert len(found.runs) == 2
    assert "the same point as line 2, but another dataset" in reasons(found)
    _, found = imported(PLAIN, map_of(ignore=["dataset"]))
    assert [run.point["ranks"] for run in found.runs] == [1, 2, 1, 2] and not found.refusals


def test_a_row_whose_numbers_are_written_otherwise_is_a_copy(imported: Import) -> None:
    """As a repeat it would halve the uncertainty with a scatter of zero."""
    for copy in ("2\t190\t4\t5", "2\t190.00\t4.0\t5", "2\t1.9e2\t4.0\t5"):
        _, found = imported(f"{SPREAD}{copy}\n", map_of())
        assert len(found.runs) == 2 and "a copy of line 3" in reasons(found)
    for other in ("2\t190.01\t4.0\t5", "2\t190.0\t4.0\t6"):
        _, found = imported(f"{SPREAD}{other}\n", map_of())
        assert len(found.runs) == 3 and not found.refusals


def test_copies_of_a_row_and_numbered_repeats(imported: Import) -> None:
    _, found = imported(SPREAD + "2\t190.0\t4.0\t5\n", map_of())
    assert len(found.runs) == 2 and "a copy of line 3" in reasons(found)
    text = "ranks,repeat,throughput\n1,0,9\n1,1,9\n1,1,8\n"
    _, found = imported(text, map_of(repeat="repeat"))
    assert len(found.runs) == 2 and "repeat 1 of this point is in line 3" in reasons(found)


def test_missing_values_are_missing(imported: Import) -> None:
    text = "ranks,alexnet,vgg\n1,2987,154\n2,,\n4,n/a,307.5\n"
    sides = {
        "parameter": "model",
        "values": {"alexnet": {"rate": "alexnet"}, "vgg": {"rate": "vgg"}},
    }
    rate = {"unit": "images/s", "better": "higher", "scope": "total"}
    _, found = imported(text, map_of(metrics={"rate": rate}, side_by_side=sides, scale="gpus"))
    assert [(run.point["model"], run.point["ranks"]) for run in found.runs] == [
        ("alexnet", 1), ("vgg", 1), ("vgg", 4),
    ]  # fmt: skip
    assert found.empty == 3 and not found.refusals


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("2,0.0", "0 samples/s is not positive"), ("2,1e999", "not a finite number"),
        ("2,fast", "'fast' is not a number"), ("2,1...9", "values were left out"),
        ("0,9", "ranks is 0"), ("2.5,9", "ranks is 2.5"), (",9", "number of ranks is missing"),
        ("2,50 %", "'50 %' is a percentage, and the metric's unit is samples/s"),
        ("200%,9", "'200%' is no number of ranks"),
        ("2", "1 fields, the heading has 2"), ("2,9,9", "3 fields"), ("-2,9", "ranks is -2"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_costs_no_other(imported: Import, row: str, told: str) -> None:
    _, found = imported(f"ranks,throughput\n1,100.5\n{row}\n", map_of())
    assert len(found.runs) == 1 and told in reasons(found)
    assert found.refusals[0].line == 3


def test_a_comma_that_may_be_two_things_is_refused(imported: Import) -> None:
    text = "ranks;throughput\n1;1,234\n2;2,345\n"
    _, found = imported(text, map_of())
    assert not found.runs and "say which in the map" in reasons(found)
    for decimal, value in ((",", 1.234), (".", 1234)):
        _, found = imported(text, map_of(table={"decimal": decimal}))
        assert found.runs[0].metrics["throughput"]["value"] == value
    share = {"column": "throughput", "unit": "1", "better": "higher", "scope": "total"}
    _, found = imported("ranks,throughput\n1,95.5 %\n", map_of(metrics={"throughput": share}))
    assert found.runs[0].metrics["throughput"]["value"] == pytest.approx(0.955)


def test_what_stands_between_thousands_is_said_by_the_map(imported: Import) -> None:
    text = "ranks;throughput\n1;1.024,5\n2;2.001\n4;12.003.880,25\n8;926,5\n16;1.02,5\n"
    _, found = imported(text, map_of())
    assert found.runs[0].metrics["throughput"]["value"] == 926.5 and len(found.runs) == 1
    assert [r.reason for r in found.refusals][:2] == [
        "column throughput: '1.024,5' is not a number; if '.' stands between thousands, say so in "
        'the map: table: {thousands: "."}',
        "column throughput: '2.001' has a decimal point, others a decimal comma; if it stands "
        "between thousands, say so in the map: table: {thousands: '.'}",
    ]
    _, found = imported(text, map_of(table={"thousands": "."}))
    values = [run.metrics["throughput"]["value"] for run in found.runs]
    assert values == [1024.5, 2001, 12003880.25, 926.5]
    (refusal,) = found.refusals
    assert refusal.reason == "column throughput: '1.02,5': '.' is not between thousands"
    _, found = imported("ranks;throughput\n1;1 024.5\n", map_of(table={"thousands": " "}))
    assert found.runs[0].metrics["throughput"]["value"] == 1024.5
    with pytest.raises(UserError, match=r"table\.thousands: ',' is the decimal mark too"):
        imported(text, map_of(table={"thousands": ",", "decimal": ","}))


def test_a_map_states_the_ranks_of_a_node(imported: Import) -> None:
    text = "ranks,per node,throughput\n4,4,100\n8,4,190\n16,,350\n32,2.5,650\n"
    parameters = {"ranks": {"column": "ranks"}, "ranks_per_node": {"column": "per node"}}
    _, found = imported(text, map_of(parameters=parameters))
    assert [run.point.get("ranks_per_node") for run in found.runs] == [4, 4, None]
    (refusal,) = found.refusals
    assert refusal.reason.startswith("ranks on a node is 2.5, not a whole number")
    parameters["ranks_per_node"]["unit"] = "1"
    with pytest.raises(UserError, match="ranks_per_node: takes no type, unit or workload"):
        imported(text, map_of(parameters=parameters))


def test_every_form_of_a_table(tmp_path: Path) -> None:
    rows = [{"ranks": 1, "name": "a", "rate": 1.5}, {"ranks": 2, "name": "b", "rate": 2.5}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    for mark in ",;\t|":
        lines = [mark.join(map(str, row.values())) for row in (dict.fromkeys(rows[0]), *rows)]
        text = "\n".join([mark.join(rows[0]), *lines[1:]]) + "\r\n"
        (tmp_path / f"t{ord(mark)}.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "wide.csv").write_bytes("ranks,name,rate\n1,ä,1.5\n2,b,2.5\n".encode("utf-16"))
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(b"ranks,name,rate\n1,a,1.5\n2,b,2.5\n"))
    for file in sorted(tmp_path.iterdir()):
        table = read_table(file)
        assert table.columns == ("ranks", "name", "rate"), file
        assert [table.number(row.cells["rate"]) for row in table.rows] == [1.5, 2.5], file


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"PK\x03\x04 rest", "save the sheet as CSV"), (b"", "is empty"),
        (b"PAR1xx", "not a whole"),
        ("ranks,x\n1,é\n".encode("latin-1"), ":2: byte 0xe9 is not UTF-8"),
        (b"[1, 2]", "JSON lines"),
        (b"a,a\n1,2\n", "two columns are named 'a'"), (b"just words\n", "no table"),
        (b"ranks,x\n1,\x00\n", "NUL characters"), (b'a,b\n"1,2\n', "not CSV"),
    ],
)  # fmt: skip
def test_what_is_no_table(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "file.csv"
    file.write_bytes(content)
    with pytest.raises(UserError, match=told):
        read_table(file)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"parameters": {"ranks": {"column": "gpus"}}}, "no column 'gpus'; the table has ranks, "),
        ({"parameters": {"ranks": {}}}, "name one of column, formula and value"),
        ({"parameters": {"ranks": {"column": "ranks"}, "source": {"value": 1}}}, "reserved"),
        ({"metrics": {"total_time": map_of()["metrics"]["throughput"]}}, "reserved"),
        ({"metrics": {}}, "metrics"), ({"nonsense": 1}, "unknown key 'nonsense'"),
        (
            {"side_by_side": {"parameter": "p", "values": {"a": {"q": "std"}}},
             "metrics": {"m": {"unit": "1", "better": "lower", "scope": "total"}}},
            "'q' is no metric",
        ),
        ({"work": {"scope": "rank", "samples": "samples"}}, "unknown parameter 'samples'"),
        ({"ignore": ["nothing"]}, "no column 'nothing'"), ({"scale": "site"}, "reserved"),
    ],
)  # fmt: skip
def test_mistakes_of_a_map(imported: Import, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told) as error:
        imported(SPREAD, map_of(**changes))
    assert "map.yaml: " in str(error.value)


def test_the_made_benchmark_grows_and_never_changes(tmp_path: Path) -> None:
    number = {"batch": parameter_entry("integer", "Batch.", None, False)}
    first = make_benchmark(tmp_path, "training", "A table.", number, {"rate": "as printed"})
    run = {**first.defaults, "ranks": 2, "batch": 4}
    more = {**number, "kind": parameter_entry("string", "Kind.", None, False)}
    second = make_benchmark(tmp_path, "training", "Another.", more, {"time": "as printed"})
    assert second.run_id({**second.defaults, "ranks": 2, "batch": 4}, 0) == first.run_id(run, 0)
    assert set(second.metrics) == {"rate", "time"} and second.main_metric == "rate"
    other = {"batch": parameter_entry("string", "Batch.", None, False)}
    with pytest.raises(UserError, match=r"batch: type integer in an earlier import, string"):
        make_benchmark(tmp_path, "training", "A table.", other, {"rate": "as printed"})
    with pytest.raises(UserError, match="a shipped benchmark has this name"):
        make_benchmark(tmp_path, "nt3", "A table.", {}, {"rate": "as printed"})


def test_records_of_a_table(imported: Import, tmp_path: Path) -> None:
    spread = {**map_of()["metrics"]["throughput"], "std": "std", "count": "n"}
    table_map, found = imported(SPREAD, map_of(metrics={"throughput": spread}))
    make_benchmark(tmp_path, table_map.name, "A table.", {}, {"throughput": "rate"})
    written, refused = import_runs(found.runs, tmp_path / "runs" / "imported")
    assert [run.point["ranks"] for run in written] == [1, 2] and not refused
    (record, _) = sorted((tmp_path / "runs").glob("*/*/record.json"))
    metric = json.loads(record.read_text())["metrics"]["throughput"]
    assert (metric["std"], metric["count"]) == (2.0, 5)


def mutated(rng: random.Random, content: bytes) -> bytes:
    """A table after one or two accidents: cut, lines lost, doubled or swapped, odd bytes."""
    for _ in range(rng.choice((1, 1, 2))):
        kind, lines = rng.randrange(8), content.split(b"\n")
        place = rng.randrange(len(content)) if content else 0
        one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        if kind == 0:
            content = content[:place]
        elif kind == 1:
            content = b"\n".join([*lines[:one], lines[one], *lines[one:]])
        elif kind == 2:
            lines[one], lines[other] = lines[other], lines[one]
            content = b"\n".join(lines)
        elif kind == 3:
            content = content.decode("latin-1").encode(rng.choice(("utf-16", "utf-32", "cp500")))
        elif kind == 4:
            content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
        elif kind == 5:
            odd = (b"nan", b"1e999", b"-1", b"9" * 400, b'"', b";", b",", b"\0", b"...", b"%")
            content = content[:place] + rng.choice(odd) + content[place + rng.randrange(3) :]
        elif kind == 6:
            content = b"\n".join(lines[:one] + lines[one + 1 :])
        else:
            content = content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))
    return content


def check_mutated(folder: Path, cases: range) -> None:
    """Every row of a damaged table is a run, a refusal, empty, or the whole table is refused."""
    seeds = {"a.csv": (TRAINING, 2), "b.csv": (PLAIN, 1), "c.csv": (SPREAD, 1),
             "d.jsonl": ('{"ranks": 1, "rate": 2.5}\n{"ranks": 2, "rate": 4.5}\n', 1)}  # fmt: skip
    for name, (text, _) in seeds.items():
        (folder / name).write_text(text)
        (folder / f"{name}.yaml").write_text(draft_of(read_table(folder / name)))
    for case in cases:
        rng = random.Random(case)
        name = rng.choice(list(seeds))
        file = folder / f"mutated-{name}"
        file.write_bytes(mutated(rng, seeds[name][0].encode()))
        try:
            table = read_table(file)
            (folder / "draft.yaml").write_text(draft_of(table))
            runs_of(load_map(folder / "draft.yaml", file))
            found = runs_of(load_map(folder / f"{name}.yaml", file))
        except UserError as error:
            assert "\n" not in str(error) and str(error).count("Traceback") == 0
            continue
        accounted(table, found, seeds[name][1], case)


def accounted(table: Table, found: TableRuns, sides: int, case: int) -> None:
    rows = {run.line for run in found.runs} | {refusal.line for refusal in found.refusals}
    lost = {row.line for row in table.rows} - rows
    assert len(lost) * sides <= found.empty, f"case {case}: lines {sorted(lost)}"


def test_a_damaged_table_gives_no_traceback_and_loses_nothing(tmp_path: Path) -> None:
    check_mutated(tmp_path, range(120))


def test_a_corrected_map_replaces_what_the_first_one_made(imported: Import, tmp_path: Path) -> None:
    table_map, found = imported(SPREAD, map_of())
    make_benchmark(tmp_path, table_map.name, "A table.", {}, {"throughput": "rate"})
    import_runs(found.runs, tmp_path / "runs" / "imported")
    rate = {**map_of()["metrics"]["throughput"], "unit": "images/s"}
    _, found = imported(SPREAD, map_of(metrics={"throughput": rate}))
    written, refused = import_runs(found.runs, tmp_path / "runs" / "imported")
    assert [(run.point["ranks"], run.repeat) for run in written] == [(1, 0), (2, 0)] and not refused
    for path in (tmp_path / "runs").glob("*/*/record.json"):
        assert json.loads(path.read_text())["metrics"]["throughput"]["unit"] == "images/s"


def drafted(tmp_path: Path, text: str) -> tuple[dict[str, Any], str]:
    """The draft of a table, as YAML and as text; it imports the table as it is."""
    file = tmp_path / "table.csv"
    file.write_text(text)
    draft = draft_of(read_table(file))
    (tmp_path / "map.yaml").write_text(draft)
    assert runs_of(load_map(tmp_path / "map.yaml", file)).runs
    return yaml.safe_load(draft), draft


def test_a_draft_of_counts_scatter_and_efficiencies(tmp_path: Path) -> None:
    """Counts beside the scale and an epoch's number are parameters; a standard deviation without a
    count is kept, and is said to give no interval; a printed efficiency is checked."""
    content, text = drafted(
        tmp_path,
        "No. Nodes,No. Cores,Time [s],Time std,Epoch,Parallel Efficiency\n"
        "1,32,100.0,1.5,5,1.0\n2,64,52.0,1.2,5,0.96\n4,128,28.0,1.1,5,0.89\n",
    )
    assert content["parameters"]["ranks"] == {"column": "No. Nodes"} and content["scale"] == "nodes"
    assert {"column": "No. Cores"} in content["parameters"].values()
    assert {"column": "Epoch"} in content["parameters"].values()
    ((_, metric),) = content["metrics"].items()
    assert (metric["column"], metric["std"]) == ("Time [s]", "Time std")
    assert metric["efficiency"] == "Parallel Efficiency" and "ignore" not in content
    assert "# No column counts what Time std are of" in text


def test_a_draft_of_metrics_per_node_and_of_other_efficiencies(tmp_path: Path) -> None:
    text = "Nodes,FOM per node,MPI Efficiency\n1,100,0.99\n2,98,0.95\n4,91,0.90\n"
    metrics = drafted(tmp_path, text)[0]["metrics"]
    assert metrics["fom_per_node"]["scope"] == "rank"
    assert metrics["mpi_efficiency"] == {
        "column": "MPI Efficiency", "unit": "1", "better": "higher", "scope": "total",
        "kind": "intensive",
    }  # fmt: skip


def test_a_draft_of_the_columns_of_llm_foundry(tmp_path: Path) -> None:
    """mosaicml/llm-foundry, scripts/train/benchmarking/README.md: H100s, 70b, 2048."""
    text = (
        "Model,SeqLen (T),# GPUs,MFU,Time,Throughput (S/s),Throughput (T/s),Throughput (T/s/GPU)\n"
        "70b,2048,512,41.25,16.3,251,515636,1007\n70b,2048,256,42.42,15.9,129,265149,1035\n"
    )
    content, _ = drafted(tmp_path, text)
    # Which FLOP are counted is not in the heading, and no share is above 1.
    share = content["metrics"].pop("mfu_unstated")
    assert (share["formula"], share["kind"]) == ("MFU / 100", "intensive")
    names = {spec["column"]: name for name, spec in content["metrics"].items()}
    found = {column: content["metrics"][name] for column, name in names.items()}
    assert next(iter(found)) == "Throughput (S/s)"  # rates before times
    assert found["Throughput (T/s/GPU)"]["scope"] == "rank"
    assert found["Throughput (T/s)"]["scope"] == "total"
    assert found["Throughput (T/s)"]["unit"] == "tokens/s"


def test_a_draft_of_multiples_percentages_remarks_and_clocks(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(
        "Nodes,Throughput (k samples/s),Std,N,MFU (%),Walltime,Notes\n"
        '1,2.485,0.1,5,45.2,1:02:30,\n2,4.752,0.2,5,44.1,0:32:05,"restarted, see log"\n'
    )
    text = draft_of(read_table(file))
    assert "# Walltime: 1:02:30 is no number: give the table a column of seconds." in text
    draft = yaml.safe_load(text)
    assert list(draft["parameters"]) == ["ranks"] and {"Walltime", "Notes"} <= set(draft["ignore"])
    (tmp_path / "map.yaml").write_text(text)
    found = runs_of(load_map(tmp_path / "map.yaml", file))
    assert [run.point["ranks"] for run in found.runs] == [1, 2] and not found.refusals
    rate, share = list(found.runs[0].metrics.values())[:2]
    assert (rate["value"], rate["unit"]) == (2485, "samples/s")
    assert (share["value"], share["unit"]) == (pytest.approx(0.452), "1")
    one = tmp_path / "one.csv"
    one.write_text("GPUs,k img/s,Std,N\n1,2.4,0.1,5\n2,4.7,0.2,5\n")
    (tmp_path / "map.yaml").write_text(draft_of(read_table(one)))
    (metric,) = runs_of(load_map(tmp_path / "map.yaml", one)).runs[0].metrics.values()
    assert (metric["value"], metric["std"], metric["count"]) == (2400, 100, 5)


def test_the_kind_of_a_metric_in_a_map_reaches_the_benchmark(tmp_path: Path) -> None:
    metrics = {"speed": {"definition": "as printed", "kind": "intensive"}, "time": "as printed"}
    made = make_benchmark(tmp_path, "published_kinds", "A table.", {}, metrics)
    assert made.kinds == {"speed": "intensive"} and made.metrics["time"] == "as printed"


# Hugging Face's ultrascale playbook prints a status beside each configuration: ok, or failed.
STATUS = (
    "model,nodes,tp,status,mfu_pct,tok_s\n1B,1,1,ok,39.2,321200.0\n1B,2,1,ok,38.0,622000.0\n"
    "1B,4,1,failed,,\n"
)


def test_a_column_says_which_runs_failed(tmp_path: Path) -> None:
    content, _ = drafted(tmp_path, STATUS)
    assert content["failed"] == {"column": "status", "values": {"failed": "NOT_STATED"}}
    found = runs_of(load_map(tmp_path / "map.yaml", tmp_path / "table.csv"))
    assert [run.unfinished for run in found.runs] == ["", "", "column status: failed"]
    assert [run.failed for run in found.runs] == ["", "", "NOT_STATED"]
    assert found.empty == 0 and found.runs[2].metrics == {}
    assert found.runs[2].point["ranks"] == 4


def test_a_time_of_a_run_that_did_not_finish_is_no_result(tmp_path: Path) -> None:
    """MLPerf's score of a table: an unfinished run is the worst, and none of the times."""
    rows = "".join(f"64,{time},{end}\n" for time, end in ((10, "done"), (12, "done"), (9, "DNF")))
    (tmp_path / "table.csv").write_text("gpus,minutes,end\n" + rows)
    (tmp_path / "map.yaml").write_text(
        "name: published_runs\nparameters: {ranks: {column: gpus}}\n"
        "metrics: {time_to_target: {formula: minutes * 60, unit: s, better: lower, scope: total}}\n"
        "unfinished: {column: end, values: [dnf]}\n"
    )
    table_map = load_map(tmp_path / "map.yaml", tmp_path / "table.csv")
    runs = runs_of(table_map).runs
    results = tmp_path / "results"
    make_benchmark(results, "published_runs", "A table.", {}, {"time_to_target": "as printed"})
    written, refused = import_runs(runs, results / "runs" / "imported")
    assert refused == [] and [bool(run.unfinished) for run in written] == [False, False, True]
    content = campaign_of(written, {}, "", "imported", str(results))
    write_campaign(content, results / "campaign.yaml")
    campaign = load_campaign(results / "campaign.yaml")
    plan = build_plan(campaign, scan(campaign.runs_folder, campaign.unique_runs()))
    summary = build_summary(sorted(results.glob("runs/imported/*/record.json")))
    (tables,) = make_tables(summary, plan).values()
    (row,) = tables["score"].to_dict("records")
    assert (row["runs"], row["reached"], row["score"]) == (3, 2, 720.0)
    with pytest.raises(UserError, match="unfinished"):
        (tmp_path / "map.yaml").write_text(
            (tmp_path / "map.yaml").read_text().replace("column: end", "column: ends")
        )
        load_map(tmp_path / "map.yaml", tmp_path / "table.csv")
