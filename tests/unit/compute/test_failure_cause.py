"""Why a program failed or hung: the rank that was first, and the cause that its words name.

What srun and slurmstepd print is from the test cluster (Slurm 22.05).
"""

import json
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.failure_cause import OWN, WAITED, Said, reason_of
from scalesweep.compute.hangs import judge
from scalesweep.compute.launcher import launch
from scalesweep.core.causes import Cause
from tests.conftest import ROOT
from tests.fakes.failure_texts import BENIGN, TEXTS, raised
from tests.unit.compute.test_launcher import failure, spec

ONE = "mine own words\nsrun: error: node1: task 0: Exited with exit code 3\n"
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
# Through local_ranks.py, rank 1 having ended first.
ENDED = "local_ranks: error: n1: rank 0: Exited with exit code 1\n"
LEFT = f"{ENDED}local_ranks: rank 1 had ended with exit code 0 before\n"
MISSING = """\
slurmstepd-node1: error: execve(): /no/such/prog: No such file or directory
srun: error: node4: task 3: Exited with exit code 2
"""


PEER = TEXTS["gloo, a peer is gone"].text
# How launchers label the lines of a rank.
LABELS = {
    "none": "", "mpirun": "[1,{}]<stderr>:", "torchrun": "[default{}]:", "pytorch": "[rank{}]: ",
    "srun": "{}: ", "all": "{}: [default{}]:[rank{}]: ",
}  # fmt: skip


def labelled(label: str, rank: int, text: str) -> list[str]:
    """The lines of a rank as a launcher labels them."""
    before = LABELS[label].replace("{}", str(rank))
    # C++ writes this label itself.
    return [before + line for line in text.replace("[rank1]:", "").splitlines()]


def _of_rank_2(name: str, code: int) -> str:
    """What srun shows of a rank that printed a known text and ended so."""
    lines = "\n".join(labelled("srun", 2, TEXTS[name].text))
    return f"{lines}\nsrun: error: node3: task 2: Exited with exit code {code}\n"


SLOW = "srun: error: slurm_receive_msgs: Socket timed out on send/recv operation\n"
ABORTED = _of_rank_2("sizes", 0).replace("Exited with exit code 0", "Aborted (core dumped)")
LEFT_BY = "".join(f"[0]<stderr>:{line}\n" for line in PEER.splitlines()) + LEFT


@pytest.mark.parametrize(
    ("text", "code", "cause", "detail", "ended"),
    [
        (ONE, 3, "NON_ZERO_EXIT", "exit code 3: mine own words", 3),
        (FOUR, 143, "NON_ZERO_EXIT", "exit code 3: mine own words", 3),
        (CRASH, 143, "KILLED", "signal SIGSEGV", -signal.SIGSEGV),
        (MEMORY, 143, "OUT_OF_MEMORY", "StepId=2.0 exceeded memory limit (408899584 > 1", 143),
        (CGROUP, 137, "OUT_OF_MEMORY", "Detected 1 oom-kill event(s) in StepId=5.0", 137),
        (LOST, 1, "LAUNCH_FAILED", "Task launch for StepId=7.0 failed on node node3: Comm", 1),
        # Slurm was slow to answer, and the step came up.
        (SLOW + ONE, 3, "NON_ZERO_EXIT", "exit code 3: mine own words", 3),
        (MISSING, 2, "NON_ZERO_EXIT", "cannot start /no/such/prog: No such file or directory", 2),
        # An exit code that no program chooses leaves it to the words of the rank, another one none.
        (_of_rank_2("numpy", 1), 143, "OUT_OF_MEMORY", "1.00 PiB", 1),
        (_of_rank_2("numpy", 3), 143, "NON_ZERO_EXIT", "exit code 3: numpy", 3),
        (ABORTED, 143, "KILLED", "signal SIGABRT: RuntimeError: [enforce", -signal.SIGABRT),
        (LEFT_BY, 1, "NON_ZERO_EXIT", "rank 1 had ended with exit code 0 before: RuntimeE", 1),
    ],
)
def test_a_failure_has_the_cause_of_the_rank_that_failed_first(
    tmp_path: Path, text: str, code: int, cause: str, detail: str, ended: int
) -> None:
    srun = tmp_path / "srun"
    srun.write_text(f"#!/bin/sh\nprintf %s {shlex.quote(text)} >&2\nexit {code}\n")
    srun.chmod(0o755)
    assert launch(spec(tmp_path, argv=[str(srun), "-n4", "program"], srun_labels=True), ROOT) == 1
    found = failure(tmp_path)
    exit_code, number = (ended, None) if ended > 0 else (None, -ended)
    assert (found["cause"], found["exit_code"], found["signal"]) == (cause, exit_code, number)
    assert detail in found["detail"]


def read(lines: list[str], label: str = "none") -> Said:
    return Said("\n".join(lines), label in ("srun", "all"))


