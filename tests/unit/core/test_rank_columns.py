"""Facts of ranks by column: small, and nothing of the rows is lost."""

import json
from typing import Any

import pytest

from scalesweep.core.files import digest_of
from scalesweep.core.rank_columns import (
    by_column,
    by_rank,
    column,
    machine_column,
)
from scalesweep.core.record import (
    parse_record,
)
from scalesweep.core.record_check import SCHEMA, BadRecordError
from tests.unit.tables.test_summary import make_record


def exact(value: Any) -> str:
    """Text that tells 1 from 1.0 and from true."""
    return json.dumps(value)


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([], {"values": []}),
        (["a", "a", "a"], {"values": ["a"]}),
        (["a", "b", "c"], {"values": ["a", "b", "c"]}),
        ([1, True, 1.0, 1], {"values": [1, True, 1.0, 1]}),
    ],
)
def test_what_is_stored(values: list[Any], stored: dict[str, Any]) -> None:
    made = column(values, len(values))
    assert exact(made) == exact(stored)
    assert exact(by_rank(made, len(values))) == exact(values)


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
    return {
        "resources": {"hosts": hosts, "slurm_nodes": hosts},
        "environment": {"ranks": told, "versions": {}, "variables": {}, "node": {}},
    }


def test_nothing_of_the_rows_is_lost() -> None:
    given_rows = rows(32, 8)
    record = by_column({"point": {"ranks": 32}, **given_rows})
    resources, environment = record["resources"], record["environment"]
    told = given_rows["environment"]["ranks"]
    for name in ("visible_gpus", "affinity", "pid", "omp_num_threads", "inter_threads"):
        assert by_rank(environment["ranks"][name], 32) == [rank[name] for rank in told]
    assert by_rank(machine_column(resources), 32) == [rank["host"] for rank in told]
    assert {"host", "slurm_node", "hardware"}.isdisjoint(environment["ranks"])
    facts = environment["hardware"]["facts"]
    assert by_rank(facts["memory_bytes"], 4) == [2**39 + 4096 * rank for rank in (0, 8, 16, 24)]
    assert by_column(record) == record


@pytest.mark.parametrize("literal", ["1e16", "1E-5", "-0.0", "18446744073709551617", '"\\u00e9"'])
def test_numbers_that_json_libraries_write_otherwise(literal: str) -> None:
    run_id = "data_loading-r2-0"
    record = {**make_record(run_id, notes={"x": "@"}), "schema": SCHEMA, "samples": None,
              "resources": {}}  # fmt: skip
    text = json.dumps(record, ensure_ascii=False).replace('"@"', literal)
    for digest in (digest_of(json.loads(text)), "0" * 32):
        content = f'{text[:-1]}, "digest": "{digest}"}}'.encode()
        if digest == "0" * 32:
            with pytest.raises(BadRecordError, match="digest differs"):
                parse_record(content, run_id)
        else:
            assert parse_record(content, run_id)["notes"] == {"x": json.loads(literal)}
