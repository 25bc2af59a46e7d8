"""Metrics from logs: what a pattern finds is what the program said, once, and of which rank."""

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.compute.log_lines import Line, read_lines
from scalesweep.compute.log_metrics import (
    LogsGoneError,
    Metric,
    Reading,
    UnreadableError,
    read_metrics,
)
from scalesweep.core.files import NotAFileError
from tests.fakes.stamps import line

RATE = Metric("rate", r"^rate: (\S+)", "images/s", "higher", "rank")
TOTAL = Metric("total", r"^total: (\S+)", "images/s", "higher", "total")


def metric(base: Metric = RATE, **changes: Any) -> Metric:
    return Metric(**{**base.__dict__, **changes})


def read(
    tmp_path: Path,
    text: str | bytes,
    *metrics: Metric,
    ranks: int = 1,
    srun_labels: bool = False,
    name: str = "stdout.log",
) -> Reading:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for other in ("stdout.log", "stderr.log"):
        (tmp_path / other).touch()
    return read_metrics(metrics or (RATE,), tmp_path, ranks, srun_labels)


def value(reading: Reading, name: str = "rate") -> float:
    number: float = reading.metrics[name]["value"]
    return number


STEPS = "start\nrate: 1\nrate: 2\nnoise\nrate: 6\n"


@pytest.mark.parametrize(
    ("match", "expected"), [("first", 1), ("last", 6), ("mean", 3), ("all", 3)]
)
def test_which_match_counts(tmp_path: Path, match: str, expected: float) -> None:
    found = read(tmp_path, STEPS, metric(match=match))
    assert found.metrics == {
        "rate": {"value": expected, "unit": "images/s", "better": "higher", "scope": "rank"}
    }
    assert found.notes["rate"] == {"matches": 3, "ranks": ""}
    assert {n: v.tolist() for n, v in found.arrays.items()} == (
        {"rate": [1, 2, 6]} if match == "all" else {}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12), ("-1.5", -1.5), ("+3", 3), ("1e3", 1000), ("1.5E-03", 0.0015), ("2.5D+01", 25),
        ("1,234.5", 1234.5), ("1,234,567", 1234567), (".5", 0.5), ("7.", 7), ("  8 ", 8),
    ],
)  # fmt: skip
def test_numbers(tmp_path: Path, text: str, expected: float) -> None:
    assert value(read(tmp_path, f"x = {text};\n", metric(pattern="x = (.*);"))) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nan", "not finite"), ("-inf", "not finite"), ("Infinity", "not finite"),
        ("1e999", "not finite"), ("1.234,5", "not a number"), ("12,34", "not a number"),
        ("fast", "not a number"), ("", "not a number"), ("1_000", "not a number"),
        ("0x10", "not a number"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UnreadableError, match=rf"metric rate: '{text}' in line 2 of .* is {told}"):
        read(tmp_path, f"x = 1;\nx = {text};\n", metric(pattern="x = (.*);"))
    # A match that does not count may be anything.
    first = metric(pattern="x = (.*);", match="first")
    assert value(read(tmp_path, f"x = 1;\nx = {text};\n", first)) == 1


def test_integers_stay_integers(tmp_path: Path) -> None:
    whole = metric(type="integer")
    found = value(read(tmp_path, "rate: 1756620.0\n", whole))
    assert found == 1756620 and isinstance(found, int)
    with pytest.raises(UnreadableError, match=r"'1\.5' in line 1 of stdout\.log is not an integer"):
        read(tmp_path, "rate: 1.5\n", whole)


def test_named_groups_and_the_streams(tmp_path: Path) -> None:
    named = metric(pattern=r"(\w+): (?P<value>\d+) of (\d+)", source="stderr")
    assert value(read(tmp_path, "rate: 5 of 9\n", named, name="stderr.log")) == 5


OSU = """# OSU MPI Allreduce Latency Test v7.3
# Size       Avg Latency(us)
4                       2.61
8                       2.58
1048576              1,204.30
"""
TABLE = Metric(
    "latency", r"^(?P<key>\d+)\s+(?P<value>[\d.,]+)\s*$", "us", "lower", "total"
)  # fmt: skip


