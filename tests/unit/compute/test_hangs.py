"""Ranks that hang and ranks that are slow, told apart by the files that they leave."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.hangs import judge

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
