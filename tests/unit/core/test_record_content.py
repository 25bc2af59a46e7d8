"""What a record may hold: checked when it is written and when it is read, in one place."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.rank_columns import by_column
from scalesweep.core.record import BadRecordError, read_record, write_record
from scalesweep.core.record_content import UnusableRecordError, check_content
from tests.fakes.records import make_record

METRIC = {"value": 1.5, "unit": "s", "better": "lower", "scope": "total"}
RATE = {"value": 1.5, "unit": "images/s", "better": "higher", "scope": "total"}
ENERGY = {"joules": 5.0, "phases": {"timed": 1.0}, "hosts": ["a"], "domains": {}}

FUNCTION = {
    "name": "f", "kind": "cpu", "part": None, "calls": 1, "own_s": 1.0, "total_s": 1.0,
    "min_s": None, "max_s": None, "share": None,
}  # fmt: skip


def of_functions(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"functions": {"ranks": 1, "rows": list(rows)}}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a script for a date": ({"started": "<script>alert(1)</script>"}, "started is '<script>"),
    "no date": ({"ended": ""}, "ended is '', not a date"),
    "year 1": ({"started": "0001-01-01T00:00:00+00:00"}, "started is"),
    "negative time": ({"wall_s": -1}, "wall_s is -1, out of range"),
    "huge time": ({"wall_s": 1e200}, "wall_s is 1e+200, out of range"),
    "huge integer": ({"version": 10**50}, "version and repeat are not small numbers"),
    "no ranks": ({"point": {}}, "point.ranks is None"),
    "ranks of text": ({"point": {"ranks": "2"}}, "point.ranks is '2'"),
    "an unmeasurable parameter": ({"point": {"ranks": 1, "x": 10**400}}, "point.x is"),
    "phases of text": ({"phases": {"timed": "long"}}, "phases.timed is 'long', not a number"),
    "many phases": ({"phases": {str(i): 1.0 for i in range(2000)}}, "phases has 2,000 entries"),
    "spans": ({"phase_spans": [["timed", 1.0]]}, "phase_spans: ['timed', 1.0] is not [phase"),
    "spans of text": ({"phase_spans": [["timed", 1.0, "x"]]}, "phase_spans is 'x', not a number"),
    "many metrics": ({"metrics": {f"m{i}": METRIC for i in range(5000)}}, "metrics has 5,000"),
    "a metric that is a number": ({"metrics": {"x": 3}}, "metric 'x' is 3, not an object"),
    "a metric in part": ({"metrics": {"x": {"value": 1}}}, "metric 'x' lacks 'better'"),
    "a metric of text": ({"metrics": {"x": {**METRIC, "value": "1"}}}, "metric 'x' is '1'"),
    "a unit that is a list": ({"metrics": {"x": {**METRIC, "unit": ["s"]}}}, "its unit ['s']"),
    "a unit of lines": ({"metrics": {"x": {**METRIC, "unit": "a\nb"}}}, "its unit 'a\\nb'"),
    "a long unit": ({"metrics": {"x": {**METRIC, "unit": "s" * 999}}}, "64 characters"),
    "a negative rate": ({"metrics": {"x": {**RATE, "value": -7.7}}}, "x' is -7.7 images/s: a "),
    "a rate of nothing": ({"metrics": {"x": {**RATE, "value": 0}}}, "x' is 0 images/s: a rate "),
    "a time below 0": ({"metrics": {"x": {**METRIC, "value": -0.1}}}, "'x' is -0.1 s: a time is "),
    "a direction": ({"metrics": {"x": {**METRIC, "better": "less"}}}, "better is higher or lower"),
    "a name": ({"metrics": {"x\ty": METRIC}}, "metrics: 'x\\ty' is not a name"),
    "work": ({"work": {"samples_per_epoch": "many"}}, "work.samples_per_epoch is 'many'"),
    "energy": ({"energy": [1]}, "what the record says of its files"),
    "domains": ({"energy": {**ENERGY, "domains": [1]}}, "energy.domains"),
    "joules": ({"energy": {**ENERGY, "joules": "5"}}, "energy.joules is '5'"),
    "unsupported": ({"unsupported": 3}, "unsupported is 3, not text"),
    "functions of a list": ({"functions": [FUNCTION]}, "functions.rows is not a list"),
    "many functions": (of_functions(*[FUNCTION] * 1001), "not a list of at most 1,000"),
    "functions of nothing": ({"functions": {"ranks": 0, "rows": []}}, "functions.ranks is 0, "),
    "a function in part": (of_functions({"name": "f"}), "functions: {'name': 'f'} is not a"),
    "a long name": (of_functions({**FUNCTION, "name": "f" * 1001}), "are not names"),
    "a time of text": (of_functions({**FUNCTION, "own_s": "1"}), "functions.own_s is '1'"),
    "calls below 0": (of_functions({**FUNCTION, "calls": -1}), "functions.calls is -1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_no_table_can_use_is_not_written(tmp_path: Path, name: str) -> None:
    changes, why = BAD[name]
    record = make_record("data_loading-r2-0", **changes)
    with pytest.raises((UnusableRecordError, BadRecordError)) as caught:
        write_record(tmp_path / "data_loading-r2-0", record)
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
        {"point": {"ranks": 1, "shape": [1, 2], "x": None, "y": True, "z": "text"}},
    ],
)
def test_what_records_have_held_is_fine(tmp_path: Path, changes: dict[str, Any]) -> None:
    record = by_column(make_record(**changes))
    check_content(record)
    assert read_record(write_record(tmp_path / record["run_id"], record))


def test_a_record_is_not_read_beyond_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_record(tmp_path / "a", make_record("a"))
    size = path.stat().st_size
    monkeypatch.setattr("scalesweep.core.record.MAX_BYTES", size)
    assert read_record(path)["run_id"] == "a"
    monkeypatch.setattr("scalesweep.core.record.MAX_BYTES", size - 1)
    with pytest.raises(BadRecordError, match=f"a: record.json has {size:,} bytes, at most"):
        read_record(path)