def test_a_table_gives_a_metric_for_each_key(tmp_path: Path) -> None:
    found = read(tmp_path, OSU, TABLE, ranks=2)
    assert {name: m["value"] for name, m in found.metrics.items()} == {
        "latency_4": 2.61, "latency_8": 2.58, "latency_1048576": 1204.3,
    }  # fmt: skip


def test_keys_become_names(tmp_path: Path) -> None:
    keyed = metric(pattern=r"^(?P<key>[^=]*)=(?P<value>\d+)$")
    found = read(tmp_path, "a b=1\nc=2\n", keyed)
    assert list(found.metrics) == ["rate_a_b", "rate_c"]
    with pytest.raises(
        UnreadableError, match="metric rate_a_b: two metrics or keys have this name"
    ):
        read(tmp_path, "a b=1\na/b=2\n", keyed)
    with pytest.raises(UnreadableError, match="metric rate: more than 1000 keys"):
        read(tmp_path, "".join(f"k{i}=1\n" for i in range(1001)), keyed)


# Labels of launchers.

HOROVODRUN = (
    "[0]<stdout>:rate: 10\n[1]<stdout>:rate: 20\n[0]<stdout>:total: 30\n[1]<stdout>:total: 30\n"
)
LABELLED = {
    "horovodrun": HOROVODRUN,
    "horovodrun with times": HOROVODRUN.replace("[", "Thu Jan  1 00:00:00 1970["),
    "mpirun": HOROVODRUN.replace("[", "[1,"),
    "mpirun 5": HOROVODRUN.replace("[", "[prterun-node-12345@1,").replace(">:", ">: "),
    "srun": "0: rate: 10\n1: rate: 20\n0: total: 30\n1: total: 30\n",
    "srun with lines of its own": (
        "0: rate: 10\n1: rate: 20\nsrun: job 7 has been requeued\n0: total: 30\n"
        "slurmstepd: error: task 1: a core file\n1: total: 30\n"
    ),
    "srun of many": "  0: rate: 10\n  1: rate: 20\n  0: total: 30\n  1: total: 30\n",
}


@pytest.mark.parametrize("launcher", LABELLED)
def test_labels_tell_ranks_apart(tmp_path: Path, launcher: str) -> None:
    srun = launcher.startswith("srun")
    found = read(tmp_path, LABELLED[launcher], RATE, TOTAL, ranks=2, srun_labels=srun)
    assert value(found) == 15 and value(found, "total") == 30  # never a sum
    assert found.arrays["rate"].tolist() == [10, 20]
    assert found.notes["rate"] == {"matches": 2, "ranks": "0-1"} and not found.warnings


def test_a_table_is_not_taken_for_labels(tmp_path: Path) -> None:
    table = metric(pattern=r"^(?P<key>\d+): (?P<value>\d+)$")
    assert len(read(tmp_path, "1: 5\n2: 6\n", table, ranks=8).metrics) == 2


def test_all_matches_of_all_ranks(tmp_path: Path) -> None:
    text = "".join(f"[{rank}]<stdout>:rate: {10 * rank + i}\n" for i in range(3) for rank in (0, 1))
    found = read(tmp_path, text, metric(match="all"), ranks=2)
    assert found.arrays["rate"].tolist() == [[0, 10], [1, 11], [2, 12]]
    assert value(found) == 6
    total = metric(match="all", scope="total")
    assert read(tmp_path, text, total, ranks=2).arrays["rate"].tolist() == [0, 1, 2]
    less = text.removesuffix("[1]<stdout>:rate: 12\n")
    found = read(tmp_path, less, metric(match="all"), ranks=2)
    assert found.arrays["rate"].shape == (3, 2)
    np.testing.assert_array_equal(found.arrays["rate"].ravel(), [0, 10, 1, 11, 2, math.nan])


@pytest.mark.parametrize(("second", "warned"), [("30.2", False), ("31", True)])
def test_ranks_that_disagree_on_a_total(tmp_path: Path, second: str, warned: bool) -> None:
    text = f"[3]<stdout>:total: {second}\n[2]<stdout>:total: 30\n"
    found = read(tmp_path, text, TOTAL, ranks=4)
    assert value(found, "total") == 30
    told = ["total: 2 ranks disagree: 30 to 31, using 30"]
    assert found.warnings == (told if warned else [])


