"""What a record may hold: checked when it is written and when it is read, in one place."""

import json
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.record import read_record, write_record
from scalesweep.core.record_check import BadRecordError
from tests.fakes.records import make_record, write_run

METRIC = {"value": 1.5, "unit": "s", "better": "lower", "scope": "total"}
RATE = {"value": 1.5, "unit": "images/s", "better": "higher", "scope": "total"}
ENERGY = {"joules": 5.0, "phases": {"timed": 1.0}, "hosts": ["a"], "domains": {}}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"started": "<script>alert(1)</script>"}, "started is '<script>"),
    ({"wall_s": -1}, "wall_s is -1, out of range"),
    ({"wall_s": float("nan")}, "wall_s is nan, out of range"),
    ({"source": "guessed"}, "allowed: measured, simulated, imported"),
    ({"point": None}, "'point' has the wrong type"),
    ({"run_id": "data_loading-r2-1"}, "the record is of run 'data_loading-r2-1'"),
    ({"point": {"ranks": "2"}}, "point.ranks is '2'"),
    ({"phases": {"timed": "long"}}, "phases.timed is 'long', not a number"),
    ({"metrics": {f"m{i}": METRIC for i in range(5000)}}, "metrics has more than 2,000"),
    ({"metrics": {"x": 3}}, "metric 'x' lacks one of better"),
    ({"metrics": {"x": {**METRIC, "value": "1"}}}, "metric 'x' is '1'"),
    ({"metrics": {"x": {**METRIC, "value": float("inf")}}}, "metric 'x' is inf"),
    ({"metrics": {"x": {**METRIC, "unit": "a\nb"}}}, "its unit 'a\\nb'"),
    ({"metrics": {"x": {**RATE, "value": 0}}}, "x' is 0 images/s: a rate is above 0"),
    ({"metrics": {"x": {**METRIC, "value": -0.1}}}, "'x' is -0.1 s: a time is 0 or more"),
    ({"metrics": {"x": {**METRIC, "better": "less"}}}, "better is higher or lower"),
    ({"work": {"samples_per_epoch": "many"}}, "work.samples_per_epoch is 'many'"),
    ({"energy": [1]}, "'energy' has the wrong type"),
    ({"energy": {**ENERGY, "joules": "5"}}, "energy.joules is '5'"),
    ({"load": {"others": -1}}, "load.others is -1, out of range"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "why"), BAD)
def test_useless_records_are_not_written(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(BadRecordError) as caught:
        write_record(tmp_path / "data_loading-r2-0", make_record(**changes))
    assert why in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "data_loading-r2-0" / "record.json").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"wall_s": None, "source": "imported", "started": "", "ended": ""},
        {"started": "2026-03-01 08:00", "ended": "2026-03-01T08:00:00.123456+01:00"},
        {"metrics": {"x": {**METRIC, "value": None}, "y.z-1": {**METRIC, "unit": "µs / $x$"}}},
        {"phases": {"a phase": 0.0, "b": None}, "phase_spans": [["a phase", 1, 2.5]]},
        {"energy": ENERGY, "unsupported": "needs a GPU"},
        # Nothing was waited for, no error was made.
        {"metrics": {"x": {**METRIC, "value": 0}, "y": {**RATE, "value": 0, "better": "lower"}}},
        {"metrics": {"x": {**METRIC, "unit": "1", "value": -3.5}}},  # a loss
        {"notes": {"x": [1e16, 1e-5, -0.0, 2**64 + 1, "é", "\u2028"]}},
        {"point": {"ranks": 1, "shape": [1, 2], "x": None, "y": True, "z": "text"}},
    ],
)
def test_what_records_have_held_is_fine(tmp_path: Path, changes: dict[str, Any]) -> None:
    record = make_record(**changes)
    path = write_record(tmp_path / record["run_id"], record)
    assert read_record(path) == json.loads(path.read_bytes())


def test_a_record_of_another_schema_ends_the_call(tmp_path: Path) -> None:
    path = write_run(tmp_path, "a", {})
    record = {**json.loads(path.read_text()), "schema": 5}
    del record["digest"]
    path.write_text(json.dumps({**record, "digest": digest_of(record)}))
    with pytest.raises(UserError, match=r"a: another version .* \(schema 5, this") as caught:
        read_record(path)
    assert not isinstance(caught.value, BadRecordError)
