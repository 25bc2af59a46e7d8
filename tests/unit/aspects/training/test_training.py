"""Training: epochs, phases, power on the page; what is said of accuracy, input, MLPerf's score."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.stats import olympic_mean
from scalesweep.aspects.draw import draw
from scalesweep.aspects.energy.table import energy_lines
from scalesweep.aspects.find import find
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.phases import LOOKS, looks_of
from scalesweep.aspects.score import score_findings
from scalesweep.aspects.training import accuracy_table
from scalesweep.config.campaign import load_campaign
from scalesweep.core.record import read_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing
from scalesweep.importers.detect_logs import RULES
from scalesweep.importers.write_campaign import campaign_of, write_campaign
from scalesweep.planning.plan import build_plan
from scalesweep.report.experiment_part import shown_sections
from scalesweep.state.run_state import scan
from scalesweep.tables.comparisons import Comparison
from scalesweep.tables.provenance import RunFacts, run_facts
from scalesweep.tables.summary import build_summary
from tests.acceptance.faults import Program, every
from tests.fakes.finding_rows import only
from tests.fakes.imported_runs import import_runs, read_source
from tests.fakes.mllog import T0, run_time, training
from tests.fakes.planted_steps import planted_study
from tests.fakes.training import SITE, Training, mae, nt3, study_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return study_of(tmp_path_factory.mktemp("nt3"), nt3())


def test_epochs_table(study: ExperimentResults) -> None:
    table = study.tables["epochs"]
    assert len(table) == 3 * (16 + 4 + 1)
    run = table[(table["ranks"] == 4) & (table["repeat"] == 1)]
    assert run["epoch"].tolist() == [0, 1, 2, 3]
    ends = np.cumsum(run["global_times"] + run["validation_times"])
    assert run["epoch_ends"].tolist() == pytest.approx(ends)
    assert table.attrs["units"]["validation_accuracy"]["better"] == "higher"


def test_phases_table(tmp_path: Path) -> None:
    skipped = {"import": 3.0, "data_loading": 9.0, "odd": 1.0}

    def change(point: dict[str, Any], repeat: int) -> dict[str, Any]:
        return {"phases": skipped} if repeat == 2 and point["ranks"] == 1 else {}

    table = study_of(tmp_path, nt3(axes={"ranks": [1, 4]}, changes=change)).tables["phases"]
    first = table[table["ranks"] == 1].set_index("phase")
    assert list(first.index[:3]) == ["import", "init", "data_loading"]
    assert first.index[-1] == "odd"
    loading = first.loc["data_loading"]
    assert (loading["seconds"], loading["runs"]) == (pytest.approx((5 + 5 + 9) / 3), 3)
    assert loading["seconds_low"] < loading["seconds"] < loading["seconds_high"]
    # A phase that one repeat did not have is a mean over the others.
    assert (first.loc["init", "runs"], first.loc["init", "seconds"]) == (2, 1.0)
    assert first.loc["odd", "energy_runs"] == 0 and math.isnan(first.loc["odd", "energy"])
    assert loading["energy"] == pytest.approx(500.0)
    assert table.attrs["units"]["energy"]["unit"] == "J"


def named(study: ExperimentResults, name: str) -> Drawing:
    return next(drawing for drawing in draw(study) if drawing.name == name)


def means_of(study: ExperimentResults, name: str) -> pd.DataFrame:
    frame = named(study, name).panels[0].frame
    return frame[frame["style"].isin(["", "dots"]) & frame["y"].notna()]


def test_accuracy_over_time_is_drawn_by_point_and_repeat(study: ExperimentResults) -> None:
    frame = means_of(study, "accuracy-time")
    assert frame.groupby("series", sort=False).size().to_dict() == {
        "1 rank": 16, "4 ranks": 4, "16 ranks": 1,
    }  # fmt: skip
    epochs = study.tables["epochs"]
    last = epochs[(epochs["ranks"] == 4) & (epochs["epoch"] == 3)]
    end = frame[frame["series"] == "4 ranks"].iloc[-1]
    assert end["x"] == pytest.approx(last["epoch_ends"].mean())
    assert end["y"] == pytest.approx(last["validation_accuracy"].mean())
    # Each of the three repeats is a thin line of its own.
    thin = named(study, "accuracy-time").panels[0].frame.query("style == 'thin'")
    assert thin["y"].isna().sum() == 3 * 3


def test_error_has_its_target_and_dummy_input_learns_nothing(tmp_path: Path) -> None:
    reached = study_of(tmp_path / "a", mae(fixed={"target_mae": 0.08}))
    panel: Any = named(reached, "accuracy-time").panels[0]
    assert (panel.y.label, dict(panel.y.marks)) == ("Validation MAE", {"target 0.08": 0.08})
    axes = {"ranks": [1, 2], "input": ["tfrecords", "dummy"]}
    study = study_of(tmp_path / "b", mae(axes=axes))
    assert means_of(study, "accuracy-time")["series"].nunique() == 2
    assert "dummy input are left out" in named(study, "accuracy-time").caption
    assert named(study, "phases-time").panels[0].frame["label"].nunique() == 4


def test_phases_add_up_and_look_the_same_everywhere(study: ExperimentResults) -> None:
    panel: Any = named(study, "phases-time").panels[0]
    table = study.tables["phases"]
    sums = panel.frame.groupby("label", sort=False)["value"].sum()
    assert sums.tolist() == pytest.approx(table.groupby("ranks")["seconds"].sum().tolist())
    looks = looks_of(["training", "mine", "other"])
    assert looks["training"] == LOOKS["training"] and looks["mine"] != looks["other"]


def test_power_has_a_panel_a_run_with_phases_behind(study: ExperimentResults) -> None:
    drawing = named(study, "power-time")
    assert [panel.title for panel in drawing.panels] == ["1 rank", "4 ranks", "16 ranks"]
    four: Any = drawing.panels[1]
    ends = four.frame.groupby("series")["x"].agg(["min", "max"]).T
    assert ends.to_dict("list") == {"total": [1, 40], "core (not counted)": [1, 40]}
    assert four.frame.groupby("series")["y"].max()["total"] == pytest.approx(800)
    assert len(four.spans) == 3 + 2 * 4 + 1


def rows(study: ExperimentResults, question: str) -> list[Comparison]:
    """What is compared on a question, but for efficiencies."""
    return [
        row
        for row in study.of(Comparison)
        if row.question == question and row.quantity == "ratio" and not row.statistic
    ]


def told(study: ExperimentResults, rule: str, words: str) -> list[tuple[str, str]]:
    return [(f.state, f.sentence) for f in find(study) if f.rule == rule and words in f.sentence]


def test_the_fastest_to_the_target(tmp_path: Path) -> None:
    ((level, text),) = told(study_of(tmp_path / "a", mae()), "best", "target")
    assert level == "clear"
    assert text.startswith("Best is ranks 2; time to target over that of 1: 0.")
    ((level, text),) = told(study_of(tmp_path / "b", mae(repeats=1)), "best", "target")
    assert level == "open" and text.startswith("Lowest time to target measured, with ranks 2")
    # Points of other targets do not compete.
    apart = mae(axes={"ranks": [1], "target_mae": [0.1, 0.2]}, fixed={})
    assert rows(study_of(tmp_path / "c", apart), "time to target") == []


def test_final_accuracy_over_the_scale(study: ExperimentResults, tmp_path: Path) -> None:
    (row,) = rows(study, "scaling")
    assert (row.metric, row.value, row.base_value) == ("final_validation_accuracy", "16", "1")
    assert row.ratio and row.ratio.high and row.ratio.high < 1
    ((level, text),) = told(study, "ratio", "accuracy")
    assert level == "clear" and text.startswith("16 over 1 (ranks), ")
    assert rows(study_of(tmp_path / "b", mae(fixed={"input": "dummy"})), "scaling") == []


def test_accuracy_is_compared_only_after_the_same_training(tmp_path: Path) -> None:
    # Ranks that train on samples of their own train on more in all, unless to a target.
    more: dict[str, Any] = {"planned": lambda p: 100 * p["ranks"], "scaling": "weak"}
    target = nt3(**more, fixed={"target_accuracy": 0.5})
    fakes = [nt3(compare=None), nt3(compare="never"), nt3(**more), target]
    fakes.append(nt3(**more, compare="always"))
    found = [rows(study_of(tmp_path / str(i), fake), "scaling") for i, fake in enumerate(fakes)]
    assert [len(each) for each in found] == [0, 0, 0, 1, 1]


def test_input_cost_is_the_ratio_to_dummy_input(tmp_path: Path) -> None:
    def against(other: str) -> ExperimentResults:
        seconds = {"tfrecords": 15.0, other: 10.0}
        axes = {"ranks": [1], "input": [*seconds]}
        return study_of(tmp_path / other, mae(axes=axes, epoch_s=lambda p: seconds[p["input"]]))

    study = against("dummy")
    first, _ = rows(study, "input")
    assert (first.value, first.base_value, first.metric) == ("tfrecords", "dummy", "total_time")
    assert first.ratio and first.ratio.value == pytest.approx(1.5, abs=0.05)
    ((level, text), _) = told(study, "ratio", "over dummy")
    assert level == "clear" and text.startswith("tfrecords over dummy (input), ")
    assert "(first epoch)" in text
    assert rows(against("other"), "input") == []


# --- sections of the page ---


def one(root: Path, fake: Training) -> tuple[ExperimentResults, dict[str, RunFacts]]:
    study, records = study_of(root, fake), (root / "runs" / SITE).glob("*/record.json")
    return study, {path.parent.name: run_facts(read_record(path)) for path in records}


@pytest.mark.parametrize(
    ("fake", "lines"),
    [
        (nt3(), ["Energy: measured in 9 of 9 runs with rapl, sampled every 1 s"]),
        (nt3(watts=lambda p, r: None if r else 100.0),
         ["Energy: measured in 3 of 9 runs with rapl", "not measured in 6 of 9 runs: host n0 has"]),
        (nt3(changes=lambda p, r: {"energy": None}, watts=lambda p, r: None),
         ["Energy: not measured: the records hold no energy data."]),
        (nt3(fate=lambda p, r: "new"), []),
    ],
)  # fmt: skip
def test_energy_is_told_with_its_source(tmp_path: Path, fake: Training, lines: list[str]) -> None:
    told = energy_lines(*one(tmp_path, fake))
    for line, part in zip(told, lines, strict=True):
        assert part in line


def test_experiments_that_do_not_train_are_not_asked_for_energy(tmp_path: Path) -> None:
    fake = nt3(changes=lambda p, r: {"energy": None, "metrics": {}}, watts=lambda p, r: None,
               arrays=lambda a, p, r: [a.pop(n) for n in list(a) if "_times" not in n])  # fmt: skip
    study, facts = one(tmp_path, fake)
    assert energy_lines(study, facts) == shown_sections(study, facts, 10) == []


def test_accuracy_table_says_who_reached_the_target(tmp_path: Path) -> None:
    study, facts = one(tmp_path, nt3(fixed={"target_accuracy": 0.9}))
    titles = [shown["title"] for shown in shown_sections(study, facts, 10)]
    assert {"Accuracy", "Phases", "Energy"} <= {*titles}
    table = accuracy_table(study, 2)
    assert (len(table.head), table.left_out) == (2, 1)
    row = [cell.text for cell in table.rows[0]]
    assert row[:2] == ["1", "3/3"] and row[4] == "3/3"
    *_, reached, seconds = accuracy_table(study, 9).rows[2][:6]
    assert (reached.text, reached.bad, seconds.text) == ("0/3", True, "–")


def test_steps_have_quantiles_stalls_and_drift(tmp_path: Path) -> None:
    program = Program(faults={"compute": every(500, 25, 1), "input": lambda step, rank: step / 3})
    study = planted_study(tmp_path, program)
    (section,) = [one for one in shown_sections(study, {}, 10) if one["title"] == "Steps"]
    (row,) = section["table"]["rows"]
    cells = zip(section["table"]["headings"], row, strict=True)
    whole = {heading.text: cell.text for heading, cell in cells}
    assert whole["Stalls in a run"] == "2 (steps 25 and 50)"
    ends = []  # when the last rank is done, and what it then spends on the exchange
    for path in tmp_path.glob("runs/*/*-r2-*/samples.npz"):
        run = np.load(path)
        own = run["step_times"] + run["span_between"] - run["span_communication"]
        path_s = own.max(axis=1) + run["span_communication"].min(axis=1)
        ends.append(1e3 * np.quantile(path_s, (0.5, 0.95)))
    assert (float(whole["p50"]), float(whole["p95"])) == pytest.approx(np.median(ends, 0), rel=5e-3)
    assert float(whole["p99"]) > 400
    assert 15 < float(whole["Drift in a run"].split()[0]) < 25  # 13 ms of 66
    (drawing,) = [one for one in draw(study) if one.name == "warm-up"]
    longest = drawing.panels[-1].frame.query("series == 'longest'")  # of the most ranks
    assert longest.nlargest(2, "y")["x"].sort_values().tolist() == [25, 50]


# --- MLPerf's score ---


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


def scored(folder: Path, logs: list[list[str]]) -> ExperimentResults:
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
    found = scored(tmp_path / "logs", [log(n, count) for n, count in enumerate(epochs)])
    (row,) = found.rows("score")
    assert (row["planned"], row["runs"], row["reached"], row["asked"]) == (10, 10, 10, 10)
    kept = sorted(epochs)[1:-1]
    assert row["score"] == pytest.approx(sum(map(run_time, kept)) / 8)
    finding = only(score_findings(found))
    assert (finding.state, finding.flags) == ("clear", ("1 best and 1 worst dropped",))
    assert finding.sentence == f"MLPerf score of 10 runs: {row['score']:,.1f} s."


def test_an_unfinished_run_is_the_worst(tmp_path: Path) -> None:
    logs = [log(0, 3), log(1, 5), log(2, 4), log(3, 2, status="aborted")]
    found = scored(tmp_path / "one", logs)
    (row,) = found.rows("score")
    assert (row["runs"], row["reached"]) == (4, 3)
    assert row["score"] == pytest.approx((run_time(4) + run_time(5)) / 2)
    finding = only(score_findings(found))
    assert (finding.state, finding.reason) == ("open", "MLPerf takes 10 runs")
    assert finding.flags[1] == "1 of 4 runs missed the target"
    found = scored(tmp_path / "two", [*logs, log(4, 3, status=None)])
    assert found.rows("score")[0]["score"] is None
    finding = only(score_findings(found))
    assert (finding.state, finding.sentence) == ("attention", "No MLPerf score of 5 runs.")
    assert finding.reason == "2 of 5 runs missed the target"


def test_models_of_a_weak_submission_have_no_score(tmp_path: Path) -> None:
    found = scored(tmp_path / "results" / "weak" / "cosmoflow", [log(n, 4) for n in range(4)])
    assert found.rows("score") == []