def test_a_rank_that_says_nothing(tmp_path: Path) -> None:
    one = "[0]<stdout>:rate: 10\n"
    assert not read(tmp_path, one, ranks=2).warnings  # as where rank 0 prints for all
    # Of 1,024 ranks 777 says nothing: what 778 says stays in its place.
    many = "".join(f"{rank}: rate: {rank}\n" for rank in range(1024) if rank != 777)
    told = ["rate: 1023 of 1024 ranks printed it, missing: 777"]
    for match, shape in (("last", (1024,)), ("all", (1, 1024))):
        found = read(tmp_path, many, metric(match=match), ranks=1024, srun_labels=True)
        values = found.arrays["rate"].ravel().tolist()
        assert found.arrays["rate"].shape == shape and found.warnings == told
        assert [i for i, number in enumerate(values) if number != i] == [777]
        assert math.isnan(values[777])
        assert value(found) == (1023 * 1024 / 2 - 777) / 1023
    # A mean that is to be of every rank is none without one of them; one total is enough.
    every = metric(printed_by="every_rank")
    with pytest.raises(UnreadableError, match="metric rate: 1 of 2 ranks printed it, missing: 1 "):
        read(tmp_path, one, every, ranks=2)
    with pytest.raises(UnreadableError, match="metric rate: 3 matches of 4 ranks "):
        read(tmp_path, "rate: 1\n" * 3, every, ranks=4)
    total = metric(TOTAL, printed_by="every_rank", pattern=RATE.pattern)
    said = ["total: 1 of 2 ranks printed it, missing: 1"]
    assert read(tmp_path, one, total, ranks=2).warnings == said
    optional = metric(every, optional=True)
    said = ["rate: 1 of 2 ranks printed it, missing: 1"]
    assert read(tmp_path, one, optional, ranks=2).warnings == said


def test_only_rank_0_counts_where_only_it_prints(tmp_path: Path) -> None:
    found = read(tmp_path, HOROVODRUN, metric(printed_by="rank_0"), ranks=2)
    assert value(found) == 10 and found.arrays == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # What another rank wrote into is left out: half of it would be another number.
        ("[0]<stdout>:rate: 1[1]<stdout>:b\n", [("b", 1, 1)]),
        ("ab[1]<stdout>:c\nd\n", [("c", 1, 1), ("d", 2, None)]),
        ("[0]<stdout>:a\r[0]<stdout>:\n", [("a", 1, 0), ("", 1, 0)]),
    ],
)
def test_lines_and_their_ranks(tmp_path: Path, text: str, lines: list[Line]) -> None:
    path = tmp_path / "log"
    path.write_bytes(text.encode())
    assert list(read_lines(path)) == lines


# No labels: nobody knows which rank printed what.


def test_what_every_rank_prints_once(tmp_path: Path) -> None:
    rate, total = (metric(m, printed_by="every_rank") for m in (RATE, TOTAL))
    text = "rate: 10\nrate: 20\ntotal: 30\ntotal: 33\n"
    found = read(tmp_path, text, rate, total, ranks=2)
    assert value(found) == 15 and value(found, "total") == 33
    assert found.warnings == ["total: 2 ranks disagree: 30 to 33, using 33"]
    every = metric(rate, match="all")
    assert read(tmp_path, text, every, ranks=2).arrays["rate"].tolist() == [[10, 20]]


# The last two lines are of the same rank, which is a step behind: the mean of both is 55.
OUT_OF_STEP = ((1, 100.0), (1, 100.0), (0, 10.0), (0, 10.0))


@pytest.mark.parametrize("match", ["first", "last", "median", "p90"])
def test_ranks_out_of_step_are_not_guessed(tmp_path: Path, match: str) -> None:
    every = metric(printed_by="every_rank", match=match)
    text = "".join(f"rate: {number}\n" for _, number in OUT_OF_STEP)
    with pytest.raises(UnreadableError) as error:
        read(tmp_path, text, every, ranks=2)
    assert "metric rate: 4 matches of 2 ranks, and no label says which is whose" in str(error.value)
    labelled = "".join(f"[rank{rank}]:rate: {number}\n" for rank, number in OUT_OF_STEP)
    assert value(read(tmp_path, labelled, every, ranks=2)) == 55
    # The mean over all is the same, whichever are whose, unless a rank has printed more.
    mean = metric(every, match="mean")
    assert value(read(tmp_path, text, mean, ranks=2)) == 55
    with pytest.raises(UnreadableError, match="5 matches of 2 ranks"):
        read(tmp_path, text + "rate: 1\n", mean, ranks=2)
    # Nor does it matter where all agree.
    assert value(read(tmp_path, "rate: 10\nrate: 10.05\n" * 2, every, ranks=2)) > 9.9


