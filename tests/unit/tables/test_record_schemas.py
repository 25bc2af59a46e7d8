"""A record of every schema that was ever written says today what it said then.

tests/records/schema<n> holds what that version left: a run of our own on two GPU nodes with
energy, one of a foreign program, and an imported one. expected.json is what the version before
schema 2 made of them: row of the summary, facts of the report, state, hosts of the ranks, counted
power.
"""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.rank_columns import by_rank, machine_column
from scalesweep.core.record import (
    POWER,
    RECORD,
    SCHEMA,
    BadRecordError,
    NewerRecordError,
    read_record,
    write_record,
)
from scalesweep.state import record_reader
from scalesweep.state.run_state import scan
from scalesweep.tables.canary_rates import CANARY
from scalesweep.tables.epoch_curves import FIRST_EPOCH, ROUNDED, SCORE_RULE, TRAINED
from scalesweep.tables.exchange_text import EXCHANGE, EXCHANGED_BY
from scalesweep.tables.layers import LAYERS
from scalesweep.tables.machine_load import LOAD
from scalesweep.tables.power_series import read_power
from scalesweep.tables.provenance import FACTS, facts_text, read_facts, run_facts
from scalesweep.tables.summary import build_summary
from scalesweep.tables.sweep_text import SWEEP
from tests.conftest import ROOT

RECORDS = ROOT / "tests" / "records"
EXPECTED: dict[str, dict[str, Any]] = json.loads((RECORDS / "expected.json").read_text())
KEPT = [(schema, run) for schema in range(1, SCHEMA + 1) for run in EXPECTED]


