"""How benchmark.yaml names the programs of a benchmark: packages of the benchmarks, and files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.core.errors import UserError

Edited = Callable[..., Benchmark]
DATA = {"parameters": [], "files": {"train": "ranks"}, "bytes_per_file": "100"}


# As they were when every program was a file: data sets that are there are found again.
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("data_loading", "data_loading-7fad3960"), ("cosmoflow_training", "data_loading-7fad3960"),
        ("nt3", "nt3-0256bab8"), ("cnn_training", "cnn_training-8a28f749"),
        ("torch_training", "torch_training-1b02aae1"),
    ],
)  # fmt: skip
def test_folders_of_data_sets_never_change(name: str, folder: str) -> None:
    benchmark = load_benchmark(name)
    assert benchmark.data is not None
    assert benchmark.data.folder(benchmark.defaults) == folder


@pytest.mark.parametrize(
    ("program", "words", "name"),
    [
        ({"program": "shared.stage"}, ("", "shared.stage"), "shared"),
        ({"program": "shared.stage", "name": "older"}, ("", "shared.stage"), "older"),
        ({"program": "stage.py"}, ("foreign/stage.py",), "foreign"),
    ],
)
def test_a_module_of_a_package_or_a_file_makes_data(
    foreign: Path, edited: Edited, program: dict[str, str], words: tuple[str, ...], name: str
) -> None:
    folder = foreign / "benchmarks"
    (folder / "shared").mkdir()
    for package in ("shared", "foreign"):
        (folder / package / "stage.py").touch()
    data = edited(data={**DATA, **program}).data
    assert data is not None and data.name == name
    assert data.program == (str(folder / words[0]), *words[1:])


@pytest.mark.parametrize("program", ["stage.py", "shared.stage", "stage", ".stage"])
def test_a_program_that_is_not_there_is_refused(edited: Edited, program: str) -> None:
    with pytest.raises(UserError, match=r"foreign/benchmark\.yaml: data\.program: no file "):
        edited(data={**DATA, "program": program})


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("cnn_training", {"variable_update": "horovod", "devices_per_rank": 2}, "raise ranks"),
        ("cnn_training", {"variable_update": "replicated", "ranks": 2}, "for the devices of one"),
        ("cnn_training", {"all_reduce": "ring"}, "for variable_update collective_all_reduce"),
        ("cosmoflow_training", {"batch_size": 5}, "nearest valid: 255 or 260"),
        ("cosmoflow_training", {"sample_shape": [16, 16, 16, 4]}, "use fewer conv_layers"),
        ("cosmoflow_training", {"target_mae": 0.1, "input": "dummy"}, "dummy input means nothing"),
        ("nt3", {"total_epochs": 3, "ranks": 2}, "3 .total_epochs. is not a multiple of 2"),
        ("nt3", {"features": 28}, "nothing is left of the features"),
        ("nt3", {"target_accuracy": 0.5, "validate": False}, "an accuracy of validation"),
        ("input_pipeline", {"pipeline": "processes", "shard": "after_reading"}, "each process"),
        ("step_layers", {"model": "lstm", "data_format": "NCHW"}, "this model is there in NHWC"),
        ("copy_bandwidth", {"direction": "device_to_device", "ranks": 2}, "GPUs of one process"),
        ("file_read", {"block_kib": 2048, "file_mib": 1}, "a block is larger than a file"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, params: dict[str, Any], words: str) -> None:
    benchmark = load_benchmark(name)
    with pytest.raises(UserError, match=words):
        benchmark.check_point({**benchmark.defaults, **params}, "e")
