"""Jobs of a batch system by three commands, here of the shell."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.smk.batch_queue import BatchQueue, filled, run_request
from tests.fakes.executor import Stub

SITE: Any = SimpleNamespace(
    nodes_for=lambda point: 1, cores_per_node=4, memory_gib_per_node=None, gpus_per_node=0
)
RUN: Any = SimpleNamespace(point={"ranks": 2})
KEYS = SimpleNamespace(memory_gib_per_rank=None)


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BatchQueue:
    monkeypatch.chdir(tmp_path)
    experiment = SimpleNamespace(keys=KEYS, time_limit_minutes=1)
    campaign, runs = SimpleNamespace(site=SITE), {"a": (experiment, RUN)}
    context = SimpleNamespace(runs_folder="runs", campaign=campaign, runs=runs)
    rules: Any = SimpleNamespace(context=context, made=lambda job: Path("made", job.run_id))
    commands = SimpleNamespace(submit_cmd="", queue_cmd="cat queue", cancel_cmd="")
    return BatchQueue(rules, commands, latency_s=0.0)


def test_a_job_is_submitted_and_cancelled(queue: BatchQueue) -> None:
    queue.commands.submit_cmd = "echo your job 17 is {resources.slots}; cp -t ."
    assert queue.submit(Stub("a"), "launch") == (17, "")
    assert Path("job.sh").read_text() == f"#!/bin/sh\ncd {Path.cwd()} && launch\n"
    for command, why in (
        ("echo taken #", "no id of a job in 'taken'"),
        ("echo no >&2; false", "no"),
    ):
        queue.commands.submit_cmd = command
        job_id, said = queue.submit(Stub("a"), "launch")
        assert job_id is None and said.startswith(why)
    assert queue.refuse(Stub("a"), "no")[0]
    assert json.loads(Path("runs/a/failure.json").read_text())["cause"] == "NOT_SUBMITTED"
    queue.commands.cancel_cmd = "touch cancelled"
    queue.call_off([17, 18], left=False)
    assert Path("18").exists() and Path("cancelled").exists()


def test_what_left_the_queue_is_over(queue: BatchQueue, caplog: pytest.LogCaptureFixture) -> None:
    jobs = {17: Stub("a"), 18: Stub("b"), 19: Stub("c")}
    for _ in range(2):  # it cannot be read, and a line says so once
        assert queue.ended(jobs) == {}
    assert caplog.text.count("the queue cannot be read") == 1
    Path("made").mkdir()
    Path("made/a").touch()
    Path("queue").write_text("job-ID  prior\n-----\n     19 0.5 scalesweep\n")
    ended = queue.ended(jobs)
    over, line = ended[18]
    assert ended.keys() == {17, 18} and ended[17] == (True, "")
    assert over and "b: KILLED: job 18 left the queue before" in line
    queue.latency_s = 60.0  # on a network file system
    assert queue.ended(jobs) == {17: (True, "")}


def test_the_submit_command_names_resources() -> None:
    experiment: Any = SimpleNamespace(keys=KEYS, time_limit_minutes=1)
    request = run_request(SITE, experiment, RUN)
    assert filled("qsub {resources.slots} {resources.runtime}", request) == "qsub 4 3"
    for wrong in ("{resources.slot}", "{log}"):
        with pytest.raises(UserError, match=r"submit-cmd: .*allowed: \{resources.nodes\}, "):
            filled(f"qsub {wrong}", request)