@pytest.fixture
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a run, copied."""
    schema, run_id = request.param
    shutil.copytree(RECORDS / f"schema{schema}" / run_id, tmp_path / run_id)
    stored = json.loads((tmp_path / run_id / RECORD).read_text())
    assert stored["schema"] == schema
    return tmp_path / run_id


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("kept", KEPT, indirect=True)
def test_a_record_of_every_schema_reads_as_it_did(kept: Path) -> None:
    expected = EXPECTED[kept.name]
    before = (kept / RECORD).read_bytes()
    state = scan(kept.parent, [kept.name], remember=False, verify=True)[kept.name]
    assert [state.status, state.wall_s, state.source, state.fixed_s, state.extract] == expected[
        "state"
    ]
    frame = build_summary([kept / RECORD])
    facts = read_facts([kept.name], frame[FACTS].tolist())[kept.name]
    text = frame.drop(columns=["_record", "_files"]).to_json(orient="records", double_precision=15)
    row = json.loads(text)[0]
    row[FACTS] = json.loads(row[FACTS])
    # Columns that are younger than what is kept.
    younger = (SWEEP, LAYERS, CANARY, EXCHANGE, EXCHANGED_BY, TRAINED, LOAD, ROUNDED, SCORE_RULE)
    assert [row.pop(name) for name in younger] == [None] * len(younger)
    row.pop(FIRST_EPOCH)  # of the same times as the rest
    assert row == expected["row"]
    record = read_record(kept / RECORD)
    assert plain(dataclasses.asdict(run_facts(record))) == expected["facts"]
    assert plain(dataclasses.asdict(facts)) == expected["facts"]
    hosts = by_rank(machine_column(record["resources"]), record["point"]["ranks"])
    assert (hosts or []) == expected["hosts"]
    if (kept / POWER).exists():
        channels = read_power(kept / POWER, record["energy"])
        assert sorted([c.host, c.domain, c.counted] for c in channels) == expected["counted"]
    assert (kept / RECORD).read_bytes() == before


@pytest.mark.parametrize("kept", KEPT, indirect=True)
def test_what_is_read_is_of_the_schema_of_today(kept: Path) -> None:
    record = read_record(kept / RECORD)
    assert record_reader.read_record(kept / RECORD) == record
    # Written again it is what a launcher of today would have left.
    samples = kept / "samples.npz"
    path = write_record(
        kept.parent / "new" / kept.name, record, samples if samples.exists() else None
    )
    fresh = json.loads((RECORDS / f"schema{SCHEMA}" / kept.name / RECORD).read_text())
    assert json.loads(path.read_text()) == fresh
    assert path.read_bytes() == (RECORDS / f"schema{SCHEMA}" / kept.name / RECORD).read_bytes()


HOROVOD: dict[str, Any] = {
    "local_ranks": 2, "controller": "mpi", "nccl": True, "fusion_threshold_bytes": 67108864,
    "cycle_time_ms": 2.5, "cache_capacity": None,
    "from": {"fusion_threshold_bytes": "default", "cycle_time_ms": "variable"},
}  # fmt: skip
EXCHANGED = {
    "by": "horovod", "backend": "nccl", "controller": "mpi", "local_ranks": 2,
    "bucket_bytes": 67108864, "cycle_s": 2.5 / 1e3, "cache_capacity": None,
    "from": {"bucket_bytes": "default", "cycle_s": "variable"},
}  # fmt: skip
TENSORS = {"by": "horovod", "tensor_bytes": [4, 8]}


@pytest.mark.parametrize("kept", [KEPT[0], KEPT[len(EXPECTED)]], indirect=True)
@pytest.mark.parametrize(
    ("notes", "exchange"),
    [
        ({"horovod": HOROVOD}, EXCHANGED),
        ({"horovod": HOROVOD, "exchange": None}, EXCHANGED),
        ({"horovod": HOROVOD, "exchange": TENSORS}, EXCHANGED | TENSORS),
        ({"horovod": HOROVOD, "tf32": {"device": "CPU"}}, EXCHANGED | {"backend": "mpi"}),
        ({"horovod": {"cycle_time_ms": "x"}}, {"by": "horovod", "backend": None, "cycle_s": "x"}),
        ({"horovod": 3}, None),
        ({"horovod": HOROVOD, "exchange": [4]}, [4]),
        ({"exchange": TENSORS}, TENSORS),
    ],
)
def test_settings_of_horovod_are_those_of_the_exchange(
    kept: Path, notes: dict[str, Any], exchange: Any
) -> None:
    older = {**json.loads((kept / RECORD).read_text()), "notes": notes}
    del older["digest"]
    (kept / RECORD).write_text(json.dumps({**older, "digest": digest_of(older)}))
    for read in (read_record, record_reader.read_record):
        read_notes = read(kept / RECORD)["notes"]
        assert read_notes.get("exchange") == exchange and "horovod" not in read_notes


@pytest.mark.parametrize("kept", KEPT, indirect=True)
def test_an_older_record_is_checked_against_its_own_digest(kept: Path) -> None:
    text = (kept / RECORD).read_text()
    (kept / RECORD).write_text(text.replace("2026-02-01T08:00:00", "2026-02-01T08:00:01"))
    for read in (read_record, record_reader.read_record):
        with pytest.raises(BadRecordError, match="digest differs"):
            read(kept / RECORD)


@pytest.mark.parametrize("kept", KEPT[:1], indirect=True)
def test_a_newer_record_is_refused_and_left_where_it_is(kept: Path) -> None:
    newer = {**json.loads((kept / RECORD).read_text()), "schema": SCHEMA + 1, "more": [1]}
    del newer["digest"]
    (kept / RECORD).write_text(json.dumps({**newer, "digest": digest_of(newer)}))
    said = rf"{kept.name}: a newer version of scalesweep wrote the record \(schema {SCHEMA + 1}\)"
    for read in (read_record, record_reader.read_record):
        with pytest.raises(NewerRecordError, match=said):
            read(kept / RECORD)
    with pytest.raises(UserError, match=said):
        build_summary([kept / RECORD])
    # Whatever its digest: a later version may make it otherwise.
    for digest in (digest_of(newer), "0" * 32, None):
        (kept / RECORD).write_text(json.dumps({**newer, "digest": digest}))
        before = {path.name: path.read_bytes() for path in kept.iterdir()}
        state = scan(kept.parent, [kept.name], quarantine=True, verify=True)[kept.name]
        assert (state.status, state.cause) == ("failed", "NEWER_RECORD")
        assert not state.settled and "update scalesweep" in state.detail
        assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
    # What is no number of a version is damage.
    for schema in (0, -1, 10**6, "3", 2.5, None):
        (kept / RECORD).write_text(json.dumps({**newer, "schema": schema}))
        with pytest.raises(
            BadRecordError, match=r"record schema .*, this version reads schemas 1 to 3"
        ):
            read_record(kept / RECORD)


HOSTS = ["nid00012", 'a"b', "a\\b", *map(chr, range(1, 0x80)), "größe", "\ud800", "\U0001f600", "/"]


@pytest.mark.parametrize("hosts", [HOSTS, *([host] for host in HOSTS), []])
def test_facts_are_the_text_that_json_writes(hosts: list[str]) -> None:
    record: dict[str, Any] = {"resources": {"hosts": {"values": hosts}}, "wall_s": 1e-05}
    record |= {"source": "größe", "energy": {"joules": 1e22, "notes": ["\x7f"]}, "attempt": 1 << 70}
    record["environment"] = {"versions": {"mpi": "½"}, "ranks": {"affinity": {"values": ["0-1"]}}}
    content = dataclasses.asdict(run_facts(record))
    expected = json.dumps(content, separators=(",", ":"))
    assert facts_text(record) == expected
