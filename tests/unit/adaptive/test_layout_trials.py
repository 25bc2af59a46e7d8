"""Layouts that were not run: what `predict` and `advise --layouts` say of a campaign."""

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.lib.layout_truth import Program, bytes_of, layouts_on, seconds_of, sweep
from scalesweep.analysis.prediction.layouts.memory import MemoryJudge
from scalesweep.analysis.prediction.layouts.runs import Layout
from scalesweep.aspects.prediction.findings import scored_layouts
from scalesweep.aspects.prediction.layouts import (
    KEPT_LAYOUTS,
    ScoredLayout,
    layout_forecast_rows,
    read_layouts,
)
from scalesweep.aspects.prediction.section import prediction_section
from scalesweep.commands import advise, predict
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.experiment.results import ExperimentResults
from scalesweep.state.results_folder import claim_folder
from scalesweep.table.declared import frame_of
from scalesweep.tables.layout_runs import is_layout_study, layout_studies, study_parameters
from scalesweep.tables.now import read_now
from scalesweep.tables.points import ExperimentData
from tests.fakes.imported_table import imported
from tests.fakes.records import write_unchecked

PROGRAM = Program(scatter=0.0, slow=0.0)
MESH = """mesh: [dp, tp, pp]
transformer:
  layers: "32"
  width: "4096"
  sequence: "4096"
  parameters: "8000000000"
  micro_batch: micro_batch
  accumulation: accumulation
  global_batch: global_batch
"""
MEMORY = """  vocabulary: "131072"
  tied: "false"
  dtype: "'bfloat16'"
memory: {zero: zero, device_gib: "80", peak: peak_memory}
"""
PARAMETERS = "".join(
    f"  {name}: {{type: integer, minimum: {0 if name == 'zero' else 1}, default: 1, doc: {name}}}\n"
    for name in ("dp", "tp", "pp", "zero", "micro_batch", "accumulation", "global_batch")
)
BODY = """
scaling: strong
axes: {ranks: [8, 16, 32, 64], tp: [2, 4, 8], pp: [1, 2, 4], micro_batch: [1, 2], zero: [0, 1]}
fixed: {ranks_per_node: 8, global_batch: 64}
derive:
  dp: ranks / (tp * pp)
  accumulation: global_batch / (micro_batch * dp)
"""
RATE = {"unit": "tokens/s", "better": "higher", "scope": "total"}


PEAK = {"unit": "GiB", "better": "lower", "scope": "total"}


@pytest.fixture
def campaign(toy: Path, campaign_of: Callable[..., Campaign], tmp_path: Path) -> Campaign:
    """A campaign of layouts on up to 64 ranks."""
    benchmark = toy / "benchmarks" / "toy" / "benchmark.yaml"
    text = benchmark.read_text().replace("divides:", f"{PARAMETERS}divides:", 1)
    benchmark.write_text(text.replace("work: {scope: rank, samples: size}\n", MESH))
    site = toy / "sites" / "toy.yaml"
    site.write_text(site.read_text().replace("nodes: 4", "nodes: 64"))
    top = f"campaign: test\nsite: toy\nresults: {tmp_path / 'results'}\n"
    return campaign_of(BODY, top)


@pytest.fixture
def with_memory(campaign: Campaign, toy: Path) -> Campaign:
    """The same, of a benchmark that says what its memory depends on."""
    benchmark = toy / "benchmarks" / "toy" / "benchmark.yaml"
    benchmark.write_text(benchmark.read_text().replace(MESH, MESH + MEMORY))
    return load_campaign(campaign.file)


def layout_of(point: Any) -> Layout:
    return Layout(
        point["dp"], point["tp"], point["pp"], point["micro_batch"], point["accumulation"], 8,
        sharded=point["zero"] > 0, work=PROGRAM.flop, layers=32.0, traffic=4096.0 * 4096,
        weights=8e9,
    )  # fmt: skip


def finish(campaign: Campaign, upto: int, above: int = 0) -> None:
    """Finish the runs of more than ``above`` and up to ``upto`` ranks; those that need more than
    their device have none."""
    for run in campaign.experiments[0].runs:
        layout = layout_of(run.point)
        if not above < run.point["ranks"] <= upto or bytes_of(PROGRAM, layout) > 80e9:
            continue
        rate = layout.global_batch * 4096 / seconds_of(PROGRAM, layout)
        write_unchecked(
            campaign.runs_folder, run.run_id, benchmark="toy", point=dict(run.point),
            metrics={
                "tokens_per_second": {"value": rate, **RATE},
                "peak_memory": {"value": bytes_of(PROGRAM, layout) / 2**30, **PEAK},
            },
            resources={}, wall_s=60.0, work={"samples_per_epoch": None},
        )  # fmt: skip


