"""MLPerf's score: what is dropped, what counts as the worst, and what is said of it."""

import math
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.stats import olympic_mean
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.score import score_findings
from scalesweep.config.campaign import load_campaign
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.detect_logs import RULES
from scalesweep.importers.write_campaign import campaign_of, write_campaign
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary
from tests.fakes.finding_rows import only
from tests.fakes.imported_runs import import_runs, read_source
from tests.fakes.mllog import T0, run_time, training


@pytest.mark.parametrize(
    ("values", "unfinished", "mean"),
    [
        ([5.0, 1.0, 3.0], 0, 3.0),
        ([1.0, 2.0, 4.0, 100.0], 0, 3.0),
        ([2.0, 1.0, 4.0], 1, 3.0),  # the best is dropped, and the one without an end
        ([7.0, 7.0, 7.0], 0, 7.0),
        ([1.0, 3.0], 1, 3.0),
        ([1.0, 2.0], 0, math.nan),
        ([1.0], 1, math.nan),
        ([], 1, math.nan),
        ([1.0, 2.0, 3.0, 4.0], 2, math.nan),
    ],
)
def test_olympic_mean(values: list[float], unfinished: int, mean: float) -> None:
    assert olympic_mean(values, unfinished) == pytest.approx(mean, nan_ok=True)


def study(folder: Path, logs: list[list[str]]) -> ExperimentResults:
    """The experiment that the logs become."""
    folder.mkdir(parents=True)
    for number, lines in enumerate(logs):
        (folder / f"result_{number}.txt").write_text("".join(lines))
    runs, refusals, _ = read_source(folder, 32)
    results = folder / "results"
    written, refused = import_runs(runs, results / "runs" / "imported")
    assert (refusals, refused) == ([], [])
    write_campaign(campaign_of(written, RULES, "imported", str(results)), folder / "c.yaml")
    campaign = load_campaign(folder / "c.yaml")
    states = scan(campaign.runs_folder, campaign.unique_runs())
    plan = build_plan(campaign, states)
    summary = build_summary(sorted(results.glob("runs/imported/*/record.json")))
    (tables,) = make_tables(summary, plan).values()
    return ExperimentResults(plan["experiments"][0], tables)


def log(number: int, epochs: int, **told: Any) -> list[str]:
    return training([0.3] * (epochs - 1) + [0.1], ms=T0 + number * 10**8, **told)


def test_ten_runs(tmp_path: Path) -> None:
    epochs = [5, 3, 4, 9, 4, 6, 7, 4, 5, 6]
    found = study(tmp_path / "logs", [log(n, count) for n, count in enumerate(epochs)])
    (row,) = found.rows("score")
    assert (row["planned"], row["runs"], row["reached"], row["asked"]) == (10, 10, 10, 10)
    kept = sorted(epochs)[1:-1]
    assert row["score"] == pytest.approx(sum(map(run_time, kept)) / 8)
    finding = only(score_findings(found))
    assert (finding.state, finding.flags) == ("clear", ("1 best and 1 worst dropped",))
    assert finding.sentence == f"MLPerf score of 10 runs: {row['score']:,.1f} s."


def test_an_unfinished_run_is_the_worst(tmp_path: Path) -> None:
    logs = [log(0, 3), log(1, 5), log(2, 4), log(3, 2, status="aborted")]
    found = study(tmp_path / "one", logs)
    (row,) = found.rows("score")
    assert (row["runs"], row["reached"]) == (4, 3)
    assert row["score"] == pytest.approx((run_time(4) + run_time(5)) / 2)
    finding = only(score_findings(found))
    assert (finding.state, finding.reason) == ("open", "MLPerf takes 10 runs")
    assert finding.flags[1] == "1 of 4 runs missed the target"
    found = study(tmp_path / "two", [*logs, log(4, 3, status=None)])
    assert found.rows("score")[0]["score"] is None
    finding = only(score_findings(found))
    assert (finding.state, finding.sentence) == ("attention", "No MLPerf score of 5 runs.")
    assert finding.reason == "2 of 5 runs missed the target"


def test_models_of_a_weak_submission_have_no_score(tmp_path: Path) -> None:
    found = study(tmp_path / "results" / "weak" / "cosmoflow", [log(n, 4) for n in range(4)])
    assert found.rows("score") == []
