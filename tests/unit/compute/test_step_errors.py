"""What srun and slurmstepd print is read right; the text is from the test cluster (Slurm 22.05)."""

import shlex
import signal
from pathlib import Path

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.compute.step_errors import has_labels, read_step_errors, step_errors
from tests.conftest import ROOT
from tests.unit.compute.test_launcher import failure, spec

ONE = """\
mine own words
srun: error: node1: task 0: Exited with exit code 3
"""
FOUR = """\
2: mine own words
srun: error: node3: task 2: Exited with exit code 3
srun: launch/slurm: _step_signal: Terminating StepId=1.1
0: slurmstepd-node1: error: *** STEP 1.1 ON node1 CANCELLED AT 2026-11-22T07:50:34 ***
srun: error: node1: task 0: Terminated
srun: error: node4: task 3: Terminated
srun: error: node2: task 1: Terminated
srun: Force Terminated StepId=1.1
"""
CRASH = """\
srun: error: node3: task 2: Segmentation fault (core dumped)
srun: launch/slurm: _step_signal: Terminating StepId=1.3
srun: error: node4: task 3: Terminated
slurmstepd-node1: error: *** STEP 1.3 ON node1 CANCELLED AT 2026-11-22T07:50:36 ***
"""
MEMORY = """\
slurmstepd-node2: error: StepId=2.0 exceeded memory limit (408899584 > 104857600), being killed
slurmstepd-node1: error: Exceeded job memory limit
srun: Job step aborted: Waiting up to 4 seconds for job step to finish.
slurmstepd-node1: error: *** STEP 2.0 ON node1 CANCELLED AT 2026-11-22T07:50:44 ***
srun: error: node[1-2]: tasks 0-1: Terminated
"""
CGROUP = """\
slurmstepd: error: Detected 1 oom-kill event(s) in StepId=5.0. Some of your processes may have \
been killed by the cgroup out-of-memory handler.
srun: error: nid00012: task 4: Out Of Memory
srun: launch/slurm: _step_signal: Terminating StepId=5.0
"""
LOST = """\
srun: error: Task launch for StepId=7.0 failed on node node3: Communication connection failure
srun: error: Application launch failed: Communication connection failure
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: error: Timed out waiting for job step to complete
"""
MISSING = """\
slurmstepd-node1: error: execve(): /no/such/prog: No such file or directory
srun: error: node4: task 3: Exited with exit code 2
"""


@pytest.mark.parametrize(
    ("text", "code", "wanted"),
    [
        (ONE, 3, ("NON_ZERO_EXIT", "exit code 3: mine own words", 3, None)),
        (FOUR, 143, ("NON_ZERO_EXIT", "exit code 3: mine own words", 3, None)),
        (CRASH, 143, ("KILLED", "signal SIGSEGV", None, signal.SIGSEGV)),
        (
            MEMORY, 143,
            ("OUT_OF_MEMORY", "StepId=2.0 exceeded memory limit (408899584 > 104857600), being "
             "killed", 143, None),
        ),
        (CGROUP, 137, ("OUT_OF_MEMORY", "Detected 1 oom-kill event(s) in StepId=5.0", 137, None)),
        (
            LOST, 1,
            ("LAUNCH_FAILED", "Task launch for StepId=7.0 failed on node node3: Communication "
             "connection failure", 1, None),
        ),
        # Slurm was slow to answer, and the step came up.
        (
            f"srun: error: slurm_receive_msgs: Socket timed out on send/recv operation\n{ONE}", 3,
            ("NON_ZERO_EXIT", "exit code 3: mine own words", 3, None),
        ),
        (
            MISSING, 2,
            ("NON_ZERO_EXIT", "cannot start /no/such/prog: No such file or directory", 2, None),
        ),
        ("mine own words\n", 3, ("NON_ZERO_EXIT", "exit code 3: mine own words", 3, None)),
    ],
    ids=("one", "four", "crash", "memory", "cgroup", "lost", "slow", "missing", "no srun"),
)  # fmt: skip
def test_a_failure_has_the_cause_of_the_rank_that_failed_first(
    tmp_path: Path, text: str, code: int, wanted: tuple[str, str, int | None, int | None]
) -> None:
    srun = tmp_path / "srun"
    srun.write_text(f"#!/bin/sh\nprintf %s {shlex.quote(text)} >&2\nexit {code}\n")
    srun.chmod(0o755)
    assert launch(spec(tmp_path, argv=[str(srun), "-n4", "--label", "program"]), ROOT) == 1
    found = failure(tmp_path)
    cause, detail, exit_code, number = wanted
    assert (found["cause"], found["exit_code"], found["signal"]) == (cause, exit_code, number)
    assert detail in found["detail"]


