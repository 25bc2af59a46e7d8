"""Two benchmarks in one experiment, through Snakemake, with programs done in milliseconds."""

import pandas as pd
import pytest
import yaml

from tests.conftest import Project
from tests.fakes.two_benchmarks import BOTH, add_toy_fast

pytestmark = pytest.mark.slow


def test_two_benchmarks_are_compared_in_one_report(project: Project) -> None:
    add_toy_fast(project.path / "workflow" / "benchmarks")
    project.write("c.yaml", f"campaign: two\nsite: toy\nexperiments:\n  both:{BOTH}")
    done = project.snakemake("--configfile", "c.yaml", "--config", "history=kept")
    assert done.returncode == 0, done.stdout + done.stderr
    results = project.path / "results"
    assert [path.name for path in (results / "tables").iterdir()] == ["both"]

    scaling = pd.read_parquet(results / "tables" / "both" / "scaling.parquet")
    assert scaling.groupby("benchmark")["ranks"].apply(list).to_dict() == {
        "toy": [1, 2], "toy_fast": [1, 2],
    }  # fmt: skip
    ratios = pd.read_parquet(results / "tables" / "both" / "comparisons.parquet")
    ratios = ratios[ratios["parameter"] == "benchmark"]
    assert set(ratios["value"]) == {"toy_fast"}
    # Of times 1 and 1.01 s over 0.6 and 0.611 s.
    assert ratios["ratio"].between(1.65, 1.67).all() and ratios["low"].dropna().gt(1.5).all()
    assert (results / "figures" / "both" / "ratio-benchmark-later.svg").is_file()

    page = (results / "report.html").read_text()
    assert "<b>toy</b>, version 1; <b>toy_fast</b>, version 1" in page
    assert "toy_fast over toy (benchmark)" in page

    # Each part alone is what other results are compared with, and what the history keeps.
    alone = yaml.safe_load(BOTH) | {"benchmark": "toy"}
    alone["fixed"] |= alone.pop("fixed_of")["toy"]
    text = yaml.safe_dump({"campaign": "one", "site": "toy", "experiments": {"alone": alone}})
    project.write("alone.yaml", text)
    words = ("--configfile", "alone.yaml", "--config", "results=results")
    done = project.snakemake("plan", *words)
    assert done.returncode == 0 and "4 runs, 4 done" in done.stdout
    sessions = [*(project.path / "kept" / "sessions").glob("*.parquet")]
    assert set(pd.concat(map(pd.read_parquet, sessions))["experiment"]) == {
        "both.toy", "both.toy_fast",
    }  # fmt: skip
