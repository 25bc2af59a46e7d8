"""Effects of one parameter with the others held: matched pairs, ranges of good values, medians."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.aspects.effects.findings import effects_of_values, medians_over_series
from scalesweep.aspects.effects.table import Effect
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE
from tests.fakes.results import Fake, demo, make_results


def study_of(root: Path, fake: Fake) -> ExperimentResults:
    root = make_results(root, [fake])
    return load_results(read_plan(root / "plan.json")["experiments"][0], root / "tables")


def said(results: ExperimentResults, about: str) -> list[str]:
    return [finding.text for finding in effects_of_values(results) if about in finding.text]


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return study_of(tmp_path_factory.mktemp("pools"), demo()[1])


def test_pairs_differ_in_one_parameter_and_skip_holes(pools: ExperimentResults) -> None:
    rows = {(r.parameter, r.value, r.phase): r for r in pools.of(Effect)}
    means = {
        (row["inter_threads"], row["intra_threads"]): row["total_throughput_mean_init"]
        for row in pools.points
        if row["repeats"]
    }
    row = rows["inter_threads", "4", "init"]
    ratios = [means[4, n] / means[0, n] for n in (0, 6, 12, 24, 36)]  # (4, 48) has failed
    assert (row.base, row.pairs, row.higher, row.without) == ("0", 5, 5, 1)
    assert row.ratio.value == pytest.approx(math.exp(np.mean(np.log(ratios))))
    assert row.median == pytest.approx(np.median(ratios))
    assert (row.least, row.most) == pytest.approx((min(ratios), max(ratios)))
    assert row.ratio.low is not None and row.ratio.high is not None
    assert row.ratio.low < 1.08 < row.ratio.high
    # Excluded on purpose is not planned; pending is.
    assert [rows["inter_threads", n, "later"].without for n in ("1", "3")] == [0, 1]
    intra = rows["intra_threads", "0", "later"]
    # Settings of the other parameter that lack a value are left out for all values.
    assert intra.settings == 2 and intra.ratio.value == 1 and intra.ratio.low is None
    assert sum(rows["intra_threads", str(n), "later"].best_in or 0 for n in (12, 24)) == 2


def test_sentences_on_each_axis_in_both_phases(pools: ExperimentResults) -> None:
    inter = said(pools, "inter_threads against 0")
    assert len(inter) == 2 and "first epoch" in inter[1]
    assert all("; 2 " in text and "lower in all 5 pairs" in text for text in inter)
    (text,) = said(pools, "best intra_threads")
    assert text.count("12 to 24") == 2 and "first epoch" in text
    assert all(f.level == NOTE and not f.claims for f in effects_of_values(pools))


def test_pairs_without_a_ratio_are_counted(tmp_path: Path) -> None:
    """A mean of zero is a result: it is no hole in the study, and no part of a ratio."""
    axes = {"a": [1, 2], "b": [0, 1, 2, 3]}
    root = make_results(tmp_path, [Fake("e", axes, repeats=3)])
    plan, summary = read_plan(root / "plan.json"), pd.read_parquet(root / "summary.parquet")
    entry = plan["experiments"][0]
    idle = [
        run["run_id"] for run in entry["runs"]
        if (run["point"]["a"], run["point"]["b"]) in {(2, 0), (1, 1)}
    ]  # fmt: skip
    for name in summary.columns:
        if name.startswith("total_throughput_mean"):
            summary.loc[summary["run_id"].isin(idle), name] = 0.0
    results = ExperimentResults(entry, make_tables(summary, plan)["e"])
    (row,) = [
        r for r in results.of(Effect) if (r.value, r.phase, r.parameter) == ("2", "later", "a")
    ]
    assert (row.pairs, row.without, row.not_positive) == (2, 0, 2)
    text = said(results, "a against 1")[0]
    assert ", without 2 more pairs of which a mean is not above 0." in text


@pytest.mark.parametrize(
    ("speed", "words"),
    [
        # The better value of a depends on b: the mean of the ratios describes neither.
        (
            lambda p: {(3, True): 3.0, (1, False): 2.0}.get((p["a"], p["b"] > 1), 1.0),
            "higher in 2 of 4 pairs",
        ),
        (lambda p: 1.3 if p["a"] == 2 else 1.0, "higher in all 4 pairs"),
    ],
)
def test_a_reversal_is_said(
    tmp_path: Path, speed: Callable[[dict[str, Any]], float], words: str
) -> None:
    axes = {"a": [1, 2, 3], "b": [0, 1, 2, 3]}
    results = study_of(tmp_path, Fake("e", axes, repeats=3, speed=speed))
    value = "3" if "2 of 4" in words else "2"
    (row,) = [
        r for r in results.of(Effect) if (r.value, r.phase, r.parameter) == (value, "later", "a")
    ]
    assert words in said(results, "a against 1")[0]
    (best,) = said(results, "best a on average")
    if value == "3":
        assert row.least < 0.6 and row.most > 1.7
        assert " on average, from 0." in said(results, "a against 1")[0]
        assert "which value is the best depends on the other parameters" in best
    else:
        assert "2 (later epochs; 2 is the best at 4 of 4 settings)" in best


def test_single_runs_and_one_parameter(tmp_path: Path) -> None:
    axes = {"a": [1, 2, 3], "mode": ["x", "y"]}
    results = study_of(tmp_path / "1", Fake("e", axes, repeats=1))
    assert all(row.ratio.low is None for row in results.of(Effect))
    assert (
        said(results, "best a on average") == []
        and "(median " in said(results, "mode against x")[0]
    )
    assert study_of(tmp_path / "2", Fake("e", {"a": [1, 2]}, repeats=2)).of(Effect) == []


def test_medians_over_series(tmp_path: Path) -> None:
    fake = Fake(
        "e", {"ranks": [1, 2, 4], "mode": ["x", "y", "z"]}, "weak", repeats=2,
        fate=lambda p, r: "TIMEOUT" if (p["ranks"], p["mode"]) == (4, "x") else "done",
        speed=lambda p: {"x": 1.0, "y": 0.9, "z": 0.7}[p["mode"]] if p["ranks"] == 2 else 1.0,
    )  # fmt: skip
    results = study_of(tmp_path, fake)
    rows = [row for row in results.scaling if row["ranks"] == 2]
    median = float(np.median([row["total_speedup_later"] for row in rows]))
    text = next(f.text for f in medians_over_series(results) if "later epochs" in f.text)
    assert f"{median:.2f} times at 2 ranks (efficiency {50 * median:.1f} %, 3 series)" in text
    assert "4 ranks" not in text  # two series are too few for a median


@pytest.mark.slow
def test_the_interval_of_a_mean_ratio_covers_it(tmp_path: Path) -> None:
    """Without any effect 95 % of the intervals hold 1, whatever the noise of the points."""
    covered = []
    for noise in (0.005, 0.05):
        for seed in range(6):
            axes = {"a": [1, 2, 3, 4], "b": [0, 1, 2]}
            fake = Fake(f"e{seed}-{noise}", axes, repeats=3, epochs=2, noise=noise)
            rows = study_of(tmp_path / fake.name, fake).of(Effect)
            covered += [
                row.ratio.low <= 1 <= row.ratio.high
                for row in rows
                if row.ratio.low is not None and row.ratio.high is not None
            ]
    assert len(covered) == 2 * 6 * 2 * 5
    assert 0.9 < np.mean(covered) <= 1.0
