"""order.json: what a job is told of a run."""

import threading
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute import job_spec
from scalesweep.compute.job_spec import Order, read_order, write_order
from scalesweep.core.errors import UserError


def test_an_order_that_lacks_something_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    other: Any = {"command": "make data"}
    write_order(path, other)
    with pytest.raises(UserError, match=r"cannot read the job specification \(it lacks 'argv'\)"):
        read_order(path)


def test_a_job_waits_for_its_own_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "order.json"
    order: Any = dict.fromkeys(Order.__required_keys__, "x")
    digest = write_order(path, {**order, "run_id": "new"})
    content = path.read_bytes()
    # What a network file system still shows, and then shows no more.
    write_order(path, {**order, "run_id": "old"})
    monkeypatch.setattr(job_spec, "_POLL_S", 0.01)
    threading.Timer(0.2, path.write_bytes, [content]).start()
    assert read_order(path, digest)["run_id"] == "new"
    path.unlink()
    threading.Timer(0.2, path.write_bytes, [content]).start()
    assert read_order(path, digest)["run_id"] == "new"
    # Another order was written meanwhile, for a job that was requeued.
    monkeypatch.setattr(job_spec, "CACHED_S", 0.1)
    assert read_order(path, "0" * 32)["run_id"] == "new"
    path.unlink()
    with pytest.raises(UserError, match="cannot read the job specification"):
        read_order(path, digest)