# A line of pytorch/torchtitan, PR 3393, as of two processes; with the labels that torchrun and
# PyTorch put before lines, and those of srun --label, as in pytorch/torchtitan, issue 708.
_STEP = "[titan] 2026-05-18 16:04:46,338 - root - INFO - step: {step}  loss:  3.24405  tps: {tps}"
_SAID = ((0, 1, "7,282"), (1, 1, "5,282"), (1, 2, "5,284"), (0, 2, "7,280"))
TORCH = {
    "rank": "[rank{rank}]:",
    "default": "[default{rank}]:",
    "srun": "{rank}: ",
}


@pytest.mark.parametrize("kind", TORCH)
def test_labels_of_torchrun(tmp_path: Path, kind: str) -> None:
    text = "".join(
        f"{TORCH[kind].format(rank=rank)}{_STEP.format(step=step, tps=tps)}\n"
        for rank, step, tps in _SAID
    )
    tps = metric(pattern=r"^\[titan\].* tps: (\S+)", printed_by="every_rank")
    found = read(tmp_path, text, tps, ranks=2, srun_labels=kind == "srun")
    assert found.arrays["rate"].tolist() == [7280, 5284] and value(found) == 6282
    assert found.notes["rate"]["ranks"] == "0-1"


def test_nodes_and_local_ranks_count_together(tmp_path: Path) -> None:
    """Two nodes of two ranks: ``1: [rank0]:`` is rank 2."""
    text = "".join(
        f"{node}: [rank{local}]:rate: {10 * (2 * node + local)}\n"
        for node in (1, 0)
        for local in (1, 0)
    )
    every = metric(printed_by="every_rank")
    found = read(tmp_path, text, every, ranks=4, srun_labels=True)
    assert found.arrays["rate"].tolist() == [0, 10, 20, 30]
    # Without the nodes each label is of two ranks.
    with pytest.raises(UnreadableError, match="2 of 4 ranks printed it, missing: 2-3"):
        read(tmp_path, re.sub(r"(?m)^\d: ", "", text), every, ranks=4)


def test_numbers_of_steps_are_no_labels(tmp_path: Path) -> None:
    steps = "".join(f"[{step}]: rate: {step}\n" for step in range(5))
    found = read(tmp_path, steps, metric(pattern=r"^\[\d+\]: rate: (\d)"), ranks=2)
    assert value(found) == 4 and found.notes["rate"]["ranks"] == ""
    table = metric(pattern=r"^(?P<key>\d+): (?P<value>\d+)$")
    assert len(read(tmp_path, "0: 5\n1: 6\n", table, ranks=2).metrics) == 2


def test_a_group_of_the_pattern_names_the_rank(tmp_path: Path) -> None:
    """NVIDIA-NeMo/Megatron-Bridge, PR 841 (line of rank 0): what each rank has allocated."""
    line = "[Rank {}] (after {} iterations) memory (MB) | allocated: {} | max allocated: 12712.4\n"
    said = ((1, 10, 11909.5), (0, 10, 11908.05029296875), (0, 20, 11910.05))
    memory = metric(
        pattern=r"^\[Rank (?P<rank>\d+)\].* \| allocated: (\S+)", printed_by="every_rank"
    )
    found = read(tmp_path, "".join(line.format(*one) for one in said), memory, ranks=2)
    assert found.arrays["rate"].ravel().tolist() == [11910.05, 11909.5]


