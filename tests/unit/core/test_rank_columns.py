"""Facts of ranks by column: small, and nothing of the rows is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.rank_columns import (
    by_column,
    by_rank,
    column,
    machine_column,
    machine_names,
    values_of,
)
from scalesweep.core.record import (
    RECORD,
    completed,
    parse_record,
    read_record,
    record_text,
    write_record,
)
from scalesweep.core.record_check import SCHEMA, BadRecordError
from scalesweep.state import record_reader
from tests.unit.tables.test_summary import make_record

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5) | st.sampled_from([0, 1, 0.0, -0.0, 1.0, True, "1", 1e16, 1e-05])
)  # fmt: skip
TREES = st.recursive(
    SCALARS, lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=3), some)
)


def exact(value: Any) -> str:
    """Text that tells 1 from 1.0 and from true."""
    return json.dumps(value)


@given(values=st.lists(TREES, min_size=1, max_size=9) | st.lists(st.sampled_from("ab"), min_size=1))
@pytest.mark.slow
def test_a_column_gives_each_rank_its_value(values: list[Any]) -> None:
    made = json.loads(json.dumps(column(values, len(values))))
    assert exact(by_rank(made, len(values))) == exact(values)
    firsts = list(dict.fromkeys(map(exact, values)))
    assert list(dict.fromkeys(map(exact, values_of(made)))) == firsts
    assert by_rank(column(values, len(values) + 1), len(values) + 1) is None


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([], {"values": []}),
        (["a", "a", "a"], {"values": ["a"]}),
        (["a", "b", "c"], {"values": ["a", "b", "c"]}),
        (["a", "b"] * 3, {"values": ["a", "b"], "at": [0, 1, 0, 1, 0, 1]}),
        ([1, True, 1.0, 1], {"values": [1, True, 1.0, 1]}),
    ],
)
def test_what_is_stored(values: list[Any], stored: dict[str, Any]) -> None:
    assert exact(column(values, len(values))) == exact(stored)


@pytest.mark.parametrize(
    "bad",
    [None, 3, [], {}, {"values": 3}, {"values": [], "at": []}, {"values": ["a"], "at": [0, 7]},
     {"values": ["a"], "at": ["x", 0]}, {"values": ["a", "b", "c"]}, {"values": ["a"], "at": 5}],
)  # fmt: skip
def test_what_is_no_column_says_nothing(bad: Any) -> None:
    assert by_rank(bad, 2) is None
    assert isinstance(machine_names({"hosts": bad}), list)


def rows(ranks: int, per_host: int = 1) -> dict[str, Any]:
    """What a program of our own writes of so many ranks."""
    hosts = [f"c{rank // per_host:06}-node.cluster.example.org" for rank in range(ranks)]
    told = [
        {
            "hardware": {"cpu_model": "EPYC", "cpus": 128, "memory_bytes": 2**39 + 4096 * rank,
                         "gpus": [], "gpu_links": {}} if rank % per_host == 0 else None,
            "visible_gpus": str(rank % per_host), "host": host, "slurm_node": host,
            "affinity": f"{rank % per_host * 8}-{rank % per_host * 8 + 7}", "pid": 4000 + 7 * rank,
            "omp_num_threads": "8", "inter_threads": 2, "intra_threads": 0,
        }
        for rank, host in enumerate(hosts)
    ]  # fmt: skip
    energy = {
        "hosts": list(dict.fromkeys(hosts)), "interval_s": 1.0, "phases": {}, "notes": [],
        "domains": {
            host: {"package": {"joules": 5000.123 + place, "counted": True, "seconds": 60.0}}
            for place, host in enumerate(dict.fromkeys(hosts))
        },
    }  # fmt: skip
    return {
        "resources": {"hosts": hosts, "slurm_nodes": hosts},
        "environment": {"ranks": told, "versions": {}, "variables": {}, "node": {}},
        "energy": energy,
    }


def test_nothing_of_the_rows_is_lost() -> None:
    given_rows = rows(32, 8)
    record = by_column({"point": {"ranks": 32}, **given_rows})
    resources, environment = record["resources"], record["environment"]
    told = given_rows["environment"]["ranks"]
    for name in ("visible_gpus", "affinity", "pid", "omp_num_threads", "inter_threads"):
        assert by_rank(environment["ranks"][name], 32) == [rank[name] for rank in told]
    assert by_rank(machine_column(resources), 32) == [rank["host"] for rank in told]
    assert resources["slurm_nodes"] == "hosts" and "hardware" not in environment["ranks"]
    assert {"host", "slurm_node"}.isdisjoint(environment["ranks"])
    facts = environment["hardware"]["facts"]
    assert by_rank(facts["memory_bytes"], 4) == [2**39 + 4096 * rank for rank in (0, 8, 16, 24)]
    package = record["energy"]["domains"]["package"]
    assert by_rank(package["joules"], 4) == [5000.123, 5001.123, 5002.123, 5003.123]
    assert by_column(record) == record


def test_hosts_and_nodes_that_differ_are_both_kept() -> None:
    told = rows(2)
    told["resources"]["slurm_nodes"] = ["n1", None]
    told["environment"]["ranks"][1]["slurm_node"] = None
    record = by_column({"point": {"ranks": 2}, **told})
    assert by_rank(record["resources"]["slurm_nodes"], 2) == ["n1", None]
    assert len(machine_names(record["resources"])) == 2
    assert by_rank(record["environment"]["ranks"]["slurm_node"], 2) == [
        told["environment"]["ranks"][0]["slurm_node"], None,
    ]  # fmt: skip


def test_hosts_of_which_the_ranks_are_not_known() -> None:
    foreign = {"point": {"ranks": 8}, "resources": {"hosts": ["a", "b"], "slurm_nodes": []}}
    resources = by_column(foreign)["resources"]
    assert resources == {"hosts": {"values": ["a", "b"], "at": None}, "slurm_nodes": None}
    assert machine_names(resources) == ["a", "b"]
    assert by_rank(machine_column(resources), 8) is None
    one = by_column({**foreign, "resources": {"hosts": ["a"], "slurm_nodes": ["a"]}})["resources"]
    assert machine_names(one) == ["a"] and by_rank(machine_column(one), 8) is None


@pytest.mark.parametrize(("per_host", "most"), [(1, 110_000), (8, 40_000)])
def test_a_record_of_1024_ranks_is_small(per_host: int, most: int) -> None:
    """With power and memory of every host, and names of 34 letters: shorter in bench/."""
    told = rows(1024, per_host)
    record = make_record("data_loading-r1024-0", point={"ranks": 1024}, samples=None, **told)
    assert len(record_text(completed(record, "data_loading-r1024-0"))) < most
    del record["energy"]
    assert len(record_text(completed(record, "data_loading-r1024-0"))) < 60_000


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(notes=st.dictionaries(st.text(max_size=4), TREES | FLOATS, max_size=4))
@pytest.mark.slow
def test_the_fast_reader_reads_what_the_standard_library_reads(
    tmp_path: Path, notes: dict[str, Any]
) -> None:
    record = make_record("data_loading-r2-0", notes=notes)
    try:
        path = write_record(tmp_path / "data_loading-r2-0", record)
    except BadRecordError:  # text that is no UTF-8
        return
    fast, slow = record_reader.read_record(path), read_record(path)
    assert (
        canonical_json(fast)
        == canonical_json(slow)
        == canonical_json(json.loads(path.read_bytes()))
    )
    assert canonical_json(fast["notes"]) == canonical_json(notes)


@pytest.mark.parametrize(
    "literal",
    ["1e16", "1E-5", "-0.0", "1e400", "NaN", "-Infinity", "18446744073709551617",
     "1.0000000000000001", "9007199254740993", "1e-400", '"\\ud800"', '"\\u00e9"', '"\u2028"',
     "[" * 2000 + "]" * 2000, "1" * 5000, '{"a": 1, "a": 2}'],
)  # fmt: skip
@pytest.mark.parametrize("honest", [True, False])
def test_literals_that_readers_differ_about(literal: str, honest: bool) -> None:
    """Whatever is in the text, both readers accept the same and refuse the same."""
    run_id = "data_loading-r2-0"
    record = {
        **make_record(run_id, notes={"x": "@"}),
        "schema": SCHEMA,
        "samples": None,
        "resources": {},
    }
    text = json.dumps(record, ensure_ascii=False).replace('"@"', literal)
    try:
        digest = digest_of(json.loads(text)) if honest else digest_of(record)
    except (ValueError, RecursionError):
        digest = "0" * 32
    content = f'{text[:-1]}, "digest": "{digest}"}}'.encode()
    found = []
    for parse in (parse_record, record_reader.parse_record):
        try:
            found.append(canonical_json(parse(content, run_id)))
        except BadRecordError as error:
            assert "\n" not in str(error)
            found.append("refused")
    assert found[0] == found[1]
    assert (found[0] == "refused") == (not honest or digest == "0" * 32)


def test_an_encoding_that_only_the_standard_library_reads(tmp_path: Path) -> None:
    path = write_record(tmp_path / "data_loading-r2-0", make_record("data_loading-r2-0"))
    whole = read_record(path)
    path.write_bytes(path.read_text().encode("utf-16"))
    assert record_reader.read_record(path) == read_record(path) == whole
    assert (tmp_path / "data_loading-r2-0" / RECORD).exists()
