"""Each row of docs/studies.md is run on two cores or planned; what it names is in the results.

Rows of the third kind, imports of published data, are held in test_published. The runs, of real
training, are made once; what other tests want to know of such runs stands here, too.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import pytest

from tests.acceptance import places
from tests.acceptance.studies import (
    CAMPAIGNS,
    KEPT,
    MINUTES,
    OF_NO_STUDY,
    RESULTS,
    Row,
    is_there,
    prefix,
    rows,
    run_all,
)
from tests.conftest import ROOT, Project, make_project
from tests.fakes.torch_python import needs_torch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60 * MINUTES + 60)]

Plans = Callable[[str, str], tuple[str, list[places.Row]]]

# Of planned rows: columns of the plan and the least number of values that one experiment has there.
PLANNED = {
    "C10": {"ranks": 11}, "C11": {"ranks": 11}, "C17": {"inter_threads": 5, "intra_threads": 6},
    "P5": {"tf32": 2}, "P8": {"ranks": 3, "tf32": 2}, "P14": {"fusion_threshold_mb": 2},
    "G8": {"data_format": 2, "devices": 6}, "G10": {"all_reduce": 3},
    "G13": {"env.CUDA_VISIBLE_DEVICES": 6}, "G16": {"devices": 7},
    "G17": {"method": 3, "devices": 4}, "G18": {"variable_update": 2, "devices": 2},
    "G21": {"devices": 2}, "N1": {"memory_mode": 2, "batch_size": 4},
    "N6": {"ranks": 3}, "N9": {"partition": 2},
}  # fmt: skip
# Of those, what is said besides: a pattern of what `plan` prints for Slurm, and a least number.
SAID = {
    "C10": (r"at least (\d+) nodes", 80),  # to hold the data in memory
    "C11": (r"--nodes=(\d+) .*--dependency=singleton", 1),  # one run at a time reads the files
    "N1": (r"--nodes=(\d+) .*--constraint=quad&flat", 1),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, whole: bool) -> Project:
    """The shipped small campaigns, finished; tests leave it as it is."""
    return run_all(tmp_path_factory.mktemp("small"), whole)


def table(project: Project, experiment: str, name: str) -> pd.DataFrame:
    """A table of an experiment, named as in `campaign`."""
    return pd.read_csv(project.path / RESULTS / places.table_file(name, experiment))


def records(project: Project, benchmark: str) -> list[dict[str, Any]]:
    """The records of a benchmark's runs."""
    paths = project.path.glob(f"{RESULTS}/runs/*/{benchmark}-r*/record.json")
    return [json.loads(path.read_text()) for path in paths]


def made_here(row: Row) -> tuple[str, str]:
    """The campaign of a row, without what marks a small one, and the profile of its runs."""
    profiles = [word.removeprefix("profile=") for word in row.made[1:]]
    return row.made[0].removesuffix("_small"), *(profiles or [""])


@pytest.mark.parametrize("row", rows("run"), ids=lambda row: row.name)
def test_rows_that_two_cores_can_carry(ran: Project, row: Row) -> None:
    results = ran.path / RESULTS
    begin = prefix(*made_here(row))
    assert [wanted for wanted in row.wanted if not is_there(results, wanted, begin)] == []


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plans:
    """``planned(campaign, profile)``: what `plan` prints for Slurm, and the rows of the plan."""
    project = make_project(tmp_path_factory.mktemp("planned") / "project")

    @cache
    def plan(campaign: str, profile: str) -> tuple[str, list[places.Row]]:
        keys = [f"campaign={campaign}"] + ([f"profile={profile}"] if profile else [])
        done = project.snakemake("plan", "--profile", "slurm", "--config", *keys)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, places.plan(project.path / "results" / campaign)

    return plan


@pytest.mark.parametrize("row", rows("plan"), ids=lambda row: row.name)
def test_rows_whose_machine_is_not_here(planned: Plans, row: Row) -> None:
    said, runs = planned(*made_here(row))
    varies = [
        all(
            len({run[column] for run in runs if run["experiment"] == experiment} - {""}) >= least
            for column, least in PLANNED[row.name].items()
        )
        for experiment in {run["experiment"] for run in runs}
    ]
    assert any(varies)
    pattern, least = SAID.get(row.name, (r"sbatch --nodes=(\d+)", 1))
    assert [number for number in re.findall(pattern, said) if int(number) >= least]


def test_every_row_has_a_test() -> None:
    page = rows()
    names = [row.name for row in page]
    assert len(set(names)) == len(names) >= 75
    for row in page:
        assert row.tests and row.wanted, row
        for each in row.tests:  # or another test, by its file
            assert each in {"run", "plan", "import"} or (ROOT / each.strip("`")).is_file(), row
        command = row.made[0].startswith("scalesweep ")
        assert command or any(CAMPAIGNS.glob(f"*/{row.made[0]}.yaml")), row
    assert PLANNED.keys() == {row.name for row in rows("plan")} and SAID.keys() <= PLANNED.keys()
    kept = {
        (campaign, key.partition(", ")[2])
        for campaign, experiments in KEPT.items()
        for key in experiments
        if campaign not in OF_NO_STUDY
    }
    assert kept == set(map(made_here, rows("run")))


