"""What is advised for a campaign: its questions, points, costs, and the file that measures it."""

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalesweep.adaptive.advice
from scalesweep.adaptive.advice import make_study
from scalesweep.adaptive.advice_points import between, geometric_counts, longest_of, prices_of
from scalesweep.adaptive.advice_target import Wanted, read_target
from scalesweep.adaptive.policy import look
from scalesweep.analysis.network_fit import RING, fit_network, predicted_seconds
from scalesweep.aspects.prediction.table import prediction_rows
from scalesweep.commands.advise import CAMPAIGN, CURVE, TABLE, run
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.tables.machine import Machine, Network
from scalesweep.tables.now import read_now
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.rank_layout import Layout
from tests.fakes.records import write_unchecked

Load = Callable[..., Campaign]
WEAK = """
scaling: weak
axes: {ranks: [1, 2, 4, 8, 16, 64], size: [5]}
fixed: {ranks_per_node: 16}
exclude: [{when: ranks == 24, reason: odd}]
predict: {ranks: [128]}
repeats: 2
"""
RATE = {"unit": "samples/s", "better": "higher", "scope": "total"}


def finish(
    campaign: Campaign, speed: Callable[[Any], float], upto: int = 8, **metrics: Any
) -> None:
    """Finish the runs of up to so many ranks: 36 s each, a little slower every time."""
    for one in campaign.experiments:
        for planned in one.runs:
            if planned.point["ranks"] > upto:
                continue
            value = speed(planned.point) * (1 + 0.01 * planned.repeat)
            write_unchecked(
                campaign.runs_folder, planned.run_id, benchmark="toy", repeat=planned.repeat,
                point=dict(planned.point), metrics={"speed": {"value": value, **RATE}, **metrics},
                work={"samples_per_epoch": None}, resources={}, wall_s=36.0 + planned.repeat,
            )  # fmt: skip


def network() -> Network:
    """The fit of a network within a node."""
    ranks = np.repeat([2.0, 4.0, 8.0], 9)
    sizes = np.tile(2.0 ** np.arange(10, 27, 2), 3)
    seconds = [
        predicted_seconds(RING, int(p), np.array([size]), 2e-3, 5e7)[0]
        for p, size in zip(ranks, sizes, strict=True)
    ]
    return Network(Layout(8, 16), {}, fit_network(ranks, sizes, np.array(seconds)), "probe")


def falling(point: Any) -> float:
    return float(point["ranks"] / (1 + 0.02 * math.log2(point["ranks"])))


@pytest.fixture
def load(campaign_of: Load, tmp_path: Path) -> Callable[..., Campaign]:
    def loaded(body: str, head: str = "") -> Campaign:
        top = f"campaign: test\nsite: toy\nresults: {tmp_path / 'results'}\n{head}"
        return campaign_of(body, top)

    return loaded


def advise(campaign: Campaign, budget: str = "2", target: str = "") -> None:
    run(argparse.Namespace(
        campaign=str(campaign.file), site=None, results=None, budget=budget, target=target,
        layouts="", ranks="",
    ))  # fmt: skip


def rows(campaign: Campaign) -> list[dict[str, str]]:
    with (campaign.results / TABLE).open(newline="") as file:
        return list(csv.DictReader(file))


