"""What sacct prints is read right; the text is from the test cluster (Slurm 22.05, no cgroups)."""

from dataclasses import replace

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


def test_a_failed_job_is_the_launchers_to_explain(jobs: dict[int, Job]) -> None:
    job = jobs[2]
    assert (job.state, job.exit_code) == ("FAILED", 3) and cause_of(job) is None
    assert job.asked_mem_bytes == 800 * MIB
    assert job.max_rss_bytes == 10748 * 1024
    assert job.steps_end and not job.out_of_memory


def test_too_much_memory_is_found_without_cgroups(jobs: dict[int, Job]) -> None:
    for number, used in ((3, "0.387"), (4, "0.385")):
        detail = f"job {number} requested 0.0977 GiB per node and used at least {used} GiB"
        assert cause_of(jobs[number]) == ("OUT_OF_MEMORY", detail)
    # The script went on after that and ended well.
    assert jobs[10].out_of_memory and cause_of(jobs[10]) is None


def test_too_much_memory_with_cgroups(jobs: dict[int, Job]) -> None:
    said = replace(jobs[2], state="OUT_OF_MEMORY")
    assert (cause_of(said) or ("", ""))[0] == "OUT_OF_MEMORY"
    by_step = parse(CAPTURED.replace("2.0|COMPLETED|", "2.0|OUT_OF_MEMORY|"))[2]
    assert (cause_of(by_step) or ("", ""))[0] == "OUT_OF_MEMORY"
    unseen = replace(said, max_rss_bytes=None, asked_mem_bytes=None)
    assert "an unknown amount" in (cause_of(unseen) or ("", ""))[1]
    # A killed step within its memory is no lack of it.
    assert cause_of(parse(CAPTURED.replace("2.0|COMPLETED|0:0", "2.0|CANCELLED|0:9"))[2]) is None


def test_the_schedulers_own_causes(jobs: dict[int, Job]) -> None:
    assert cause_of(jobs[5]) == ("CANCELLED", "job 5 was cancelled by user 0")
    assert cause_of(jobs[6]) == ("TIMEOUT", "job 6 reached its limit of 1 min")
    assert cause_of(jobs[15]) == ("NODE_FAIL", "job 15 lost a node of node[3-4]")
    for state in ("PREEMPTED", "DEADLINE", "BOOT_FAIL"):
        found = cause_of(replace(jobs[15], state=state))
        assert found is not None and found[0] == state and "job 15" in found[1]
    assert cause_of(replace(jobs[5], state_detail="")) == ("CANCELLED", "job 5 was cancelled")


def test_a_job_cancelled_in_the_queue_never_started(jobs: dict[int, Job]) -> None:
    job = jobs[8]
    assert (job.started, job.node_list, job.elapsed_s) == (None, "", 0)
    assert job.ended and finished(job) and settled(job)


def test_of_several_tries_the_last_one_counts(jobs: dict[int, Job]) -> None:
    job = jobs[11]
    assert (job.state, job.elapsed_s, job.submitted) == (
        *("COMPLETED", 300),
        "2026-11-21T07:52:15+00:00",
    )
    assert job.max_rss_bytes == 3252 * 1024