def test_modes_of_training_and_a_metric_of_ones_own(ran: Project) -> None:
    """What a benchmark cannot combine is left out; a stated metric stands among the measured."""
    both = table(ran, "cnn_variable_update_processes", "scaling").query("devices == 2")
    assert set(both["variable_update"]) == {"collective_all_reduce", "horovod"}
    assert (both["total_images_per_second_eff_run"] > 0).all()
    points = table(ran, "cnn_grid_grid", "points")
    modes = points.groupby("variable_update")["devices"].apply(set).to_dict()
    assert modes == {"replicated": {1}, "horovod": {1, 2}}
    rates = points["total_images_per_second_mean_run"] / points["devices"]
    assert points["images_per_thread_mean_run"].tolist() == pytest.approx(rates.tolist())
    # Each run saw the GPUs that its point names, and says whether its ranks meet.
    runs = records(ran, "cnn_training")
    seen = {
        (of, *run["environment"]["ranks"]["visible_gpus"]["values"])
        for run in runs
        if (of := run["point"].get("env.CUDA_VISIBLE_DEVICES"))
    }
    assert seen == {("0,5", "0,5"), ("0,1", "0,1")}
    alone = [(of["variable_update"], of["ranks"] > 1) for of in (run["point"] for run in runs)]
    meet = [run["notes"]["mode"]["synchronous"] for run in runs]
    assert meet == [each != ("independent", True) for each in alone]


def test_networks_learn(ran: Project) -> None:
    epochs = table(ran, "cifar10_convergence_ranks", "epochs").groupby("ranks")
    assert set(epochs.groups) == {1, 2}
    assert (epochs["loss"].last() < epochs["loss"].first()).all()
    assert (epochs["validation_accuracy"].max() > 0.8).all()
    # Ranks of NT3 share the epochs, and their learning rate grows with them.
    points = table(ran, "nt3_epochs_shared", "points").set_index("ranks")
    assert (points["time_to_target_mean_run"] > 0).all()
    assert (points["epochs_run_mean_run"] <= [32, 16]).all()
    epochs = table(ran, "nt3_epochs_shared", "epochs").groupby("ranks")
    assert (epochs["validation_accuracy"].last() >= 0.95).all()
    rates = epochs["learning_rate"].max()
    assert rates[2] == pytest.approx(2 * rates[1])
    # Of dummy samples there is nothing to learn.
    cosmoflow = records(ran, "cosmoflow_training")
    assert {("final_mae" in run["metrics"], run["point"]["input"]) for run in cosmoflow} == {
        (True, "tfrecords"), (False, "dummy")
    }  # fmt: skip


def test_tables_of_each_format_are_staged_once(ran: Project) -> None:
    files = sorted(path.name for path in ran.path.glob("data/nt3-*/*/part-*"))
    assert files == ["part-000000.csv"] * 4 + ["part-000000.parquet"] * 2
    again = ran.snakemake("-n", "--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr


@pytest.mark.whole
@needs_torch
def test_one_network_in_two_frameworks(ran: Project) -> None:
    points = table(ran, "frameworks_resnet20", "points").set_index("benchmark")
    assert list(points.index) == ["cnn_training", "torch_training"]
    # Layer by layer the same, from the same weights, on as many images.
    assert points["model_parameters_mean_run"].nunique() == 1
    assert points["training_throughput_mean_run"].gt(0).all()
    ratios = table(ran, "frameworks_resnet20", "comparisons").query("question == 'framework'")
    assert set(ratios["parameter"]) == {"benchmark"} and ratios["ratio"].gt(0).all()
    # They exchange the same gradients, and each run says with which versions.
    runs = [
        run
        for benchmark in points.index
        for run in records(ran, benchmark)
        if (run["point"]["model"], run["point"]["ranks"]) == ("resnet20", 2)
    ]
    assert {run["notes"]["exchange"]["backend"] for run in runs} == {"gloo"}
    sizes = [sorted(run["notes"]["exchange"]["tensor_bytes"]) for run in runs]
    assert len(sizes) == 2 and sizes[0] == sizes[1]
    versions = [run["environment"]["versions"] for run in runs]
    assert "horovod" in versions[0] and "torch" in versions[1]


@pytest.mark.whole
@needs_torch
def test_layouts_train_alike_and_their_steps_are_taken_apart(ran: Project) -> None:
    scaling = table(ran, "torch_scaling_weak_scaling", "scaling")
    assert scaling["ranks"].tolist() == [1, 2]
    assert scaling["samples_per_second_eff_run"].gt(0).all()
    points = table(ran, "torch_scaling_layouts", "points").set_index(["tp", "pp"])
    assert set(points.index) == {(2, 1), (1, 2)}
    assert points["model_parameters_mean_run"].nunique() == 1
    losses = points["final_loss_mean_run"].tolist()
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    # Terms add up to the step; exchange by the axis that the layout has.
    steps = table(ran, "torch_scaling_layouts", "efficiency")
    for _, terms in steps.groupby(["tp", "pp"]):
        values = terms.set_index("term")["value"]
        assert values.drop("elapsed").sum() == pytest.approx(values["elapsed"])
    terms = steps.set_index(["tp", "pp", "term"])["value"]
    assert terms[2, 1, "tensor"] > 0 and (2, 1, "pipeline") not in terms.index
    assert terms[1, 2, "pipeline"] > 0 and (1, 2, "tensor") not in terms.index
    # A pipeline's idle time stands beside the formula.
    (idle,) = table(ran, "torch_scaling_layouts", "pipeline_idle").to_dict("records")
    assert (idle["stages"], idle["micro_batches"]) == (2, 2)
    assert idle["formula"] == 0.5 and idle["idle"] > 0
