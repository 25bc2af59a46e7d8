"""Result files of all structured readers in other encodings, cut, with numbers that are none."""

import gzip
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scalesweep.importers.detect_logs import read_items
from scalesweep.importers.imported_run import ImportedRun, Item, NotRead, Refusal
from scalesweep.importers.rank_map import RankMap
from tests.fakes.mllog import T0, line

_DLIO = {
    "start": "2026-01-02T03:04:05", "end": "2026-01-02T03:05:05", "num_accelerators": 4,
    "num_hosts": 2, "num_files_train": 8, "num_samples_per_file": 1,
    "metric": {"train_au_percentage": [90.5, 91.5], "train_io_mean_MB_per_second": 100.5,
               "train_throughput_samples_per_second": [10.5, 11.5]},
}  # fmt: skip
_MLPERF = [
    line("submission_benchmark", T0, "llama31_405b"), line("global_batch_size", T0, 64),
    line("init_start", T0), line("run_start", T0 + 1000), line("run_stop", T0 + 61_000,
    status="success", samples_count=4096),
]  # fmt: skip
_RATES = "train/time,train/device/batches_per_sec,train/device/samples_per_sec"
# Name of a file -> what it holds.
GOOD = {
    "trainer_state.json": json.dumps(
        {"train_batch_size": 8, "log_history": [
            {"loss": 1.25, "step": 60},
            {"step": 120, "train_loss": 1.25, "train_runtime": 80.5,
             "train_samples_per_second": 23.5, "train_steps_per_second": 1.5},
        ]}, indent=1),
    "train_results.json": json.dumps({"train_runtime": 80.5, "train_steps_per_second": 1.5}),
    "metrics.csv": f"epoch,step,{_RATES}\n" + "".join(
        f"0,{n},{n + 1.5},4.{n},32.5\n" for n in range(9)),
    "summary.json": json.dumps(_DLIO, indent=1),
    "result_0.txt": "".join(_MLPERF),
}  # fmt: skip
NUMBERS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1e308", b"1e-320", b"-1", b"0", b"9" * 400,
    b"true", b"null", b'"x"', b"[]", b"{}", b"[" * 20_000, b'{"a":' * 20_000,
)  # fmt: skip


def read(folder: Path, name: str, content: bytes) -> list[Item]:
    """What comes of a file of this content."""
    (folder / name).write_bytes(content)
    return list(read_items(folder, RankMap({}, 8)))


def check(items: list[Item]) -> None:
    """Every item is a run with finite metrics, or says why it is none."""
    for item in items:
        assert isinstance(item, ImportedRun | Refusal | NotRead)
        if isinstance(item, ImportedRun):
            assert all(math.isfinite(it["value"]) for it in item.metrics.values())


@pytest.mark.parametrize("name", GOOD)
def test_other_encodings_are_read(tmp_path: Path, name: str) -> None:
    text = GOOD[name]
    (whole,) = read(tmp_path, name, text.encode())
    assert isinstance(whole, ImportedRun) and whole.metrics
    for content in (
        b"\xef\xbb\xbf" + text.encode(), text.replace("\n", "\r\n").encode(),
        text.encode("utf-16"), gzip.compress(text.encode()),
    ):  # fmt: skip
        (run,) = read(tmp_path, name, content)
        assert isinstance(run, ImportedRun) and run.metrics == whole.metrics


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_file_of_the_kind(tmp_path: Path, name: str) -> None:
    packed = gzip.compress(GOOD[name].encode())
    for content in (b"", gzip.compress(b""), packed[:-9], bytes(range(256)) * 40, b"\0" * 9000):
        items = read(tmp_path, name, content)
        check(items)
        assert not any(isinstance(item, ImportedRun) for item in items)
    for end in range(0, len(GOOD[name]), 17):
        check(read(tmp_path, name, GOOD[name].encode()[:end]))


def _places(text: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"(?<=[:, \[])-?\d+\.?\d*(?=[,}\n\] ])", text):
        yield match.span()


@pytest.mark.parametrize("name", GOOD)
def test_numbers_that_are_none(tmp_path: Path, name: str) -> None:
    text = GOOD[name]
    places = list(_places(text))
    assert len(places) > 1
    for begin, end in places[::2][:6]:
        for number in NUMBERS:
            check(read(tmp_path, name, text[:begin].encode() + number + text[end:].encode()))


@pytest.mark.parametrize("name", [name for name in GOOD if name.endswith(".json")])
def test_a_key_that_comes_twice_is_refused(tmp_path: Path, name: str) -> None:
    content = json.loads(GOOD[name])
    key, value = next(iter(content.items()))
    twice = f'{{"{key}": {json.dumps(value)},' + GOOD[name].lstrip()[1:]
    (item,) = read(tmp_path, name, twice.encode())
    assert isinstance(item, Refusal) and item.reason == f"the key {key!r} comes twice"


def test_links_and_what_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "summary.json").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "trainer_state.json")
    items = list(read_items(tmp_path, RankMap({}, 8)))
    assert all(isinstance(item, Refusal | NotRead) for item in items)