def test_labels_are_taken_off_only_where_srun_puts_them() -> None:
    table = ["0: 1.5", "mine"]
    assert step_errors(table).own == table
    assert step_errors(table, labelled=True).own == ["1.5", "mine"]
    assert has_labels(["/usr/bin/srun", "-n4", "--label"]) and has_labels(["srun", "-l"])
    assert not has_labels(["ls", "-l"]) and not has_labels(["srun", "-n4"])


def test_of_several_that_fail_the_first_counts() -> None:
    lines = [
        "srun: error: node[1-2]: tasks 0,4-7: Exited with exit code 9",
        "srun: error: node3: task 2: Exited with exit code 3",
    ]
    assert step_errors(lines).first == (9, None)
    assert step_errors(["srun: error: node1: task 0: Terminated"]).first is None


def of_many(ranks: int, labels: bool) -> str:
    """What srun printed of so many ranks, of which one had no quota left (Slurm 22.05, four nodes):
    its own words come before its end, those of the others, which lost it, after."""

    def line(rank: int, text: str) -> str:
        return f"{rank:>4}: {text}" if labels else text

    early = [line(3, "WARNING: a slow start"), line(517, "error: quota exceeded")]
    srun = [
        "srun: error: node3: task 517: Exited with exit code 7",
        "srun: launch/slurm: _step_signal: Terminating StepId=11.0",
        "slurmstepd-node1: error: *** STEP 11.0 ON node1 CANCELLED AT 2026-11-23T04:10:40 ***",
        "srun: error: node2: task 254: Terminated",
    ]
    lost = "error: peer is gone " + 2000 * "x"  # two megabytes of tracebacks
    late = [line(rank, lost) for rank in range(ranks) if rank != 517] + [line(0, "Terminated")]
    end = ["srun: error: node1: tasks 0,3,5-700: Exited with exit code 1"]
    return "\n".join([*early, *srun, *late, *end, "srun: Force Terminated StepId=11.0", ""])


@pytest.mark.parametrize("labels", [False, True])
def test_of_a_thousand_ranks_the_first_says_why(tmp_path: Path, labels: bool) -> None:
    srun, log = tmp_path / "srun", tmp_path / "said"
    log.write_text(of_many(1024, labels))
    srun.write_text(f"#!/bin/sh\ncat {log} >&2\nexit 143\n")
    srun.chmod(0o755)
    argv = [str(srun), "-n1024", *["--label"] * labels, "program"]
    assert launch(spec(tmp_path, argv=argv, ranks=1024), ROOT) == 1
    found = failure(tmp_path)
    assert found["detail"] == "exit code 7: quota exceeded (rank 517 on node3)"
    assert (found["exit_code"], found["first_ranks"], found["first_nodes"]) == (7, "517", "node3")


def test_which_ranks_were_first_and_what_they_said() -> None:
    text = [
        "no more memory",
        "srun: error: node[1-2]: tasks 0-1,4: Exited with exit code 9",
        "gone",
    ]
    found = step_errors(text)
    assert (found.who, found.words) == ("ranks 0-1,4 on node[1-2]", ["no more memory"])
    noise = ["bash: line 1:  4711 Terminated   sleep", *FOUR.splitlines()]
    assert step_errors(noise, labelled=True).words == ["mine own words"]
    assert step_errors(["srun: error: node1: task 0: Terminated"]).who == ""


RULE = "-" * 74 + "\n"
# Open MPI 4.1 and horovodrun 0.28 --gloo, two ranks that end with sys.exit("it is broken").
MPIRUN = f"""\
{RULE}Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{RULE}it is broken
{RULE}mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[9751,1],1]
  Exit code:    1
{RULE}"""
NO_PROGRAM = f"""\
{RULE}mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: /no/such program
Node: vm

while attempting to start process rank 0.
{RULE}"""
HOROVODRUN = """\
[1]<stderr>:it is broken
Traceback (most recent call last):
RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. The first process to do so was:
Process name: 1
Exit code: 1

"""  # noqa: E501


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (MPIRUN, "it is broken"),
        (NO_PROGRAM, "cannot start /no/such program"),
        (HOROVODRUN, "it is broken"),
        (f"{RULE}a table\n{RULE}", RULE.rstrip()),
        (RULE * 30_000, RULE.rstrip()),
    ],
)
def test_the_last_line_of_a_program_is_its_own(tmp_path: Path, text: str, last: str) -> None:
    log = tmp_path / "stderr.log"
    log.write_text(text)
    assert read_step_errors(log, ["mpirun", "-n", "2", "program"]).own[-1] == last
