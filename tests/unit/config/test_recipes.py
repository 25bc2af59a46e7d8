"""The recipes of training programs: they load, and read the same numbers as an import does."""

import json
from pathlib import Path

import pytest

from scalesweep.compute.log_steps import read_log
from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.log_patterns import Result
from scalesweep.core.errors import UserError
from tests.conftest import ROOT
from tests.fakes.imported_runs import read_source
from tests.fakes.training_logs import LOGS

RECIPES = ROOT / "resources" / "recipes"
# Recipe -> log and stream that it is printed on.
READ = {
    "run_nanogpt": ("nanoGPT", "stdout"), "run_nanochat": ("nanochat", "stdout"),
    "run_fms_fsdp": ("fms-fsdp", "stdout"), "run_torchtitan": ("torchtitan", "stderr"),
    "run_megatron_lm": ("Megatron-LM", "stdout"),
}  # fmt: skip


@pytest.mark.parametrize("name", [path.parent.name for path in RECIPES.glob("*/benchmark.yaml")])
def test_a_recipe_reads_what_an_import_reads(name: str, tmp_path: Path) -> None:
    log, stream = LOGS[READ[name][0]], READ[name][1]
    extract = load_benchmark(name, folder=RECIPES / name).extract
    assert extract and extract.meaning_of(str(extract.main_metric))
    for each in ("stdout", "stderr"):
        (tmp_path / f"{each}.log").write_text(log.text if each == stream else "")
    ((run,), _, _) = read_source(tmp_path / f"{stream}.log", log.ranks)
    declared = json.loads(json.dumps(extract.order["reader"]))  # as it reaches the launcher
    reading = read_log(declared, tmp_path, run.point["ranks"], srun_labels=False)
    for metric, it in run.metrics.items():
        assert reading.metrics[metric]["value"] == it["value"], metric
        meant = extract.meaning_of(metric)
        assert meant and dict(meant) == {key: it[key] for key in meant}
    # An array of steps has a column for each rank, else it is one of lines.
    assert all(array.shape[1:] in ((), (1,)) for array in reading.arrays.values())
    assert ("step_times" in reading.arrays) == (run.point["ranks"] == 1)


def test_a_reader_of_a_benchmark_is_one_there_is(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.yaml"
    with pytest.raises(UserError, match=r"no reader 'torchtitn'; did you mean torchtitan\? a"):
        Result(reader="torchtitn").settle(path)
    with pytest.raises(UserError, match=r"mine\.yaml: no such file"):
        Result(reader="mine.yaml").settle(path)
    (tmp_path / "mine.yaml").write_text((ROOT / "resources/readers/nanogpt.yaml").read_text())
    extract = Result(reader="mine.yaml").settle(path)
    assert extract and extract.main_metric == "step_time" and "step_time" in extract.known
    entry = {"metric": "final_loss", "pattern": "(x)", "unit": "1", "better": "lower"}
    result = {"reader": "nanogpt", "extract": [entry | {"scope": "total"}]}
    with pytest.raises(UserError, match=r"extract\[0\]: two metrics 'final_loss'"):
        Result.model_validate(result).settle(path)