def cause(lines: list[str], label: str = "none", single: bool = False) -> Cause | None:
    reason = read(lines, label).blamed(single)[1]
    return None if reason is None else reason.cause


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_tells_its_cause(name: str) -> None:
    text, wanted, told = TEXTS[name]
    alone = read(text.splitlines()).blamed(True)[1]
    assert alone and alone.cause == wanted and told in alone.text
    for label in LABELS:
        rank = labelled(label, 1, text)
        # What the ranks that it leaves say of its end changes nothing, whoever is printed first.
        peers = [*labelled(label, 0, PEER), *labelled(label, 2, PEER)]
        ended = "srun: error: n2: task 1: Exited with exit code 1"
        for lines in (rank, [*peers, *rank, ended], [*rank, *peers], [*peers, *rank]):
            assert wanted is None or cause(lines, label) == wanted, label


def test_words_of_other_causes_name_none() -> None:
    end = raised("AssertionError: loss is nan", None).text.splitlines()
    for text, _, _ in TEXTS.values():
        lines = text.splitlines()
        after = reason_of([*lines, "epoch 3: loss 0.1", *end], of_one_rank=True)
        assert after and (after.cause, after.text) == (None, "AssertionError: loss is nan")
        quoted = reason_of([f"ValueError: cannot go on: {lines[-1]}"], of_one_rank=True)
        assert quoted and (quoted.cause, quoted.weight) == (None, OWN)
    for line in BENIGN:
        assert cause([line], single=True) is None and cause([line, *end]) is None, line


def test_of_several_ranks_whoever_has_an_error_of_its_own_is_blamed() -> None:
    numpy, other = TEXTS["numpy"].text, TEXTS["ecc (huggingface/accelerate 1192)"].text
    both = [*labelled("pytorch", 0, numpy), *labelled("pytorch", 1, other)]
    assert cause(both) == Cause.OUT_OF_MEMORY
    # Whom the launcher saw first is believed, where it has an error of its own.
    assert cause([*both, ENDED]) == Cause.OUT_OF_MEMORY
    waits = labelled("pytorch", 0, TEXTS["gloo"].text)
    end, reason = read([*waits, ENDED]).blamed(False)
    assert (end.ranks, reason.weight) == ("0", WAITED)
    end, reason = read([*waits, *labelled("pytorch", 1, other), ENDED]).blamed(False)
    assert (end.ranks, reason.cause) == ("1", Cause.GPU_FAULT)
    # Rank 0 ends first of what rank 1 died of, which writes its core yet.
    crash = ["srun: error: n1: task 0: Exited with exit code 1",
             "srun: error: n2: task 1: Segmentation fault (core dumped)"]  # fmt: skip
    end, reason = read([*labelled("srun", 0, PEER), *crash], "srun").blamed(False)
    assert end == ("1", "n2", -11) and reason is None


REPORTED = """\
[{}]:
  time      : 2026-11-24_03:12:37
  host      : n1
  rank      : {} (local_rank: {})
  exitcode  : {}
  error_file: <N/A>
"""


