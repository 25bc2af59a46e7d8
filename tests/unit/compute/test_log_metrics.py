"""Metrics from logs: what a pattern finds is what the program said, once, and of which rank."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.compute import log_metrics
from scalesweep.compute.log_lines import read_lines
from scalesweep.compute.log_metrics import Metric, Reading, UnreadableError, read_metrics
from tests.fakes.stamps import line

RATE = Metric("rate", r"^rate: (\S+)", "images/s", "higher", "rank")
EVERY = {"printed_by": "every_rank"}


def metric(**changes: Any) -> Metric:
    return Metric(**{**RATE.__dict__, **changes})


def read(
    folder: Path, text: str | bytes, *metrics: Metric, ranks: int = 1, srun: bool = False
) -> Reading:
    (folder / "stdout.log").write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "stderr.log").touch()
    return read_metrics(metrics or (RATE,), folder, ranks, srun)


def value(reading: Reading, name: str = "rate") -> float:
    number: float = reading.metrics[name]["value"]
    return number


def refused(folder: Path, text: str, *metrics: Metric, ranks: int = 1) -> str:
    with pytest.raises(UnreadableError) as error:
        read(folder, text, *metrics, ranks=ranks)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12), ("-1.5", -1.5), ("+3", 3), ("1.5E-03", 0.0015), ("2.5D+01", 25),
        ("1,234,567.5", 1234567.5), (".5", 0.5), ("7.", 7), ("  8 ", 8),
        *((text, None) for text in ("nan", "-Infinity", "1e999", "1.234,5", "12,34", "")),
        ("1_000", None), ("8B", None),
    ],
)  # fmt: skip
def test_numbers(tmp_path: Path, text: str, expected: float | None) -> None:
    last, first = metric(pattern="x = (.*);"), metric(pattern="x = (.*);", match="first")
    content = f"x = 1;\nx = {text};\n"
    if expected is None:
        said = f"metric rate: '{text}' in line 2 of stdout.log is no finite number"
        assert refused(tmp_path, content, last) == said
        # A match that does not count may be anything.
        assert value(read(tmp_path, content, first)) == 1
    else:
        assert value(read(tmp_path, content, last)) == expected


@pytest.mark.parametrize(
    ("match", "skip", "expected"),
    [
        ("first", 0, 100), ("last", 0, 30), ("mean", 0, 43.6), ("mean", 1, 29.5),
        ("first", 2, 20), ("last", 2, 30), ("median", 0, 30), ("median", 1, 29), ("p90", 0, 76),
        ("p1", 1, 20.24), ("all", 1, 29.5),
    ],
)  # fmt: skip
def test_which_match_counts(tmp_path: Path, match: str, skip: int, expected: float) -> None:
    numbers = [100, 40, 20, 28, 30]
    text = "".join(f"rate: {number}\n" for number in numbers)
    rule = metric(match=match, skip=skip)
    assert value(read(tmp_path, text, rule)) == pytest.approx(expected)
    both = "".join(f"[{r}]<stdout>:rate: {n + r}\n" for n in numbers for r in (0, 1))
    # Skipped of each.
    assert value(read(tmp_path, both, rule, ranks=2)) == pytest.approx(expected + 0.5)
    said = refused(tmp_path, text, metric(match=match, skip=5))
    assert said == "metric rate: skip: 5 leaves none of 5 matches"


OSU = """# OSU MPI Allreduce Latency Test v7.3
# Size       Avg Latency(us)
4                       2.61
1048576              1,204.30
"""


def test_keys_become_names(tmp_path: Path) -> None:
    table = metric(metric="latency", pattern=r"^(?P<key>\d+)\s+(?P<value>[\d.,]+)\s*$")
    reading = read(tmp_path, OSU, table, ranks=2)
    values = {name: it["value"] for name, it in reading.metrics.items()}
    assert values == {"latency_4": 2.61, "latency_1048576": 1204.3}
    keyed = metric(pattern=r"^(?P<key>[^=]*)=(?P<value>\d+)$")
    assert list(read(tmp_path, "a b=1\nc=2\n", keyed).metrics) == ["rate_a_b", "rate_c"]
    said = refused(tmp_path, "a b=1\na/b=2\n", keyed)
    assert said == "metric rate_a_b: two metrics or keys have this name"


HOROVODRUN = "[0]<stdout>:rate: 10\n[1]<stdout>:rate: 20\n"
SRUN = "  0: rate: 10\nsrun: job 7 has been requeued\n  1: rate: 20\n"


@pytest.mark.parametrize(
    ("text", "srun"),
    [
        (HOROVODRUN, False),
        (HOROVODRUN.replace("[", "Thu Jan  1 00:00:00 1970["), False),
        (HOROVODRUN.replace("[", "[1,"), False),
        (HOROVODRUN.replace("[", "[prterun-node-12345@1,").replace(">:", ">: "), False),
        (SRUN, True),
        # torchrun's and PyTorch's own (torch/distributed/elastic/multiprocessing/api.py).
        ("[default1]:rate: 20\n[default0]:rate: 10\n", False),
        ("[rank1]: rate: 20\n[rank0]: rate: 10\n", False),
        ("0: [rank0]:rate: 10\n1: [rank1]:rate: 20\n", True),
    ],
)
def test_labels_tell_ranks_apart(tmp_path: Path, text: str, srun: bool) -> None:
    reading = read(tmp_path, text, RATE, ranks=2, srun=srun)
    assert value(reading) == 15 and reading.arrays["rate"].tolist() == [10, 20]  # never a sum
    assert reading.of_metrics["rate"] == {"ranks": "0-1"} and not reading.warnings
    total = metric(scope="total")
    assert value(read(tmp_path, text, total, ranks=2, srun=srun)) == 10  # of the lowest rank


def test_nodes_and_local_ranks_count_together(tmp_path: Path) -> None:
    """Two nodes of two ranks: ``1: [default0]:`` is rank 2."""
    text = "".join(
        f"{node}: [default{local}]:rate: {10 * (2 * node + local)}\n"
        for node in (1, 0)
        for local in (1, 0)
    )
    reading = read(tmp_path, text, metric(**EVERY), ranks=4, srun=True)
    assert reading.arrays["rate"].tolist() == [0, 10, 20, 30]
    table = metric(pattern=r"^(?P<key>\d+): (?P<value>\d+)$")
    assert len(read(tmp_path, "1: 5\n2: 6\n", table, ranks=8).metrics) == 2  # no labels


def test_a_group_of_the_pattern_names_the_rank(tmp_path: Path) -> None:
    """NVIDIA-NeMo/Megatron-Bridge, PR 841 (line of rank 0): what each rank has allocated."""
    text = "".join(
        f"[Rank {rank}] (after 10 iterations) memory (MB) | allocated: {number} | max: 1\n"
        for rank, number in ((1, 11909.5), (0, 11908.05029296875), (0, 11910.05))
    )
    pattern = r"^\[Rank (?P<rank>\d+)\].* \| allocated: (\S+)"
    reading = read(tmp_path, text, metric(pattern=pattern, **EVERY), ranks=2)
    assert reading.arrays["rate"].tolist() == [11910.05, 11909.5]


def test_all_matches_of_all_ranks(tmp_path: Path) -> None:
    text = "".join(f"[{rank}]<stdout>:rate: {10 * rank + i}\n" for i in range(3) for rank in (0, 1))
    reading = read(tmp_path, text, metric(match="all"), ranks=2)
    assert reading.arrays["rate"].tolist() == [[0, 10], [1, 11], [2, 12]] and value(reading) == 6
    total = metric(match="all", scope="total")
    assert read(tmp_path, text, total, ranks=2).arrays["rate"].tolist() == [0, 1, 2]
    less = read(tmp_path, text.removesuffix("[1]<stdout>:rate: 12\n"), metric(match="all"), ranks=2)
    np.testing.assert_array_equal(less.arrays["rate"].ravel(), [0, 10, 1, 11, 2, math.nan])


ALONE = "[0]<stdout>:rate: 10\n"


@pytest.mark.parametrize(
    ("text", "ranks", "changes", "expected"),
    [
        # Ranks that say nothing.
        (ALONE, 2, {}, (10, "")),  # as where rank 0 prints for all
        (ALONE, 2, EVERY, "1 of 2 ranks printed it, missing: 1 (printed_by: every_rank)"),
        (ALONE, 2, {**EVERY, "optional": True}, (10, "1 of 2 ranks printed it, missing: 1")),
        (ALONE, 2, {**EVERY, "scope": "total"}, (10, "1 of 2 ranks printed it, missing: 1")),
        (HOROVODRUN, 3, {}, (15, "2 of 3 ranks printed it, missing: 2")),
        (HOROVODRUN, 2, {"printed_by": "rank_0"}, (10, "")),
        # Ranks that disagree on a total.
        ("[3]<stdout>:rate: 30.2\n[2]<stdout>:rate: 30\n", 4, {"scope": "total"}, (30, "")),
        ("[3]<stdout>:rate: 31\n[2]<stdout>:rate: 30\n", 4, {"scope": "total"},
         (30, "2 ranks disagree: 30 to 31, using 30")),
        # Without labels nobody knows which rank printed what.
        ("rate: 10\nrate: 20\n", 2, {}, (20, "")),
        ("rate: 10\nrate: 20\n", 2, EVERY, "no label says which of 2 ranks printed what"),
    ],
)  # fmt: skip
def test_ranks_are_not_guessed(
    tmp_path: Path, text: str, ranks: int, changes: Any, expected: tuple[float, str] | str
) -> None:
    if isinstance(expected, str):
        assert expected in refused(tmp_path, text, metric(**changes), ranks=ranks)
        return
    reading = read(tmp_path, text, metric(**changes), ranks=ranks)
    number, warning = expected
    assert value(reading) == pytest.approx(number)
    assert reading.warnings == ([f"rate: {warning}"] if warning else [])


def test_a_file_for_each_rank(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for rank in range(12):
        (tmp_path / "logs" / f"rank{rank}.txt").write_text(f"rate: {rank}\n")
    source = metric(source="logs/rank*.txt")
    reading = read(tmp_path, "", source, ranks=12)
    assert reading.arrays["rate"].tolist() == list(range(12))
    # Of another number of files nobody knows the ranks: they are read one after the other.
    assert value(read(tmp_path, "", source, ranks=5)) == 11


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    told = r"metric rate: pattern '^rate: (\S+)' matches no line of stdout.log"
    assert refused(tmp_path, "start\n") == told
    assert "no file 'out*.json' in " in refused(tmp_path, "rate: 1\n", metric(source="out*.json"))
    optional = metric(metric="total", pattern="total: (.*)", optional=True)
    assert list(read(tmp_path, "rate: 1\n", RATE, optional).metrics) == ["rate"]
    assert "no pattern matches any line" in refused(tmp_path, "", optional)
    (tmp_path / "stdout.log").unlink()
    with pytest.raises(log_metrics.LogsGoneError, match=r"stdout\.log is gone"):
        read_metrics([RATE], tmp_path, 1)


@pytest.mark.parametrize(
    "content",
    [
        b"rate: 1\r\nrate: 5\r\n", b"rate: 5", b"\x80\x81\nrate: 5\n", "\ufeffrate: 5\n".encode(),
        "x\nrate: 5\n".encode("utf-16"), b"\x1b[32mrate:\x1b[0m 5\x1b[K\n",
        b"  0%|    | 0/9\r 50%|##  | 4/9\rrate: 5\r100%|####| 9/9\r\n",
        b"1/9 [..]\b\b\b\b\b\b\b\b\b\rrate: 5\n", b"null\x00byte\nrate: 5\n",
        b"x" * (1 << 20) + b"\nrate: 5\n", b"." * 5_000_000 + b"\rrate: 5\r" + b"-" * 3,
        # A thread prints stamps past the buffer of what the program prints.
        f"rate: 5\nrate: 1{line(rank=0, step=3, s=0.1)}2.5\n".encode(),
    ],
)  # fmt: skip
def test_odd_logs_do_not_hide_a_match(tmp_path: Path, content: bytes) -> None:
    assert value(read(tmp_path, content)) == 5


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # What another rank wrote into is left out: half of it would be another number.
        ("[0]<stdout>:rate: 1[1]<stdout>:b\n", [("b", 1, 1)]),
        ("ab[1]<stdout>:c\nd\n", [("c", 1, 1), ("d", 2, None)]),
        ("[0]<stdout>:a\r[0]<stdout>:\n", [("a", 1, 0), ("", 1, 0)]),
    ],
)
def test_lines_and_their_ranks(tmp_path: Path, text: str, lines: list[Any]) -> None:
    (tmp_path / "log").write_text(text, newline="")
    assert [line[:3] for line in read_lines(tmp_path / "log")] == lines
