"""A foreign program that prints stamps, from benchmark.yaml to its row in the summary."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scalesweep.compute.launcher import launch
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.record import read_record
from scalesweep.jobs.run_spec import run_spec
from scalesweep.state.reextract import reread, runs_to_reread
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary
from tests.acceptance.faults import Noise, Program, always, planted_run
from tests.conftest import ROOT
from tests.fakes.foreign import patterns
from tests.fakes.stamps import lines_of

# Prints what lies in a file for its rank; under ``hang`` one rank stops in the middle.
SPEAKER = """
import os, sys, time
rank = int(os.environ.get("HOROVOD_RANK", 0))
where = os.path.dirname(os.path.abspath(__file__))
lines = open(f"{where}/lines-{rank}").readlines()
hang = any(word == "--extra=hang" for word in sys.argv)
time.sleep(0.25)  # a run lasts as long as its steps, or nobody believes them
if any(word == "--extra=files" for word in sys.argv):
    with open(f"{os.environ['SCALESWEEP_SPANS']}/spans-{rank}.jsonl", "w") as file:
        file.writelines(lines)
else:
    print("total: 3")
    sys.stdout.writelines(lines[:7] if hang and rank == 1 else lines)
    sys.stdout.flush()
if hang:
    time.sleep(60)
"""
STRAGGLER_MS = 5.0


@pytest.fixture
def campaign(foreign: Path) -> Callable[..., Campaign]:
    (foreign / "speaker.py").write_text(SPEAKER)
    program = Program(compute=3, faults={"compute": always(STRAGGLER_MS, 1)})
    planted = planted_run(program, 2, 40, noise=Noise(step=0.2, run=0))
    lines = lines_of(planted, samples=4)
    for rank in range(2):
        (foreign / f"lines-{rank}").write_text("".join(step[rank] for step in lines))

    def load(**fixed: Any) -> Campaign:
        path = foreign / "c.yaml"
        path.write_text(
            f"campaign: c\nsite: toy\nresults: {foreign}/results\nprograms: {{speaker: "
            f"{foreign}/speaker.py}}\nexperiments:\n  e:\n    benchmark: foreign\n"
            f"    fixed: {json.dumps({'ranks': 2, **fixed})}\n"
        )
        return load_campaign(path)

    return load


@pytest.fixture
def result(foreign: Path) -> Callable[..., Benchmark]:
    """The benchmark with another ``result``, and with other keys."""

    def load(content: Any, **keys: Any) -> Benchmark:
        path = foreign / "benchmarks" / "foreign" / "benchmark.yaml"
        old = yaml.safe_load(path.read_text())
        old.pop("work", None)
        path.write_text(yaml.safe_dump({**old, "result": content, **keys}))
        return load_benchmark("foreign")

    return load


def run(campaign: Campaign, **changes: Any) -> tuple[int, Path]:
    experiment = campaign.experiments[0]
    spec: Any = {**run_spec(campaign, experiment, experiment.runs[0]), **changes}
    return launch(spec, ROOT), Path(spec["folder"])


def test_a_run_has_arrays_rates_and_an_account(
    foreign: Path, campaign: Callable[..., Campaign], result: Callable[..., Benchmark]
) -> None:
    total = {
        "metric": "total", "pattern": r"total: (\S+)", "unit": "1", "better": "higher",
        "scope": "total",
    }  # fmt: skip
    benchmark = result({"stamps": "stdout", "extract": [total]}, main_metric="samples_per_second")
    assert "samples_per_second" in benchmark.metrics
    code, path = run(campaign())
    assert code == 0
    record = read_record(path / "record.json")
    assert record["work"] == {"samples_per_epoch": 4 * 2 * 40}
    assert {"total", "step_times", "samples_per_second"} <= record["metrics"].keys()
    frame = build_summary([path / "record.json"])
    account = json.loads(frame["_account"][0])
    assert account["form"] == "steps"
    assert account["terms"]["persistent"] == pytest.approx(STRAGGLER_MS / 1e3, abs=5e-4)
    assert frame["warnings"].isna().all()
    # Other words in benchmark.yaml: read again, nothing runs.
    stricter = patterns(result({"stamps": {"from": "stdout", "warmup": 10}, "extract": [total]}))
    runs = campaign().unique_runs()
    assert len(runs_to_reread(runs, scan(campaign().runs_folder, runs))) == 1
    reread(path, stricter)
    with np.load(path / "samples.npz") as samples:
        assert samples["warmup_step_times"].shape == (10, 2)
        assert samples["step_times"].shape == (30, 2)


def test_files_of_ranks_need_no_labels(
    campaign: Callable[..., Campaign], result: Callable[..., Benchmark]
) -> None:
    assert result({"stamps": "{out}/spans-*.jsonl"}).main_metric == "samples_per_second"
    code, path = run(campaign(extra="files"))
    assert code == 0 and read_record(path / "record.json")["notes"]["stamps"]["steps"] == 40
