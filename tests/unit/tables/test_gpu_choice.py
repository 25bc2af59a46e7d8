"""Which GPUs a run sees, compared: the tables that keras-multi-gpu published, through its campaign.

Rates are of its measurements.md ("Memory clock effects" and "PIX vs. PHB"), images/s of AlexNet.
"""

from typing import Any

import pandas as pd
import pytest

from scalesweep.aspects.comparisons.figure import comparison_figures
from scalesweep.aspects.make_tables import make_tables
from scalesweep.config.campaign import load_campaign
from scalesweep.config.gpus import VISIBLE
from scalesweep.config.parameter import VARIABLE_PREFIX
from scalesweep.core.paths import CAMPAIGNS
from scalesweep.core.record import write_record
from scalesweep.experiment.results import ExperimentResults
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


Results = dict[str, ExperimentResults]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The shipped campaign, of which the published runs are there, by experiment."""
    tmp_path = tmp_path_factory.mktemp("runs")
    campaign = load_campaign(CAMPAIGNS / "studies" / "cnn_gpus.yaml", results=str(tmp_path))
    states, records = {}, []
    for run_id, (experiment, run) in campaign.unique_runs().items():
        rates = EACH if experiment.name == "each_gpu" else {}
        if experiment.name.startswith("pairs"):
            rates = PAIRS[tuple(run.point[name] for name in MODE)]
        rate = rates.get(run.point[GPUS]) if not run.repeat else None
        states[run_id] = RunState("new" if rate is None else "done")
        if rate is not None:
            metric = {"value": rate, "unit": "images/s", "better": "higher", "scope": "total"}
            changes: dict[str, Any] = {"benchmark": "cnn_training", "point": dict(run.point)}
            record = make_record(run_id, metrics={RATE: metric}, **changes)
            records.append(write_record(tmp_path / run_id, record))
    plan = build_plan(campaign, states)
    tables = make_tables(build_summary(records), plan)
    return {e["name"]: ExperimentResults(e, tables[e["name"]]) for e in plan["experiments"]}


def rows(results: ExperimentResults) -> pd.DataFrame:
    frame = results.tables["comparisons"]
    assert frame is not None
    frame = frame[frame["point_id"].notna()]
    return frame.query(f"parameter == '{GPUS}' and against == 'reference'")


def test_the_published_choices_of_gpus(study: Results) -> None:
    alone = rows(study["each_gpu"]).set_index("value")
    assert (alone["base_value"] == "0").all()
    percent = {gpu: round(100 * ratio, 2) for gpu, ratio in alone["ratio"].items()}
    assert percent == {"1": 84.65, "2": 98.83, "3": 94.54, "4": 100.38, "5": 100.39}

    def ratios(name: str) -> dict[tuple[str, ...], float]:
        made = rows(study[name])
        assert (made["base_value"] == "0,5").all() and made["value"].nunique() == 1
        return {tuple(row[part] for part in MODE): row["ratio"] for _, row in made.iterrows()}

    first, other = ratios("pairs_0_1"), ratios("pairs_4_5")
    on_gpu, on_cpu = [*PAIRS][:2]
    assert [round(first[mode], 2) for mode in PAIRS] == [1.19, 1.01, 0.99, 1.22, 1.04]
    assert set(other) == {on_gpu, on_cpu}
    drawings = {each.name: each for each in comparison_figures(study["pairs_4_5"])}
    drawing = drawings["ratio-env-CUDA_VISIBLE_DEVICES-run"]
    assert drawing.title == "pairs_4_5: total images per second, CUDA_VISIBLE_DEVICES 4,5 over 0,5"
    # As printed: the mean of both pairs on a switch over the third.
    assert round((first[on_gpu] + other[on_gpu]) / 2, 2) == 1.17
    assert round((first[on_cpu] + other[on_cpu]) / 2, 2) == 1.01
