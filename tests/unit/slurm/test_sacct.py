"""What sacct prints is read right; the text is from the test cluster (Slurm 22.05, no cgroups)."""

from dataclasses import replace
from typing import Any

import pytest

from scalesweep.slurm import sacct
from scalesweep.slurm.sacct import Job, cause_of, finished, settled

MIB = 2**20
# sacct -nP --units=K -D; job 15 is pieced together from several looks.
CAPTURED = """\
2|FAILED|3:0|2026-11-21T07:52:11|2026-11-21T07:52:12|2026-11-21T07:52:14|2|60|2|8|node[1-2]|main|1638400K||0
2.batch|FAILED|3:0|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:14|2||1|6|node1|||10748K|0
2.0|COMPLETED|0:0|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:14|2||2|8|node[1-2]|||1780K|0
3|FAILED|0:9|2026-11-21T07:52:11|2026-11-21T07:52:12|2026-11-21T07:52:13|1|60|1|1|node1|main|102400K||
3.batch|CANCELLED by 0|0:9|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:13|1||1|1|node1|||405484K|0
4|FAILED|9:0|2026-11-21T07:52:11|2026-11-21T07:52:12|2026-11-21T07:52:13|1|60|1|1|node1|main|102400K||0
4.batch|FAILED|9:0|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:13|1||1|1|node1|||10828K|0
4.0|CANCELLED by 0|0:9|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:13|1||1|1|node1|||404060K|0
5|CANCELLED by 0|0:0|2026-11-21T07:52:11|2026-11-21T07:52:12|2026-11-21T07:52:15|3|60|1|1|node1|main|1048576K||
5.batch|CANCELLED|0:15|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:15|3||1|1|node1|||10680K|0
6|TIMEOUT|0:0|2026-11-21T07:52:11|2026-11-21T07:52:12|2026-11-21T07:53:22|70|1|1|1|node1|main|1048576K||
6.batch|CANCELLED|0:15|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:53:22|70||1|1|node1|||3212K|0
8|CANCELLED by 0|0:0|2026-11-21T07:52:11|2026-11-21T07:52:15|2026-11-21T07:52:15|0|60|1|1|None assigned|main|1048576K||0
10|COMPLETED|0:0|2026-11-21T07:52:11|2026-11-21T07:52:12|2026-11-21T07:52:14|2|60|2|2|node[1-2]|main|204800K||0
10.batch|COMPLETED|0:0|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:14|2||1|1|node1|||10712K|0
10.0|CANCELLED by 0|0:9|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:13|1||2|2|node[1-2]|||404016K|0
11|REQUEUED|0:0|2026-11-21T07:52:11|2026-11-21T07:52:12|2026-11-21T07:52:15|3|60|1|1|node4|main|1048576K||
11.batch|CANCELLED|0:15|2026-11-21T07:52:12|2026-11-21T07:52:12|2026-11-21T07:52:15|3||1|1|node4|||3288K|0
11|COMPLETED|0:0|2026-11-21T07:52:15|2026-11-21T07:54:16|2026-11-21T07:59:16|300|60|1|1|node4|main|1048576K||
11.batch|COMPLETED|0:0|2026-11-21T07:54:16|2026-11-21T07:54:16|2026-11-21T07:59:16|300||1|1|node4|||3252K|0
15|NODE_FAIL|0:0|2026-11-21T08:00:11|2026-11-21T08:00:11|2026-11-21T08:00:41|30|60|2|2|node[3-4]|main|2097152K||0
15.batch|CANCELLED|0:15|2026-11-21T08:00:11|2026-11-21T08:00:11|2026-11-21T08:00:41|30||1|1|node3|||10752K|0
"""  # noqa: E501


def whole(text: str) -> str:
    """Lines of sacct with the time in which a job was suspended, in place of its energy, and no
    comment."""
    lines = (line.rpartition("|")[0] for line in text.splitlines())
    return "".join(f"{line}|00:00:00|\n" for line in lines)


def parse(text: str) -> dict[int, Job]:
    return sacct.parse(whole(text))


@pytest.fixture(scope="module")
def jobs() -> dict[int, Job]:
    return parse(CAPTURED)


@pytest.mark.parametrize(
    ("number", "values"),
    [
        # A failed job is the launcher's to explain.
        (2, {"state": "FAILED", "exit_code": 3, "asked_mem_bytes": 800 * MIB,
             "max_rss_bytes": 10748 * 1024, "steps_end": True, "out_of_memory": False}),
        # One that was cancelled in the queue never started.
        (8, {"started": None, "node_list": "", "elapsed_s": 0}),
        # Of several tries the last one counts.
        (11, {"state": "COMPLETED", "elapsed_s": 300, "submitted": "2026-11-21T07:52:15+00:00",
              "max_rss_bytes": 3252 * 1024}),
    ],
)  # fmt: skip
def test_what_is_read(jobs: dict[int, Job], number: int, values: dict[str, Any]) -> None:
    job = jobs[number]
    assert {name: getattr(job, name) for name in values} == values
    assert job.ended and finished(job) and settled(job)


OOM = "OUT_OF_MEMORY"
UNSEEN: dict[str, Any] = {"max_rss_bytes": None, "asked_mem_bytes": None}


@pytest.mark.parametrize(
    ("number", "change", "cause", "detail"),
    [
        # Without cgroups; the script of job 10 went on after that and ended well.
        (3, {}, OOM, "job 3 requested 0.0977 GiB per node and used at least 0.387 GiB"),
        (4, {}, OOM, "job 4 requested 0.0977 GiB per node and used at least 0.385 GiB"),
        *((number, {}, "", "") for number in (2, 10)),
        (2, {"state": OOM}, OOM, "job 2 requested"),
        (2, {"state": OOM, **UNSEEN}, OOM, "an unknown amount"),
        (5, {}, "CANCELLED", "job 5 was cancelled by user 0"),
        (5, {"state_detail": ""}, "CANCELLED", "job 5 was cancelled"),
        (6, {}, "TIMEOUT", "job 6 reached its limit of 1 min"),
        (15, {}, "NODE_FAIL", "job 15 lost a node of node[3-4]"),
        *((15, {"state": s}, s, "job 15") for s in ("PREEMPTED", "DEADLINE", "BOOT_FAIL")),
    ],
)
def test_causes(
    jobs: dict[int, Job], number: int, change: dict[str, Any], cause: str, detail: str
) -> None:
    found = cause_of(replace(jobs[number], **change)) or ("", "")
    assert found[0] == cause and detail in found[1]


def test_a_step_that_was_killed_lacked_memory_only_if_it_says_so() -> None:
    for said, lacked in (("OUT_OF_MEMORY|0:0", True), ("CANCELLED|0:9", False)):
        job = parse(CAPTURED.replace("2.0|COMPLETED|0:0", f"2.0|{said}"))[2]
        assert job.out_of_memory == lacked and (cause_of(job) is not None) == lacked
