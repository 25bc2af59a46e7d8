"""Which GPUs a run sees, compared: the tables that keras-multi-gpu published, through its campaign.

Rates are of its measurements.md ("Memory clock effects" and "PIX vs. PHB"), images/s of AlexNet.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scalesweep.aspects.make_tables import make_tables
from scalesweep.config.campaign import load_campaign
from scalesweep.config.gpus import VISIBLE
from scalesweep.config.parameter import VARIABLE_PREFIX
from scalesweep.core.paths import CAMPAIGNS
from scalesweep.core.record import write_record
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import RunState
from scalesweep.tables.summary import build_summary
from tests.fakes.records import make_record

GPUS = f"{VARIABLE_PREFIX}{VISIBLE}"
RATE = "total_images_per_second"
EACH = {"0": 1561.745, "1": 1321.96, "2": 1543.53, "3": 1476.505, "4": 1567.65, "5": 1567.77}
PAIRS = {
    ("parameter_server", "gpu", "auto"): {"0,1": 1863.78, "4,5": 1830.2, "0,5": 1572.61},
    ("parameter_server", "cpu", "auto"): {"0,1": 1240.73, "4,5": 1233.27, "0,5": 1225.74},
    ("replicated", "cpu", "hierarchical_copy"): {"0,1": 1196.69, "0,5": 1210.87},
    ("replicated", "cpu", "nccl"): {"0,1": 1428.81, "0,5": 1175.59},
    ("independent", "cpu", "auto"): {"0,1": 2751.71, "0,5": 2643.55},
}
MODE = ("variable_update", "parameter_device", "all_reduce")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, dict[str, pd.DataFrame]]:
    """Tables of the shipped campaign, of which the published runs are there."""
    campaign = load_campaign(CAMPAIGNS / "cnn_gpus.yaml", results=str(tmp_path))
    states, records = {}, []
    for run_id, (experiment, run) in campaign.unique_runs().items():
        rates = EACH if experiment.name == "each_gpu" else {}
        if experiment.name == "pairs":
            rates = PAIRS[tuple(run.point[name] for name in MODE)]
        rate = rates.get(run.point[GPUS]) if not run.repeat else None
        states[run_id] = RunState("new" if rate is None else "done")
        if rate is not None:
            metric = {"value": rate, "unit": "images/s", "better": "higher", "scope": "total"}
            changes: dict[str, Any] = {"benchmark": "cnn_training", "point": dict(run.point)}
            record = make_record(run_id, metrics={RATE: metric}, **changes)
            records.append(write_record(tmp_path / run_id, record))
    return make_tables(build_summary(records), build_plan(campaign, states))


def test_the_published_choices_of_gpus(tables: dict[str, dict[str, pd.DataFrame]]) -> None:
    alone = tables["each_gpu"]["comparisons"].set_index("value")
    assert (alone["parameter"] == GPUS).all() and (alone["reference"] == "0").all()
    percent = {gpu: round(100 * ratio, 2) for gpu, ratio in alone["ratio"].items()}
    assert percent == {"1": 84.65, "2": 98.83, "3": 94.54, "4": 100.38, "5": 100.39}

    ratios = tables["pairs"]["comparisons"].query(f"parameter == '{GPUS}'")
    assert (ratios["reference"] == "0,5").all()
    printed = ratios[ratios["value"] == "0,1"]
    by_mode = {tuple(row[name] for name in MODE): row["ratio"] for _, row in printed.iterrows()}
    # As printed, but 1.17: the study holds the mean of both pairs on a switch against the third.
    assert {mode[:2]: round(ratio, 2) for mode, ratio in by_mode.items() if mode[2] == "auto"} == {
        ("parameter_server", "gpu"): 1.19, ("parameter_server", "cpu"): 1.01,
        ("independent", "cpu"): 1.04,
    }  # fmt: skip
    assert round(by_mode["replicated", "cpu", "hierarchical_copy"], 2) == 0.99
    assert round(by_mode["replicated", "cpu", "nccl"], 2) == 1.22
    other = ratios[ratios["value"] == "4,5"].set_index("parameter_device")["ratio"]
    both = (by_mode["parameter_server", "gpu", "auto"] + other["gpu"]) / 2
    assert len(other) == 2 and round(both, 2) == 1.17