def ask(campaign: Campaign, **words: str) -> None:
    known = {"site": None, "results": None, "budget": "", "target": "", "layouts": "", "ranks": ""}
    advise.run(argparse.Namespace(campaign=str(campaign.file), **{**known, **words}))


def decisions(campaign: Campaign) -> list[dict[str, str]]:
    with (campaign.results / "advice_layouts.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def table(campaign: Campaign) -> list[dict[str, str]]:
    """The layouts that are chosen."""
    return [row for row in decisions(campaign) if row["decision"] == "chosen"]


@pytest.mark.slow
def test_five_layouts_have_the_best_among_them_and_their_file_measures_them(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(campaign, 32)
    ask(campaign, layouts="5", ranks="64")
    said = capsys.readouterr().out
    rows = table(campaign)
    assert len(rows) == 5
    assert all(int(row["dp"]) * int(row["tp"]) * int(row["pp"]) == 64 for row in rows)
    times = {
        layout: seconds_of(PROGRAM, layout)
        for run in campaign.experiments[0].runs
        if run.point["ranks"] == 64 and bytes_of(PROGRAM, layout := layout_of(run.point)) <= 80e9
    }
    names = ("dp", "tp", "pp", "micro_batch", "accumulation")
    tried = [
        time
        for layout, time in times.items()
        for row in rows
        if [str(getattr(layout, name)) for name in names] == [row[name] for name in names]
        and str(layout.sharded) == row["sharded"]
    ]
    assert min(tried) <= 1.05 * min(times.values())
    assert "layouts to try on 64 ranks" in said
    assert "among the fastest expected" in said
    # Every layout of 64 ranks is decided on.
    planned = {run.run_id for run in campaign.experiments[0].runs if run.point["ranks"] == 64}
    every = decisions(campaign)
    assert len(every) == len(planned)
    assert all(row["reason"] for row in every)
    gains = [float(row["gain"]) for row in rows]
    assert gains == sorted(gains, reverse=True)
    others = [float(row["gain"]) for row in every if row not in rows and row["gain"]]
    assert max(others) <= gains[-1] + 1e-9
    assert "node-hours at most" in said
    made = load_campaign(campaign.results / "advice.yaml")
    asked = [run for run in made.experiments[0].runs if run.point["ranks"] == 64]
    assert len(asked) == 5
    assert {run.run_id for run in asked} <= {run.run_id for run in campaign.experiments[0].runs}
    for row in rows:
        assert float(row["low"]) < float(row["rate"]) < float(row["high"])
        assert float(row["node_hours"]) > 0


@pytest.mark.slow
def test_expected_rates_are_kept_and_scored_when_layouts_are_measured(campaign: Campaign) -> None:
    finish(campaign, 32)
    ask(campaign, layouts="5", ranks="64")
    file = campaign.results / KEPT_LAYOUTS
    kept = read_layouts(file)
    assert len(kept) == sum(bool(row["rate"]) for row in decisions(campaign)) > 5
    assert sum(each["chosen"] for each in kept) == 5
    ask(campaign, layouts="5", ranks="64")
    assert read_layouts(file) == kept  # nothing new was measured
    with file.open("a") as lines:
        lines.write('{"half')
    finish(campaign, 64, above=32)
    plan, summary = read_now(campaign)
    data = ExperimentData(summary, plan["experiments"][0])
    rows = list(layout_forecast_rows(data, read_layouts(file)))
    ran = [each for each in kept if bytes_of(PROGRAM, layout_of(each["point"])) <= 80e9]
    assert len(rows) == len(ran) > 5
    assert sum(row.chosen for row in rows) == sum(each["chosen"] for each in ran) > 0
    assert {row.level for row in rows} == {0.9}
    for row in rows:
        low, high = row.expected.low, row.expected.high
        assert low is not None and high is not None
        assert row.hit == (low <= row.measured <= high)
        assert row.error == pytest.approx(row.measured / row.expected.value - 1)
    results = ExperimentResults(data.experiment, {ScoredLayout.TABLE: frame_of(rows)})
    (finding,) = scored_layouts(results)
    hits = sum(row.hit for row in rows)
    assert finding.text.startswith(
        f"Of {len(rows)} layouts with an expected rate that have been measured since, {hits} were "
        "within the interval of 90 %; the error is "
    )
    advised = [row for row in rows if row.chosen]
    within = sum(row.hit for row in advised)
    assert finding.text.endswith(f" (of {len(advised)} that were advised, {within} within it).")
    section = prediction_section(results, 100)
    assert section is not None and section.layouts is not None
    assert section.predicted is None and section.forecasts is None


@pytest.mark.slow
def test_a_budget_is_kept(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    finish(campaign, 32)
    ask(campaign, layouts="5", ranks="64")
    each = [float(row["node_hours"]) for row in table(campaign)]
    ask(campaign, layouts="5", ranks="64", budget=str(1.01 * (each[0] + each[1])))
    rows = table(campaign)
    assert 0 < sum(float(row["node_hours"]) for row in rows) <= 1.01 * (each[0] + each[1])
    assert 0 < len(rows) < 5
    reasons = {row["reason"] for row in decisions(campaign) if row["decision"] == "refused"}
    assert any("node-hours, " in reason and "are left" in reason for reason in reasons)
    ask(campaign, layouts="5", ranks="64", budget=str(0.5 * min(each)))
    said = capsys.readouterr().out
    assert "none of its layouts can be paid for" in said
    assert "node-hours alone" in said


@pytest.mark.slow
def test_counts_that_are_not_planned_are_chosen_from_the_same_settings(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(campaign, 64)
    ask(campaign, layouts="3", ranks="128")
    rows = table(campaign)
    assert len(rows) == 3
    # 64 samples are no whole number for each of 128 replicas.
    assert all(int(row["dp"]) <= 64 for row in rows)
    made = load_campaign(campaign.results / "advice.yaml")
    assert sum(run.point["ranks"] == 128 for run in made.experiments[0].runs) == 3


@pytest.mark.slow
def test_predictions_of_layouts(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    finish(campaign, 32)
    given = {"campaign": str(campaign.file), "site": None, "results": None}
    predict.run(argparse.Namespace(**given, ranks="64,128,512"))
    said = capsys.readouterr().out
    assert "e, global batch 64: layouts at 64 ranks, tokens_per_second" in said
    assert "another regime: 128 ranks are 4 times the largest measured number (32)" in said
    assert "refused: 512 ranks are more than 4 times the largest measured number (32)" in said
    assert "note: ordered by" in said


def test_a_study_is_of_layouts_only(campaign: Campaign) -> None:
    finish(campaign, 16)
    plan, summary = read_now(campaign)
    (entry,) = plan["experiments"]
    assert is_layout_study(entry)
    assert study_parameters(entry) == []
    (study,) = layout_studies(ExperimentData(summary, entry))
    assert study.batch == 64
    assert study.measured.scales == [8, 16]
    layout, seconds = study.measured.layouts[0], float(study.measured.seconds[0])
    assert seconds == pytest.approx(seconds_of(PROGRAM, layout) / 4096)
    assert study.rate(layout, seconds) == pytest.approx(layout.global_batch / seconds)


def test_layouts_that_are_sharded_in_two_ways_are_studied_apart() -> None:
    """Their rates were averaged as those of one layout."""
    points = [
        {"ranks": ranks, "dp": ranks, "zero": zero} for ranks in (8, 16) for zero in (0, 1, 3)
    ]

    def apart(*levels: int, **more: Any) -> list[str]:
        entry: Any = {
            "name": "e", "axes": ["ranks", "dp", "zero"], "scale": "ranks", "fixed": {},
            "mesh": {"dp": "dp"}, **more,
            "runs": [{"point": point} for point in points if point["zero"] in levels],
        }  # fmt: skip
        return study_parameters(entry)

    assert apart(0, 1, 3) == ["zero"]
    assert apart(0, 3) == []
    assert apart(0, 1, 3, memory={"zero": "3 if zero > 0 else 0"}) == []


@pytest.mark.slow
def test_imported_layouts_are_named_without_a_campaign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a published table: layouts that ranks allow, also where failures have no stated cause."""
    claim_folder(tmp_path, "--results")
    study = sweep(PROGRAM, (1, 2, 4), np.random.default_rng(3), 0.4)
    lines = ["ranks,dp,tp,pp,zero,micro,steps,end,mfu,rate"]
    for layout, seconds in zip(study.layouts, study.seconds.tolist(), strict=True):
        cells = [layout.ranks, layout.dp, layout.tp, layout.pp, int(layout.sharded)]
        ends = ["ok", 0.4, layout.global_batch / seconds / layout.ranks]
        ends = ["failed", "", ""] if math.isnan(seconds) else ends
        lines.append(",".join(map(str, [*cells, layout.micro_batch, layout.accumulation, *ends])))
    names = {"micro_batch": "micro", "accumulation": "steps"}
    mapped = ("ranks", "dp", "tp", "pp", "zero", "micro_batch", "accumulation")
    content = {
        "name": "published",
        "parameters": {name: {"column": names.get(name, name)} for name in mapped},
        "metrics": {
            "a_share": {"column": "mfu", "unit": "1", "better": "higher", "scope": "rank"},
            "speed": {"column": "rate", "unit": "samples/s", "better": "higher", "scope": "rank"},
        },
        "failed": {"column": "end", "values": {"failed": "NOT_STATED"}},
        "mesh": ["dp", "tp", "pp"],
        "transformer": {"layers": "32", "width": "4096", "sequence": "4096",
                        "micro_batch": "micro_batch", "accumulation": "accumulation"},
    }  # fmt: skip
    imported(tmp_path, "\n".join(lines) + "\n", content)
    capsys.readouterr()
    campaign = load_campaign(tmp_path / "campaign.yaml")
    ask(campaign, layouts="5", ranks="64", budget="1")
    said = capsys.readouterr().out
    rows = table(campaign)
    assert len(rows) == 5
    assert {row["node_hours"] for row in rows} == {""}
    assert {row["metric"] for row in rows} == {"speed"}
    fitting = [x for x in layouts_on(PROGRAM, 8) if bytes_of(PROGRAM, x) < 8e10]
    best = min(seconds_of(PROGRAM, layout) for layout in fitting)
    first = {tuple(int(row[n]) for n in ("dp", "tp", "pp", "micro_batch")) for row in rows}
    tried = [
        seconds_of(PROGRAM, layout)
        for layout in fitting
        if (layout.dp, layout.tp, layout.pp, layout.micro_batch) in first
    ]
    assert min(tried) <= 1.05 * best
    assert (
        "starts no runs (no 'launch'), so no campaign is written, and the budget is ignored" in said
    )
    assert not (campaign.results / "advice.yaml").exists()


@pytest.mark.slow
def test_the_memory_model_says_which_layouts_fit(with_memory: Campaign) -> None:
    """By measured peaks, of layouts at a scale that was not run."""
    finish(with_memory, 16)
    plan, summary = read_now(with_memory)
    (study,) = layout_studies(ExperimentData(summary, plan["experiments"][0]))
    assert isinstance(study.fits, MemoryJudge)
    assert len(study.fits.peaks) == int(study.measured.ran.sum())
    assert study.fits.device == 80 * 2**30
    layouts = tuple(layout_of(run.point) for run in with_memory.experiments[0].runs)
    large = np.array([bytes_of(PROGRAM, layout) > 80e9 for layout in layouts])
    fits = study.fits(study.measured, layouts)
    likely = np.array([fit is not None for fit in fits])
    called = np.array([fit is False for fit in fits])
    assert likely.mean() > 0.7
    assert (called == large)[likely].mean() > 0.9


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"layouts": "5"}, "for how many ranks"),
        ({"layouts": "five", "ranks": "64"}, "--layouts five: must be a whole number"),
        ({"layouts": "0", "ranks": "64"}, "--layouts 0: must be a whole number"),
        ({"layouts": "5", "ranks": "64,128"}, "--ranks 64,128: must be a whole number"),
        ({"layouts": "5", "ranks": "64", "target": "e"}, "ask for two things"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    campaign: Campaign, words: dict[str, str], why: str
) -> None:
    with pytest.raises(UserError, match=why):
        ask(campaign, **words)


def test_too_few_layouts_are_refused(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(campaign, 8)
    ask(campaign, layouts="5", ranks="64")
    said = capsys.readouterr().out
    assert "refused: 64 ranks are more than 4 times the largest measured number (8)" in said
    assert not (campaign.results / "advice.yaml").exists()


def test_where_nothing_was_measured_the_message_says_what_is_missing(campaign: Campaign) -> None:
    with pytest.raises(UserError, match=r"e: a forecast of layouts takes .* a rate that was mea"):
        ask(campaign, layouts="5", ranks="64")


def test_a_campaign_without_layouts_is_refused_in_one_line(
    campaign_of: Callable[..., Campaign],
) -> None:
    with pytest.raises(UserError, match="no experiment splits equal ranks in several ways"):
        ask(campaign_of("axes: {ranks: [1, 2]}"), layouts="5", ranks="64")
