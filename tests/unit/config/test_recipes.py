"""The recipes of training programs: they load, and read the same numbers as an import does."""

import re
from pathlib import Path

import pytest

from scalesweep.compute.log_metrics import read_metrics
from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.importers.detect_logs import read_source
from tests.conftest import ROOT
from tests.fakes.training_logs import LOGS

RECIPES = ROOT / "resources" / "recipes"
# Recipe -> log, stream it is printed on, its metric and that of the import, and the factor between.
READ = {
    "run_nanogpt": ("nanoGPT", "stdout", {"step_time": ("step_time", 1e3)}),
    "run_nanochat": (
        "nanochat",
        "stdout",
        {
            "step_time": ("step_time", 1e3),
            "tokens_per_second": ("tokens_per_second", 1),
            "loss": ("final_loss", 1),
        },
    ),
    "run_fms_fsdp": (
        "fms-fsdp",
        "stdout",
        {
            "step_time": ("step_time", 1),
            "tokens_per_second_per_device": ("tokens_per_second_per_device", 1),
            "loss": ("final_loss", 1),
        },
    ),
    "run_torchtitan": (
        "torchtitan",
        "stderr",
        {
            "tokens_per_second_per_device": ("tokens_per_second_per_device", 1),
            "mfu_torchtitan": ("mfu_torchtitan", 100),
            "peak_memory_reserved": ("peak_memory_reserved", 2.0**-30),
        },
    ),
    "run_megatron_lm": (
        "Megatron-LM",
        "stdout",
        {
            "step_time": ("step_time", 1e3),
            "flops_per_device_megatron": ("flops_per_device_megatron", 1e-12),
            "loss": ("final_loss", 1),
        },
    ),
}


def test_every_recipe_is_tried() -> None:
    assert {path.parent.name for path in RECIPES.glob("*/benchmark.yaml")} == set(READ)


@pytest.mark.parametrize("name", READ)
def test_a_command_takes_parameters_only(name: str) -> None:
    """What is no parameter in braces would be handed to the program as it is."""
    content = load_yaml(RECIPES / name / "benchmark.yaml")
    words = [
        word
        for entry in content["command"]
        for word in (entry["words"] if isinstance(entry, dict) else [entry])
    ]
    known = {*content["parameters"], "python", "out"}
    inside = {it for word in words for it in re.findall(r"\{([^}]*)\}", word)}
    assert {it for it in inside if not it.startswith("program:")} <= known


@pytest.mark.parametrize("name", READ)
def test_a_recipe_reads_what_an_import_reads(name: str, tmp_path: Path) -> None:
    kind, stream, metrics = READ[name]
    benchmark = load_benchmark(name, folder=RECIPES / name)
    assert benchmark.main_metric in metrics and benchmark.extract
    for other in ("stdout", "stderr"):
        (tmp_path / f"{other}.log").write_text(LOGS[kind].text if other == stream else "")
    ((run,), _, _) = read_source(tmp_path / f"{stream}.log", 8)
    reading = read_metrics(benchmark.extract.metrics, tmp_path, 1)
    for metric, (imported, factor) in metrics.items():
        expected = run.metrics[imported]["value"] * factor
        assert reading.metrics[metric]["value"] == pytest.approx(expected), metric
