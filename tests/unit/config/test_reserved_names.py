"""Names with a meaning inside cannot be those of parameters and metrics."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from scalesweep.analysis.metrics import EPOCH_CURVES, split_column
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.registry import parts
from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.config.reserved_names import OF_RUNS, OF_TABLES
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.tables.summary_row import IDENTITY
from tests.fakes.results import make_results
from tests.fakes.training import Training, make_training

TEXT = """
name: taken
version: 1
summary: Has a parameter with some name.
parameters:
  ranks: {type: integer, default: 1, doc: ranks}
  ranks_per_node: {type: integer, default: 1, doc: ranks on a node}
  NAME: {type: integer, default: 1, doc: a name}
command: [a]
result: {extract: [EXTRACT]}
"""
CAMPAIGN = {
    "campaign": "c",
    "site": "local",
    "experiments": {"e": {"benchmark": "taken", "axes": {}}},
}


def metric(name: str) -> str:
    return f"{{metric: {name}, pattern: '(1)', unit: s, better: lower, scope: total}}"


def write(folder: Path, name: str, *metrics: str) -> Path:
    text = TEXT.replace("NAME", name)
    text = text.replace("EXTRACT", ", ".join(map(metric, metrics or ("x",))))
    (folder / "taken").mkdir()
    (folder / "taken" / "benchmark.yaml").write_text(text)
    return folder / "taken"


@pytest.mark.parametrize(
    "name", [*sorted(OF_RUNS), "loss_mean_run", "total_eff_later", "x_eff_run"]
)
def test_what_the_summary_says_of_runs_is_no_parameter(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=rf"parameters: '{name}' is reserved by scalesweep"):
        load_benchmark("taken", folder=write(tmp_path, name))


@pytest.mark.parametrize("name", ["epochs_run", "samples_per_rank", "loss", "seconds", "status"])
def test_other_names_are_free(tmp_path: Path, name: str) -> None:
    assert name in load_benchmark("taken", folder=write(tmp_path, name)).parameters


@pytest.mark.parametrize("name", ["status", "seconds", "host"])
def test_what_tables_say_cannot_vary(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, name)
    monkeypatch.setattr("scalesweep.config.benchmark.BENCHMARKS", tmp_path)
    path = tmp_path / "c.yaml"
    content: dict[str, Any] = {**CAMPAIGN}
    for values, refused in (([2], False), ([1, 2], True)):
        content["experiments"] = {"e": {"benchmark": "taken", "axes": {name: values}}}
        path.write_text(yaml.safe_dump(content))
        if not refused:
            assert load_campaign(path).experiments
            continue
        with pytest.raises(UserError, match=rf"experiments\.e: '{name}' cannot vary: the tables"):
            load_campaign(path)


@pytest.mark.parametrize("word", ["ideal", "eff", "speedup"])
def test_a_metric_is_not_called_what_the_scaling_of_another_is(tmp_path: Path, word: str) -> None:
    folder = write(tmp_path, "y", f"rate_{word}", "rate")
    with pytest.raises(UserError, match=f"'rate_{word}' is what tables call the scaling of 'rate'"):
        load_benchmark("taken", folder=folder)


@pytest.mark.slow
def test_every_column_of_a_table_is_reserved(tmp_path: Path) -> None:
    """Whoever adds a column to a table adds its name to ``reserved_names`` and its docs."""
    assert set(IDENTITY) == OF_RUNS
    make_results(tmp_path / "a")
    make_training(tmp_path / "b", Training({"ranks": [1, 2]}, fixed={"target_accuracy": 0.8}))
    declared = {k.TABLE for part in parts("table") for it in part.MAKERS for k in it.kinds}
    columns: set[str] = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        plan = read_plan(folder / "plan.json")
        summary = pd.read_parquet(folder / "summary.parquet")
        runs = folder / "runs" / plan["site"]
        tables = make_tables(summary, plan, {"other": summary}, runs)
        for entry in plan["experiments"]:
            for name, frame in tables[entry["name"]].items():
                if name not in declared:  # parameters have other columns there
                    # So do curves.
                    free = set(EPOCH_CURVES) if name == "epochs" else set()
                    columns |= {str(c) for c in frame} - set(entry["axes"]) - free
    # Quantities cannot be the names of parameters.
    columns = {c for c in columns if not (split_column(c) or ("",))[0]}
    assert columns - OF_RUNS - OF_TABLES == set()
