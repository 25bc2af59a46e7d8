"""A number of each table of steps and training, worked out again from the runs' files by NumPy."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.experiment.results import ExperimentResults
from tests.acceptance.faults import Program, always
from tests.fakes.planted_steps import planted_study
from tests.fakes.ranks import ranked, steady
from tests.fakes.training import nt3, study_of

Files = list[dict[str, Any]]  # of the runs of one point: arrays, and the record
PLANTED = Program(faults={"compute": always(30, 1)})


def planted(root: Path) -> ExperimentResults:
    return planted_study(root, PLANTED)


def reading(root: Path) -> ExperimentResults:
    times, more = steady(50, 0.05, {3: 1.2}), {"axes": {"ranks": [4, 8]}, "scaling": "weak"}
    return study_of(root, ranked(times, array="local_times", **more))


def trained(root: Path) -> ExperimentResults:
    return study_of(root, nt3())


def files_of(root: Path, ranks: int) -> Files:
    found = []
    for path in sorted(root.glob("runs/*/*/record.json")):
        record = json.loads(path.read_text())
        if record["point"]["ranks"] == ranks:
            found.append({**np.load(path.with_name("samples.npz")), "record": record})
    return found


def own(run: dict[str, Any]) -> Any:
    """Seconds ``[step, rank]`` of all that a rank does but the exchange."""
    return run["step_times"] + run["span_between"] - run["span_communication"]


def exposed(runs: Files) -> float:
    steps = [(run["step_times"] + run["span_between"]).sum(axis=0).max() for run in runs]
    least = [run["span_communication"].min(axis=1).mean() for run in runs]
    return float(1e3 * np.average(least, weights=1 / np.array(steps)))


def longer(runs: Files) -> float:
    each = [np.median(run["span_compute"] @ [-1, 1]) for run in runs]
    return float(1e3 * np.mean(each))


def gained(runs: Files) -> float:
    """By replay: rank 1 without what it computes longer in the median step."""
    less = [own(run) - [0, np.median(run["span_compute"] @ [-1, 1])] for run in runs]
    before = np.mean([own(run).max(axis=1).mean() for run in runs])
    return float(1e3 * (before - np.mean([each.max(axis=1).mean() for each in less])))


def slow(runs: Files) -> float:
    medians = [np.median(run["local_times"][1:], axis=0) for run in runs]
    return float(np.mean([each[3] / np.median(each) for each in medians]))


def path_of(run: dict[str, Any]) -> Any:
    return own(run).max(axis=1) + run["span_communication"].min(axis=1)


# Study, ranks, table, what tells the row, column -> the number from the files of the point's runs.
ROWS: list[tuple[Any, int, str, dict[str, Any], str, Callable[[Files], float]]] = [
    (planted, 2, "efficiency", {"term": "transfer"}, "value", exposed),
    (planted, 2, "causes", {"cause": "compute"}, "ms", longer),
    (planted, 2, "causes", {"cause": "compute"}, "gain_ms", gained),
    (planted, 2, "ranks", {"repeat": 0, "rank": 1, "time": "step-work"}, "median",
     lambda runs: np.median((runs[0]["span_compute"] + runs[0]["span_input"])[1:, 1])),
    (planted, 2, "steps", {}, "p95",
     lambda runs: 1e3 * np.median([np.quantile(path_of(run), 0.95) for run in runs])),
    (planted, 2, "warm_up", {}, "first_ms",
     lambda runs: 1e3 * np.median([run["step_times"][0] for run in runs])),
    (reading, 8, "stragglers", {"rank": 3}, "ratio", slow),
    (reading, 8, "first_epoch", {"term": "input"}, "value",
     lambda runs: 1e3 * np.mean([np.sort(run["local_times"][0])[3] for run in runs])),
    (trained, 4, "epochs", {"repeat": 0, "epoch": 2}, "validation_accuracy",
     lambda runs: runs[0]["validation_accuracy"][2].mean()),
    (trained, 4, "points", {}, "training_time_mean_run",
     lambda runs: np.mean([run["record"]["metrics"]["training_time"]["value"] for run in runs])),
    (trained, 4, "phases", {"phase": "training"}, "seconds",
     lambda runs: np.mean([run["record"]["phases"]["training"] for run in runs])),
]  # fmt: skip


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    made: dict[Any, tuple[Path, ExperimentResults]] = {}

    def study(make: Any) -> tuple[Path, ExperimentResults]:
        if make not in made:
            root = tmp_path_factory.mktemp(make.__name__)
            made[make] = root, make(root)
        return made[make]

    return study


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[2]}-{row[4]}")
def test_a_number_of_each_table_follows_from_the_files(
    studies: Callable[[Any], Any], row: tuple[Any, ...]
) -> None:
    make, ranks, table, which, name, worked_out = row
    root, study = studies(make)
    (found,) = (
        each for each in study.rows(table)
        if {**each, "ranks": each.get("ranks", ranks)}.items() >= {"ranks": ranks, **which}.items()
    )  # fmt: skip
    runs = sorted(files_of(root, ranks), key=lambda run: run["record"]["repeat"])
    assert runs and found[name] == pytest.approx(worked_out(runs), rel=2e-3)
