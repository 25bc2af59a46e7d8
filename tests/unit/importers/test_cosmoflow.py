"""Importing cosmoflow-benchmark results: what is read, what is refused, what never runs."""

import pickle
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.core.errors import UserError
from scalesweep.importers.cosmoflow import Refusal, read_folder, read_tree
from scalesweep.importers.rank_map import read_ranks
from tests.conftest import ROOT

FOLDER = ROOT / "tests" / "acceptance" / "imports" / "cosmoflow" / "gpu-n2"
CONFIG: dict[str, Any] = pickle.loads((FOLDER / "config.pkl").read_bytes())
WITHOUT = {key: value for key, value in CONFIG.items() if key != "n_ranks"}
HISTORY = (FOLDER / "data_benchmark_history.csv").read_text()
# The last total of epoch 3, and the row of epoch 4.
TOTAL, LAST = "[7.6232605\n 7.6234684]", HISTORY[HISTORY.index('4,"[6.24') :]


def config(ranks: int = 2, **data: Any) -> dict[str, Any]:
    return {**CONFIG, "data": {**CONFIG["data"], **data}, "n_ranks": ranks}


def write(
    root: Path, content: Any = CONFIG, text: str | bytes = HISTORY, name: str = "gpu-n2"
) -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    pickled = content if isinstance(content, bytes) else pickle.dumps(content)
    (folder / "config.pkl").write_bytes(pickled)
    history = text if isinstance(text, bytes) else text.encode()
    (folder / "data_benchmark_history.csv").write_bytes(history)
    return folder


def refusal(root: Path, **names: Any) -> Refusal:
    write(root, **names)
    runs, (found,) = read_tree(root)
    assert not runs
    return found


def test_ranks_that_the_configuration_does_not_state(tmp_path: Path) -> None:
    """Those of --ranks, else of the folder's name; what contradicts is refused."""
    for name in ("gpu-n2", "gpu-n2-inter2-intra12"):
        assert read_folder(write(tmp_path, WITHOUT, name=name)).point["ranks"] == 2
    folder = write(tmp_path / "b", WITHOUT, name="two nodes")
    assert read_folder(folder, read_ranks("2")).point["ranks"] == 2
    assert read_folder(folder, read_ranks("{two nodes: 2}")).samples_per_epoch == 640
    with pytest.raises(UserError, match=r"has no 'n_ranks', and .* not called gpu-nRANKS: add --r"):
        read_folder(folder)
    with pytest.raises(UserError, match="epoch 0, local_times: 2 values, not of 4 ranks"):
        read_folder(write(tmp_path, WITHOUT, name="gpu-n4"))
    assert read_folder(write(tmp_path / "c"), read_ranks("4")).point["ranks"] == 2
    with pytest.raises(UserError, match="no file or folder of the source is named no"):
        read_tree(tmp_path / "c", read_ranks("{no: 2}"))


def test_totals_are_shared_out_when_sharded(tmp_path: Path) -> None:
    run = read_folder(write(tmp_path, config(n_train=512, n_valid=128, shard=True)))
    assert (run.point["samples_per_rank"], run.point["validation_samples_per_rank"]) == (256, 64)
    assert run.samples_per_epoch == 640


NO_ARRAY = "epoch 3, global_times: not a printed array of positive seconds"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"text": HISTORY.replace(TOTAL, "[6.27]")}, "1 values, not of 2 ranks"),
        ({"text": HISTORY.replace(TOTAL, "[6.27 x]")}, NO_ARRAY),
        ({"text": HISTORY.replace(TOTAL, "[6.27 0.0]")}, NO_ARRAY),
        # Of many ranks NumPy prints the first and the last.
        ({"text": HISTORY.replace(TOTAL, "[6.2 ... 6.3]")}, "epoch 3, global_times: holds '...'"),
        ({"text": HISTORY.removesuffix(LAST)}, "epoch 4 is missing"),
        ({"text": f"{HISTORY}5{LAST[1:]}"}, "epoch 5 is none of the 5"),
        ({"text": HISTORY.replace("\n4,", "\n3,")}, "or there twice: 3"),
        ({"text": HISTORY.replace("\n4,", "\n4,4,")}, "a row is cut"),
        ({"text": b"\xff\xfe\x00"}, "not its CSV"),
        ({"content": [1]}, "no pickle of dicts"),
        ({"content": {**CONFIG, "n_ranks": 0}}, "'n_ranks' must be a whole number from 1 on"),
        ({"content": config(shard=1)}, "or data.shard is not true"),
        ({"content": config(shard=True, n_train=255)}, "do not divide among 2 ranks"),
    ],
)
def test_damage_is_refused_with_its_place(tmp_path: Path, bad: Any, reason: str) -> None:
    assert reason in refusal(tmp_path, **bad).reason


def test_bad_folders_do_not_keep_good_ones_out(tmp_path: Path) -> None:
    write(tmp_path, name="a")
    write(tmp_path, b"", name="b")
    write(tmp_path, name="c")
    (tmp_path / "a" / "config.pkl").rename(tmp_path / "a" / "other.pkl")
    (tmp_path / "d").mkdir()
    shutil.copy(tmp_path / "b" / "config.pkl", tmp_path / "d")
    (tmp_path / "e" / "config.pkl").mkdir(parents=True)
    shutil.copy(tmp_path / "c" / "data_benchmark_history.csv", tmp_path / "e")
    runs, refusals = read_tree(tmp_path)
    assert [run.file.name for run in runs] == ["c"]
    assert [refusal.file.name for refusal in refusals] == ["a", "config.pkl", "config.pkl", "e"]


def test_a_configuration_that_would_run_code(tmp_path: Path) -> None:
    attack = f"cposix\nmkdir\n(V{tmp_path / 'executed'}\ntR.".encode()  # a call, as pickles have it
    found = refusal(tmp_path / "tree", content=attack)
    assert "names posix.mkdir, which plain data does not need" in found.reason
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_numbers_of_numpy_in_every_protocol(tmp_path: Path, protocol: int) -> None:
    more = {"n_train": np.int32(256), "augment": None, "x": [1, (2.5, "a")]}
    data = OrderedDict(CONFIG["data"], **more)
    content = {**CONFIG, "n_ranks": np.int64(2), "data": data}
    text = HISTORY.replace("\n ", ", ")
    run = read_folder(write(tmp_path, pickle.dumps(content, protocol), text))
    assert (run.point["ranks"], run.point["samples_per_rank"]) == (2, 256)
