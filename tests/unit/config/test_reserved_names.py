"""Names with a meaning inside cannot be those of parameters and metrics."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from scalesweep.analysis.metrics import EPOCH_CURVES, split_column
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.registry import parts
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.parameter import OF_RUNS, OF_TABLES
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from scalesweep.tables.summary_row import IDENTITY
from tests.fakes.results import make_results
from tests.fakes.training import Training, make_training


def test_names_that_tables_have_are_refused(edited: Callable[..., Benchmark]) -> None:
    usual = load_yaml(edited().folder / "benchmark.yaml")["parameters"]
    plain = {"type": "integer", "default": 1, "doc": "a name"}

    def named(name: str) -> None:
        edited(parameters={**usual, name: plain})

    for name in (*OF_RUNS, "loss_mean_run", "total_eff_later", "x_eff_run"):
        with pytest.raises(UserError, match=rf"parameters: '{name}' is reserved by scalesweep"):
            named(name)
    for name in ("epochs_run", "samples_per_rank", "loss", "seconds", "status"):
        named(name)  # refused where they vary
    for word in ("ideal", "eff", "speedup"):
        text = f"'rate_{word}' is what tables call the scaling of 'rate'"
        with pytest.raises(UserError, match=text):
            edited({"metric": f"rate_{word}"})


@pytest.mark.slow
def test_every_column_of_a_table_is_reserved(tmp_path: Path) -> None:
    """Whoever adds a column to a table adds its name to ``OF_TABLES`` and its docs."""
    assert set(IDENTITY) == OF_RUNS
    make_results(tmp_path / "a")
    make_training(tmp_path / "b", Training({"ranks": [1, 2]}, fixed={"target_accuracy": 0.8}))
    declared = {k.TABLE for makers in parts("MAKERS") for it in makers for k in it.kinds}
    columns: set[str] = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        plan = read_plan(folder / "plan.json")
        summary = pd.read_parquet(folder / "summary.parquet")
        tables = make_tables(summary, plan, folder / "runs" / plan["site"])
        for entry in plan["experiments"]:
            for name, frame in tables[entry["name"]].items():
                if name not in declared:  # parameters have other columns there
                    # So do curves.
                    free = set(EPOCH_CURVES) if name == "epochs" else set()
                    columns |= {str(c) for c in frame} - set(entry["axes"]) - free
    # Quantities cannot be the names of parameters.
    columns = {c for c in columns if not (split_column(c) or ("",))[0]}
    assert columns - OF_RUNS - OF_TABLES == set()