@pytest.mark.parametrize(
    ("root", "other", "ranks", "wanted"),
    [
        ("-9 (pid: 19506)  (SIGKILL)", "-15 (pid: 19504)  (SIGTERM)", {0: PEER}, ("1", -9)),
        ("1 (pid: 2)", "1 (pid: 3)", {0: TEXTS["numpy"].text, 1: PEER}, ("0", 1)),
        ("1 (pid: 2)", "-11 (pid: 3)", {1: PEER}, ("0", -11)),
        ("1 (pid: 2)", "-15 (pid: 3)", {0: PEER, 1: TEXTS["numpy"].text}, ("1", 1)),
        ("3 (pid: 2)", "1 (pid: 3)", {0: PEER}, ("1", 3)),
        ("-6 (pid: 2)", "1 (pid: 3)", {0: PEER}, ("1", -6)),
    ],
)
def test_what_torchrun_reports(
    root: str, other: str, ranks: dict[int, str], wanted: tuple[str, int]
) -> None:
    lines = [line for rank, text in ranks.items() for line in labelled("pytorch", rank, text)]
    if root.startswith("-6"):  # C++'s last words have no label
        lines += TEXTS["sizes"].text.splitlines()
    lines += ["torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "Failures:"]
    lines += REPORTED.format(1, 0, 0, other).splitlines()
    lines += ["Root Cause (first observed failure):", *REPORTED.format(0, 1, 1, root).splitlines()]
    end, reason = read(lines).blamed(False)
    assert (end.ranks, end.code) == wanted
    assert not root.startswith("-6") or "expected size" in reason.text


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
    assert Said.read(log, labelled=False).own[-1] == last


# --- ranks that hang and ranks that are slow, by the files that they leave ---

SITE = "/opt/python/lib/python3.12/site-packages"
BENCHMARKS = "/home/u/scalesweep/workflow/benchmarks"
LIMIT_S = 60.0

# Innermost first.
RUN = [
    f"{BENCHMARKS}/my/main.py:150 main",
    f"{BENCHMARKS}/harness/program.py:138 run_program",
    f"{BENCHMARKS}/my/main.py:171 <module>",
]
HOROVOD = ["<string>:360 horovod_allgather", f"{SITE}/horovod/tensorflow/mpi_ops.py:222 allgather"]
BARRIER = [*HOROVOD, f"{BENCHMARKS}/harness/ranks.py:52 barrier", *RUN]
STEP = [
    f"{SITE}/tensorflow/python/eager/execute.py:53 quick_execute",
    f"{SITE}/tensorflow/python/eager/polymorphic_function/tracing.py:1323 call",
    f"{BENCHMARKS}/harness/tf_training.py:212 run_part",
    *RUN,
]
LOAD = [
    f"{SITE}/numpy/lib/npyio.py:1373 loadtxt",
    f"{BENCHMARKS}/nt3/loading.py:99 read_numpy",
    *RUN,
]
OPEN = [f"{BENCHMARKS}/my/main.py:40 open_file", *RUN]
Frames = Sequence[str]


def leave(
    folder: Path, rank: int | None, frames: Frames, further_s: float = 10, **words: Any
) -> None:
    """Write what a rank of the harness leaves, with another thread behind the main one."""
    folder.mkdir(exist_ok=True)
    said = {
        "rank": rank, "host": "nid1", "phase": "timed", "further_s": further_s,
        "stacks": [frames, ["/x/threading.py:331 wait"]] if frames else [], **words,
    }  # fmt: skip
    number = "" if rank is None else rank
    path = folder / f"stacks-rank{number}-nid1-{len([*folder.iterdir()])}.json"
    path.write_text(json.dumps(said))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "attempt-1"


def test_the_rank_that_is_in_no_collective_is_named(work: Path) -> None:
    for rank in range(4):
        leave(work, rank, OPEN if rank == 2 else BARRIER, 10 + rank, host=f"nid{rank}")
    cause, detail, more = judge(work, LIMIT_S, 4)
    assert cause == "HANG"
    assert detail == (
        "no rank made progress during the last 47 s of its time limit of 60 s; rank 2 (host nid2; "
        "phase timed): my/main.py:40 open_file < my/main.py:150 main; rank 0-1,3 (host nid0, "
        "nid1, nid3; phase timed): harness/ranks.py:52 barrier < my/main.py:150 main; "
        "stacks of 4 of 4 ranks in attempt-1/stacks-*.json"
    )
    assert [(it["ranks"], it["count"], it["phase"], it["still_s"]) for it in more["stacks"]] == [
        ("2", 1, "timed", 48.0),
        ("0-1,3", 3, "timed", 47.0),
    ]


@pytest.mark.parametrize(
    ("places", "suspects"),
    [
        # In TensorFlow a rank may be computing, or in a collective of the graph like the others.
        ([STEP, STEP, STEP, BARRIER], "rank 3"),
        ([STEP, BARRIER], "rank 0"),
        ([STEP, LOAD], "rank 1"),
        ([BARRIER, [*HOROVOD, f"{BENCHMARKS}/harness/ranks.py:69 gather", *RUN]], "rank 0"),
        ([OPEN, OPEN, OPEN, LOAD], "rank 3"),
        ([LOAD, BARRIER, []], "rank 2 (host nid1; phase timed): left no stack (killed, stopped"),
    ],
)
def test_suspects(work: Path, places: list[Frames], suspects: str) -> None:
    for rank, frames in enumerate(places):
        leave(work, rank, frames)
    assert judge(work, LIMIT_S, len(places))[1].split("; ", 1)[1].startswith(suspects)


def test_ranks_that_left_nothing_are_named_first(work: Path) -> None:
    for rank in (0, 1, 3):
        leave(work, rank, BARRIER)
    _, detail, more = judge(work, LIMIT_S, 5)
    nothing = "left nothing (never started)"
    assert f"; rank 2,4: {nothing}; rank 0-1,3 (host nid1; phase timed): " in detail
    assert "stacks of 3 of 5 ranks" in detail
    first = more["stacks"][0]
    assert (first["ranks"], first["count"], first["where"]) == ("2,4", 2, nothing)
    # Ranks without numbers are counted.
    leave(work / "other", None, BARRIER, phase=None)
    leave(work / "other", None, OPEN, phase=None, host="nid7")
    _, detail, more = judge(work / "other", LIMIT_S, 3)
    assert "; 1 of the ranks: left nothing (" in detail
    assert "; 1 of the ranks (host nid7): " in detail
    assert [each["ranks"] for each in more["stacks"]] == ["", "", ""]


@pytest.mark.parametrize(
    ("further_s", "cause"), [(45.1, "TIMEOUT"), (44.9, "HANG"), (60.5, "TIMEOUT")]
)
def test_one_rank_that_gets_further_is_enough(work: Path, further_s: float, cause: str) -> None:
    leave(work, 0, BARRIER, 3)
    leave(work, 1, STEP, further_s)
    found, detail, _ = judge(work, LIMIT_S, 2)
    assert found == cause
    assert (", but made progress 14.9 s before" in detail) == (further_s == 45.1)
