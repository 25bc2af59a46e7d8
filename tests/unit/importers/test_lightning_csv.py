"""Importing the rates that Lightning's ThroughputMonitor left in metrics.csv."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.importers.detect_logs import read_items, read_source
from scalesweep.importers.imported_run import ImportedRun, NotRead, Refusal
from scalesweep.importers.rank_map import RankMap
from tests.fakes.mllog import values

DEVICE = ("train/device/batches_per_sec", "train/device/samples_per_sec", "train/device/mfu")
WORLD = ("train/batches_per_sec", "train/samples_per_sec")


def table(
    rates: Sequence[float] = (1.0, 4.0, 4.2, 3.8), world: float = 1, mark: str = "/", batch: int = 8
) -> str:
    """Rows as CSVLogger writes them: of each logger's call its own columns, the others empty."""
    names = ["epoch", "step", "loss", "train/time", "train/batches", *DEVICE]
    names += WORLD if world > 1 else ()
    names = [name.replace("/", mark) for name in names]
    rows = [",".join(names)]
    time = 0.0
    for number, rate in enumerate(rates):
        time += 10 / rate
        cells = ["0", str(number), "", f"{time:.6f}", str(10 * number), f"{rate}",
                 f"{rate * batch}", "0.25"]  # fmt: skip
        cells += [f"{rate * world}", f"{rate * batch * world}"] if world > 1 else []
        rows.append(",".join(cells))
        loss = ["0", str(number), f"{random.Random(number).random()}"]
        rows.append(",".join(loss + [""] * (len(names) - 3)))
    return "\n".join(rows) + "\n"


def write(folder: Path, text: str) -> Path:
    logs = folder / "lightning_logs" / "version_0"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "metrics.csv").write_text(text)
    return folder


@pytest.mark.parametrize("mark", ["/", "|", "-"])
def test_sparse_rows_of_several_devices(tmp_path: Path, mark: str) -> None:
    folder = write(tmp_path / "vit_run_2", table(world=16, mark=mark))
    (run,), refusals, others = read_source(folder)
    assert (refusals, others) == ([], [])
    # The world size is told by the rates; the first window holds the start-up.
    assert run.point == {"ranks": 16, "training": "vit"} and run.variant == {}
    assert values(run) == pytest.approx({
        "batches_per_second": 3.9, "samples_per_second": 3.9 * 8 * 16, "mfu": 0.25,
        "run_time": 10 + 2.5 + 10 / 4.2 + 10 / 3.8,
    })  # fmt: skip


def test_one_device_or_many_where_no_column_tells(tmp_path: Path) -> None:
    folder = write(tmp_path / "vit", table())
    (run,), _, _ = read_source(folder)
    assert run.point["ranks"] == 1 and run.variant == {"ranks": "not stated"}
    (run,), _, _ = read_source(folder, 4)
    assert run.point["ranks"] == 4
    assert values(run)["samples_per_second"] == pytest.approx(3.9 * 8 * 4)


def test_a_cut_last_row_is_left_out(tmp_path: Path) -> None:
    text = table()
    (run,), refusals, _ = read_source(write(tmp_path / "cut", text[: text.rindex(",,") - 40]))
    assert refusals == [] and run.notes["rows"] == 6


def test_a_time_that_holds_evaluations_is_left_out(tmp_path: Path) -> None:
    """As Lightning 2.2 printed 8,951 s for a training of 50 s with three evaluations."""
    rows = table((1.0, *[4.0] * 9)).splitlines()
    for place in range(13, len(rows), 2):
        cells = rows[place].split(",")
        rows[place] = ",".join([*cells[:3], f"{float(cells[3]) + 900:.6f}", *cells[4:]])
    (run,), _, _ = read_source(write(tmp_path / "sums", "\n".join(rows) + "\n"))
    assert "run_time" not in run.metrics
    assert "in one place" in run.notes["run_time"]
    assert values(run)["batches_per_second"] == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (table((1.0, 2.0)), "2 rates of ThroughputMonitor: too few"),
        (table() + table(), "a second header"),
        (table().replace("4.2,", "x,"), "'x' is not a number"),
        (table().replace("\n0,1,", "\n0,", 1), "a cut line?"),
        (table(world=2.5), "all devices' batches/s are 2.5 times one device's"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    runs, (refusal,), _ = read_source(write(tmp_path, text))
    assert runs == [] and reason in refusal.reason


def test_other_tables_are_none_of_lightnings(tmp_path: Path) -> None:
    write(tmp_path, "epoch,step,train_loss\n0,1,0.5\n")
    (item,) = read_items(tmp_path, RankMap({}, None))
    assert isinstance(item, NotRead)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_never_stops_the_reader(tmp_path: Path, data: st.DataObject) -> None:
    text = table(world=4).encode()
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 100)))
    damaged = text[:begin] + data.draw(st.binary(max_size=12)) + text[end:]
    (tmp_path / "metrics.csv").write_bytes(damaged)
    for item in read_items(tmp_path, RankMap({}, None)):
        assert isinstance(item, ImportedRun | Refusal | NotRead)