@pytest.mark.parametrize(
    ("match", "skip", "expected"),
    [
        ("mean", 1, 29.5), ("first", 2, 20), ("last", 2, 30), ("median", 0, 30), ("median", 1, 29),
        ("p90", 0, 76), ("p1", 1, 20.24), ("all", 1, 29.5),
    ],
)  # fmt: skip
def test_the_first_matches_are_skipped(
    tmp_path: Path, match: str, skip: int, expected: float
) -> None:
    """The first step compiles; numpy.percentile says the same."""
    numbers = [100, 40, 20, 28, 30]
    if match.startswith("p"):
        assert float(np.percentile(numbers[skip:], int(match[1:]))) == pytest.approx(expected)
    text = "".join(f"rate: {number}\n" for number in numbers)
    assert value(read(tmp_path, text, metric(match=match, skip=skip))) == pytest.approx(expected)
    both = "".join(f"[{r}]<stdout>:rate: {n + r}\n" for n in numbers for r in (0, 1))
    found = read(tmp_path, both, metric(match=match, skip=skip), ranks=2)
    assert value(found) == pytest.approx(expected + 0.5)  # skipped of each
    with pytest.raises(UnreadableError, match="metric rate: skip: 5 leaves none of 5 matches"):
        read(tmp_path, text, metric(match=match, skip=5))


def test_a_file_for_each_rank(tmp_path: Path) -> None:
    source = metric(source="logs/rank*.txt")
    for rank in range(12):
        path = tmp_path / "logs" / f"rank{rank}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"rate: {rank}\n")
    found = read(tmp_path, "", source, ranks=12)
    assert found.arrays["rate"].ravel().tolist() == list(range(12))
    assert found.notes["rate"]["ranks"] == "0-11"
    # Of another number of files nobody knows the ranks: they are read one after the other.
    assert value(read(tmp_path, "", source, ranks=5)) == 11


# Nothing found.


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError) as error:
        read(tmp_path, STEPS, TOTAL)
    told = r"metric total: pattern '^total: (\S+)' matches no line of stdout.log"
    assert str(error.value) == told
    with pytest.raises(UnreadableError, match=r"metric rate: no file 'out\*\.json' in "):
        read(tmp_path, STEPS, metric(source="out*.json"))
    (tmp_path / "out1.json").write_text("{}")
    with pytest.raises(UnreadableError, match=r"matches no line of out\*\.json"):
        read(tmp_path, STEPS, metric(source="out*.json"))


def test_what_is_optional_may_be_missing(tmp_path: Path) -> None:
    found = read(tmp_path, STEPS, RATE, metric(TOTAL, optional=True))
    assert list(found.metrics) == list(found.notes) == ["rate"]
    with pytest.raises(UnreadableError, match="no pattern matches any line"):
        read(tmp_path, "", metric(optional=True))


def test_logs_that_are_gone_are_not_an_empty_log(tmp_path: Path) -> None:
    with pytest.raises(LogsGoneError, match=r"stdout\.log is gone"):
        read_metrics([RATE], tmp_path, 1)


# Whatever a log looks like.


@pytest.mark.parametrize(
    "content",
    [
        b"rate: 1\r\nrate: 5\r\n",
        b"rate: 5",
        "größer\nrate: 5\n".encode("latin1"),
        b"\x80\x81\nrate: 5\n",
        "\ufeffrate: 5\n".encode(),
        "x\nrate: 5\n".encode("utf-16"),
        b"\x1b[32mrate:\x1b[0m 5\x1b[K\n",
        b"\x1b]0;title\x07rate: 5\n",
        b"  0%|    | 0/9\r 50%|##  | 4/9\rrate: 5\r100%|####| 9/9\r\n",
        b"1/9 [..]\b\b\b\b\b\b\b\b\b\rrate: 5\n",
        b"null\x00byte\nrate: 5\n",
    ],
)
def test_odd_logs_do_not_hide_a_match(tmp_path: Path, content: bytes) -> None:
    assert value(read(tmp_path, content)) == 5


def test_a_log_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(NotAFileError, match="is a named pipe, not a file"):
        list(read_lines(tmp_path / "pipe.log"))


def test_half_a_line_that_a_stamp_came_into_is_left_out(tmp_path: Path) -> None:
    """A thread prints stamps past the buffer of what the program prints."""
    stamp = line(rank=0, step=3, s=0.1)
    reading = read(tmp_path, f"{stamp}rate: 1{stamp}2.5\nrate: 30\n", metric(match="all"))
    assert reading.arrays["rate"].tolist() == [30]