def test_advice_for_the_largest_predicted_count(
    load: Callable[..., Campaign], capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = load(WEAK)
    finish(campaign, falling)
    advise(campaign, "0.12")
    said = capsys.readouterr().out
    found = rows(campaign)
    counts = [int(row["point"].partition("=")[2]) for row in found]
    # All counts are of one node of 16 ranks: two nodes are measured before anything else.
    assert counts == [32]
    assert "measure 32 ranks on two nodes" in said
    assert {row["question"] for row in found} == {"e: at 128 ranks"}
    for row, count in zip(found, counts, strict=True):
        assert int(row["measured"]) == 0
        # Nodes times more than the mean time of 36.5 s, for two nodes may take longer.
        nodes = -(-count // 16)
        each = float(row["node_hours"]) / int(row["more_runs"]) / nodes * 3600
        assert 36.5 < each < 55
        assert float(row["width_after"]) <= float(row["width_without"]) <= float(row["width_now"])
    assert math.fsum(float(row["node_hours"]) for row in found) <= 0.12
    for words in ("with 0.12 node-hours", "the best choice (gap 0 %)", "e: at 128 ranks",
                  "what each further node-hour buys", "snakemake --configfile"):  # fmt: skip
        assert words in said
    with (campaign.results / CURVE).open(newline="") as file:
        curve = list(csv.DictReader(file))
    after = [float(row["width_after"]) for row in curve]
    assert len(curve) == 10 and after == sorted(after, reverse=True)
    assert after[-1] == float(found[0]["width_after"])

    # The file has what is measured and what is advised, under the ids of the campaign.
    made = load_campaign(campaign.results / CAMPAIGN)
    (one,) = made.experiments
    ids = {run.run_id for run in one.runs}
    done = {path.name for path in campaign.runs_folder.iterdir() if path.name[0] != "."}
    assert done <= ids
    assert len(ids) == len(done) + sum(int(row["more_runs"]) for row in found)
    assert made.results == campaign.results and one.predict == (128,)
    wider = load(
        WEAK.replace("16, 64]", "10, 12, 14, 16, 20, 28, 32, 40, 48, 56, 64]").replace(
            "repeats: 2", "repeats: 9"
        )
    )
    assert ids <= {run.run_id for run in wider.experiments[0].runs}
    # Advice can go on from it.
    advise(made, "0.12")
    assert load_campaign(campaign.results / CAMPAIGN).experiments[0].axes == ("ranks",)


def test_advice_predicts_as_the_page_does_where_a_network_was_probed(
    toy: Path, load: Callable[..., Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = toy / "benchmarks" / "toy" / "benchmark.yaml"
    sized = "  batch_size: {type: integer, default: 8, unit: samples, doc: samples}\n  rate:"
    benchmark.write_text(benchmark.read_text().replace("  rate:", sized, 1))
    campaign = load(
        "scaling: weak\naxes: {ranks: [1, 2, 4, 8, 16]}\nfixed: {ranks_per_node: 64}\n"
        "predict: {ranks: [64]}"
    )
    size = {"value": 1e6, "unit": "parameters", "better": "lower", "scope": "rank"}
    finish(campaign, falling, 16, model_parameters=size)
    plan, summary = read_now(campaign)
    data = ExperimentData(summary, plan["experiments"][0])
    widths = []
    for machine in (Machine(networks=[network()]), Machine()):
        monkeypatch.setattr(
            scalesweep.adaptive.advice, "predicting_machine", lambda *_, it=machine: it
        )
        study = make_study(campaign, plan, summary, prices_of(campaign), Wanted(), 2.0)
        (answer,) = study.options(2.0).now
        row = next(prediction_rows(data, [data.points()], [64], machine))
        assert row.value and row.value.low and row.value.high
        assert answer.before == pytest.approx(math.log(row.value.high / row.value.low))
        widths.append(answer.before)
    assert widths[0] != pytest.approx(widths[1], rel=0.01)


def test_the_knee_is_asked_for_without_a_predicted_count(load: Callable[..., Campaign]) -> None:
    campaign = load(
        "scaling: strong\naxes: {rate: [1, 2]}\nfixed: {ranks_per_node: 16}\nlinked: "
        "[{ranks: 1, size: 48}, {ranks: 2, size: 24}, {ranks: 4, size: 12}, {ranks: 8, size: 6}]"
    )
    finish(campaign, lambda point: point["ranks"] / (1 + 0.05 * point["ranks"]))
    advise(campaign, "1", "e rate=2")
    (row,) = rows(campaign)
    assert row["question"] == "e, rate 2: ranks below 80 % efficiency"
    # Efficiency is 0.875 at 4 ranks and 0.75 at 8; 48 samples divide by neither 5 nor 7.
    assert row["point"] == "ranks=6 size=8 rate=2"
    assert float(row["width_now"]) == pytest.approx(math.log(2))
    assert float(row["width_after"]) < math.log(1.5)


def test_unclear_choices_get_repeats_of_both(
    load: Callable[..., Campaign], capsys: pytest.CaptureFixture[str]
) -> None:
    body = "axes: {behaviour: [good, slow, noisy], size: [1, 2]}\nrepeats: 3"
    campaign = load(body)
    near = {"good": 100.0, "slow": 101.0, "noisy": 50.0}
    finish(campaign, lambda p: near[p["behaviour"]] * (1 if p["size"] == 1 else 2))
    advise(campaign, "0.2")
    found = rows(campaign)
    assert [row["point"].split()[-2:] for row in found][:2] == [
        ["size=1", "behaviour=slow"], ["size=1", "behaviour=good"],
    ]  # fmt: skip
    assert all(row["measured"] == "3" for row in found)
    assert "behaviour slow or good at size=1" in capsys.readouterr().out
    (one,) = load_campaign(campaign.results / CAMPAIGN).experiments
    numbers = [run.repeat for run in one.runs
               if (run.point["behaviour"], run.point["size"]) == ("slow", 1)]  # fmt: skip
    assert numbers == list(range(3 + int(found[0]["more_runs"])))
    # A choice that is clear is asked for only by name.
    far = {"good": 100.0, "slow": 150.0, "noisy": 50.0}
    campaign = load(body, head="description: other\n")
    for path in campaign.runs_folder.iterdir():
        if path.is_dir():
            (path / "record.json").unlink()
            path.rmdir()
    finish(campaign, lambda p: far[p["behaviour"]])
    with pytest.raises(UserError, match="nothing is asked that runs could narrow"):
        advise(campaign)
    advise(campaign, target="e behaviour size=2")
    assert {row["point"].split()[0] for row in rows(campaign)} == {"size=2"}


@pytest.mark.parametrize(
    ("budget", "target", "line"),
    [
        ("", "", "how much may be spent"),
        ("0", "", "--budget 0: must be a number of node-hours above 0"),
        ("-3", "", "must be a number of node-hours above 0"),
        ("much", "", "--budget much: must be"),
        ("inf", "", "must be a number"),
        ("5", "f", "'f' is not an experiment of this campaign; allowed: e"),
        ("5", "e nodes=4", "'nodes' does not vary in e; allowed: "),
        ("5", "e ranks=many", "'many' is not a count; allowed: a whole number from 1"),
        ("5", "e ranks=4 knee", "asks for two things"),
        ("5", "e ranks=128", "2 rank counts have a result, and a prediction needs 3 over a factor "
         "of 4: measure 4 ranks too"),
    ],
)  # fmt: skip
def test_refusals_are_one_line(
    load: Callable[..., Campaign], budget: str, target: str, line: str
) -> None:
    campaign = load(WEAK)
    finish(campaign, falling, upto=2)
    with pytest.raises(UserError) as caught:
        advise(campaign, budget, target)
    assert line in str(caught.value) and "\n" not in str(caught.value)


def test_what_a_run_cannot_finish_within_its_limit_is_left_out(
    load: Callable[..., Campaign], capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = load(f"{WEAK}time_limit_minutes: 0.5\n")
    finish(campaign, falling)
    advise(campaign, "0.02")
    said = capsys.readouterr().out
    assert "left out: e at 32 ranks: may take" in said and "the limit is 30 s" in said


def test_nothing_fits_a_tiny_budget(
    load: Callable[..., Campaign], capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = load(WEAK)
    finish(campaign, falling)
    campaign.results.mkdir(exist_ok=True)
    (campaign.results / CAMPAIGN).write_text("of an earlier call")
    advise(campaign, "0.0001")
    assert "nothing to measure" in capsys.readouterr().out
    assert not rows(campaign) and not (campaign.results / CAMPAIGN).exists()


def test_targets(load: Callable[..., Campaign]) -> None:
    campaign = load("scaling: weak\naxes: {ranks: [1, 2], behaviour: [good, slow]}")
    assert read_target("", campaign) == Wanted()
    assert read_target("e ranks=9 behaviour=slow", campaign) == Wanted(
        "e", count=9, values={"behaviour": "slow"}
    )
    assert read_target("e knee", campaign).knee
    choice = read_target("e behaviour ranks=2", campaign)
    assert (choice.parameter, choice.count, choice.values) == ("behaviour", None, {"ranks": "2"})
    with pytest.raises(UserError, match="no point of e has behaviour odd; allowed: good, slow"):
        read_target("e behaviour=odd", campaign)


def test_counts_and_times() -> None:
    assert geometric_counts(1, 8, 100) == [10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96]
    assert geometric_counts(6, 24, 192) == [30, 36, 42, 48, 60, 72, 84, 96, 120, 144, 168, 192]
    assert between(4, 8) == [5, 6, 7] and between(64, 1024) == [128, 256, 512] and not between(2, 3)
    # By hand: nothing was repeated; then with one degree of freedom.
    assert longest_of([40.0], [[30.0]]) == pytest.approx(50)
    spread = math.log(1.1) / math.sqrt(2)
    high = 40 * math.exp(3.078 * spread * math.sqrt(2))
    assert longest_of([40.0], [[30.0, 33.0]]) == pytest.approx(high, rel=1e-3)


def test_what_stop_leaves_out_is_no_option(
    load: Callable[..., Campaign], capsys: pytest.CaptureFixture[str]
) -> None:
    stop = f"{WEAK}stop: {{when: efficiency < 0.7}}\n"
    # 16 ranks have a result: it stays, and gets no further runs.
    campaign = load(stop)
    finish(campaign, lambda p: p["ranks"] * (1.0 if p["ranks"] < 8 else 0.5), upto=16)
    look(campaign)
    advise(campaign, "5")
    why = "e: larger counts: efficiency < 0.7 at ranks 8: efficiency 0.5"
    assert f"left out: {why}" in capsys.readouterr().out
    assert all(int(row["point"].split()[0].removeprefix("ranks=")) <= 8 for row in rows(campaign))
    # Without it they are.
    campaign = load(WEAK)
    advise(campaign, "5")
    counts = [int(row["point"].split()[0].removeprefix("ranks=")) for row in rows(campaign)]
    assert max(counts) > 16
