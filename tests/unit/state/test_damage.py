"""Whatever bit of a file is flipped: it is found and named, or without effect.

A flipped bit may fall into a space between two values.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scalesweep.compute.job_spec import read_order, write_order
from scalesweep.core import record
from scalesweep.core.errors import UserError
from scalesweep.core.files import is_whole, sealed
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import SAMPLES, read_record, read_samples
from scalesweep.core.record_check import BadRecordError
from tests.fakes.plan import whole_plan
from tests.fakes.records import times, write_run
from tests.soak.launching import order

RUN = "data_loading-r2-0"


def flips(content: bytes, bits: int = 8) -> Iterator[bytes]:
    """The content with one bit flipped, for ``bits`` of every byte that it has."""
    changed = bytearray(content)
    for place in range(len(content)):
        for bit in range(place, place + bits):
            changed[place] ^= 1 << bit % 8
            yield bytes(changed)
            changed[place] ^= 1 << bit % 8


def test_every_flipped_bit_of_a_run_is_found_or_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(tmp_path, RUN, times())
    good, content = read_record(path), path.read_bytes()
    found = 0
    for changed in flips(content):
        monkeypatch.setattr(record, "record_bytes", lambda path, changed=changed: changed)
        try:
            assert read_record(path) == good
        except BadRecordError as error:
            assert str(error).startswith(RUN) and "\n" not in str(error)
            found += 1
    assert found > 7 * len(content)  # what is left are spaces between values
    samples = path.parent / SAMPLES
    for changed in flips(samples.read_bytes(), bits=1):
        samples.write_bytes(changed)
        with pytest.raises(BadRecordError, match=f"{SAMPLES} was changed"):
            read_samples(path.parent, good)


def test_every_flipped_bit_of_an_order_and_of_a_plan_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "order.json"
    write_order(path, order(tmp_path / "a", "", argv=["x y", "é"]))
    content, good = path.read_bytes(), read_order(path)
    for changed in flips(content):
        monkeypatch.setattr(Path, "read_bytes", lambda path, changed=changed: changed)
        try:
            assert read_order(path) == good
        except UserError as error:
            assert f"{path}: cannot read the job specification" in str(error)
    run = {"run_id": "a", "status": "done", "point": {"é": 1.5}}
    plan = whole_plan({"experiments": [{"name": "e", "runs": [run]}]})
    content = sealed(plan).encode()
    assert json.loads(content) | {"digest": ""} == plan | {"digest": ""} and is_whole(content)
    for changed in flips(content):
        monkeypatch.setattr(Path, "read_bytes", lambda path, changed=changed: changed)
        try:
            assert read_plan(path)["experiments"] == plan["experiments"]
        except UserError as error:
            assert str(error).startswith(str(path))
