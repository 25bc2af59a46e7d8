"""Step times by rank: the table, who is named a straggler and who must not be, the figures."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.rank_stats import chances, own_times, spread_of
from scalesweep.analysis.table_io import read_table
from scalesweep.aspects.draw import draw
from scalesweep.aspects.find import find
from scalesweep.aspects.ranks import table as ranks_table
from scalesweep.aspects.ranks.figure import rank_figures
from scalesweep.aspects.ranks.findings import VICTIM, slow_ranks
from scalesweep.aspects.ranks.stragglers import rank_times
from scalesweep.aspects.ranks.table import rank_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.tables.machine import Machine
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData
from tests.fakes.ranks import Draw, ranked, steady, study_of
from tests.fakes.training import make_training, nt3

Array = Any


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [finding.sentence for finding in findings]
    return findings[0]


def named(study: ExperimentResults) -> list[Finding]:
    return [finding for finding in slow_ranks(study) if finding.state in ("clear", "open")]


# --- what is a rank's own time ---


def test_own_times_by_what_a_program_keeps() -> None:
    draw = np.random.default_rng(1)
    local, reading, compute = (1 + draw.random((4, 3)) for _ in range(3))
    assert list(own_times({"step_times": local, "local_times": local}, 3)) == ["step"]
    # The first epoch is apart, the warm-up of steps has an array of its own.
    assert len(own_times({"step_times": local}, 3)["step"][0]) == 4
    assert len(own_times({"local_times": local}, 3)["epoch"][0]) == 3
    assert len(own_times({"local_times": local[:1]}, 3)["epoch"][0]) == 1
    # Data loading: all of an epoch is input, and the rank's own.
    assert list(own_times({"local_times": local, "span_input": local}, 3)) == ["work"]
    # Training: epochs hold waiting for the other ranks.
    training = own_times({"local_times": local, "span_input": reading}, 3)
    assert list(training) == ["input", "epoch"]
    assert training["input"][1].tolist() == local[1:].tolist()
    told = {"local_times": local, "span_input": reading, "span_compute": compute}
    work = own_times(told, 3)
    assert list(work) == ["work", "epoch"]
    assert work["work"][0] == pytest.approx((reading + compute)[1:])
    # Of each step, and as a share of it.
    steps = own_times({"span_input": reading, "span_compute": compute, "step_times": 3 * local}, 3)
    assert list(steps) == ["step-work", "step"]
    own, whole = steps["step-work"]
    assert own == pytest.approx((reading + compute)[1:]) and whole == pytest.approx(3 * local[1:])


@pytest.mark.parametrize(
    "array",
    [
        np.ones((4, 3)),  # one clock for all ranks
        np.ones((4, 2)) * [1, 2],  # columns of other ranks
        np.array([[1.0, 2.0, 0.0]] * 4),
        np.array([[1.0, 2.0, np.nan]] * 4),
        np.empty((0, 3)),
        np.array([["a", "b", "c"]]),
        np.arange(3.0),
    ],
)
def test_arrays_that_tell_nothing_by_rank(array: Array) -> None:
    assert own_times({"step_times": array, "local_times": array}, 3) == {}


def test_slowness_has_an_interval_that_holds_it() -> None:
    draw = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        times = np.exp(0.1 * draw.standard_normal((40, 16)))
        times[:, 3] *= 1.3
        spread = spread_of(times, times)
        assert (
            spread.quantiles["p05"][3] < spread.quantiles["median"][3] < spread.quantiles["max"][3]
        )
        held += bool(spread.low[3] <= 1.3 <= spread.high[3])
    assert 180 <= held <= 200


def test_a_rank_of_uneven_steps_is_not_slower_than_the_others() -> None:
    """Its median is higher, but in all it takes no longer, as where every step waits for all."""
    times = np.ones((100, 4))
    times[:, 1] = np.where(np.arange(100) % 5 == 0, 0.2, 1.2)
    spread = spread_of(times, times)
    assert spread.slow[1] == pytest.approx(1.2) and spread.excess[1] == pytest.approx(0, abs=1e-9)


def test_chance_counts_the_choice_among_many() -> None:
    draw = np.random.default_rng(3)
    blocks = [np.exp(0.1 * draw.standard_normal((8, 12))) for _ in range(3)]
    every = [np.arange(12)] * 3
    assert chances(blocks, every, 12).min() > 0.01
    for one in blocks:
        one[:, 5] *= 1.3
    found = chances(blocks, every, 12)
    assert found[5] <= 0.01 < np.delete(found, 5).min()


# --- the table ---


def test_the_table_of_ranks(tmp_path: Path) -> None:
    fake = ranked(steady(50, 0.05, {3: 1.2}), ranks=8)
    table = study_of(tmp_path, fake).tables["ranks"]
    assert table is not None and len(table) == 3 * 8
    row = table[(table["repeat"] == 1) & (table["rank"] == 3)].iloc[0]
    run = tmp_path / "runs" / "here" / row["run_id"] / "samples.npz"
    times = np.load(run)["step_times"]
    assert row["median"] == pytest.approx(np.median(times[:, 3]))
    assert row["p95"] == pytest.approx(np.quantile(times[:, 3], 0.95))
    assert row["max"] == times[:, 3].max() and row["steps"] == 50
    medians = np.median(times, axis=0)
    assert row["slow"] == pytest.approx(medians[3] / np.median(medians))
    assert (row["host"], row["time"], row["source"]) == ("n0", "step", "measured")
    assert table.attrs["units"]["median"]["unit"] == "s"
    csv = pd.read_csv(tmp_path / "tables" / "ranked" / "ranks.csv", float_precision="round_trip")
    assert csv["median"].tolist() == table["median"].tolist()


def test_the_largest_finished_scale_of_every_series(tmp_path: Path) -> None:
    axes = {"ranks": [1, 2, 4, 8], "mode": ["a", "b"]}
    fake = ranked(
        steady(5, 0.05), axes=axes,
        fate=lambda p, r: "TIMEOUT" if p["ranks"] == 8 and p["mode"] == "b" else "done",
        changes=lambda p, r: {},
    )  # fmt: skip
    table = study_of(tmp_path, fake).tables["ranks"]
    assert table is not None
    assert set(zip(table["ranks"], table["mode"], strict=True)) == {(8, "a"), (4, "b")}
    assert table["host"].isna().all() and len(table) == 3 * 8 + 3 * 4


def test_one_rank_and_one_clock_give_no_table(tmp_path: Path) -> None:
    assert study_of(tmp_path / "a", ranked(steady(5, 0.05), ranks=1)).tables["ranks"] is None
    clock = ranked(lambda d, ranks, r: np.ones((5, ranks)), ranks=4)
    study = study_of(tmp_path / "b", clock)
    assert study.tables["ranks"] is None and slow_ranks(study) == [] == rank_figures(study)
    assert make_training(tmp_path / "c", nt3())["train"].tables["ranks"] is None


def test_as_many_series_as_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks_table, "MAX_RUNS", 10)
    fake = ranked(steady(5, 0.05), axes={"ranks": [2], "mode": list("abcdef")})
    table = study_of(tmp_path, fake).tables["ranks"]
    assert table is not None and table["run_id"].nunique() == 9
    assert set(table["mode"]) >= {"a", "f"} and table.attrs["left_out"] == 3
    monkeypatch.setattr(ranks_table, "MAX_ROWS", 9)
    table = study_of(tmp_path / "b", fake).tables["ranks"]
    assert table is not None and table["run_id"].nunique() == 2 and table.attrs["left_out"] == 5


def test_a_damaged_run_is_left_out_with_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fake = ranked(steady(5, 0.05))
    study = study_of(tmp_path, fake)
    run_id = study.entry["runs"][0]["run_id"]
    path = tmp_path / "runs" / "here" / run_id / "samples.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    data = ExperimentData(read_table(tmp_path / "summary.parquet"), study.entry)
    points = data.points()
    runs = tmp_path / "runs" / "here"
    table = rank_table(TableInputs(data, points, [points], Machine(), runs))
    assert table is not None and run_id not in set(table["run_id"])
    (line,) = caplog.records
    assert line.levelname == "WARNING"
    assert line.getMessage().startswith(f"{run_id}: samples.npz was changed")


def test_a_parameter_may_have_the_name_of_a_column(tmp_path: Path) -> None:
    fake = ranked(steady(50, 0.05, {3: 1.2}), axes={"ranks": [8], "steps": [1, 2]})
    study = study_of(tmp_path, fake)
    table = study.tables["ranks"]
    assert table is not None and {"steps", "parameter_steps"} <= set(table)
    assert {times.row["steps"] for times in rank_times(study)} == {1, 2}
    found = only(named(study))
    assert "; the same at 1 other point." in found.sentence


# --- who is named ---


def test_a_straggler_is_named_with_its_host_and_interval(tmp_path: Path) -> None:
    found = only(slow_ranks(study_of(tmp_path, ranked(steady(50, 0.05, {3: 1.2})))))
    assert (found.state, found.reason) == ("open", VICTIM)
    assert found.sentence.startswith("Rank 3 on n0 is a straggler: its step takes 1.")
    assert "times as long as the median of 8 ranks, over 3 runs" in found.sentence
    numbers, key = found.evidence["numbers"], found.evidence["key"]
    assert numbers["low"] < 1.2 < numbers["high"] and numbers["low"] > 1.1
    assert (found.evidence["table"], key["rank"], key["host"]) == ("ranks", 3, "n0")
    assert found.evidence["figure"] == "ranks-step"


@pytest.mark.slow
def test_a_straggler_among_many_with_few_epochs(tmp_path: Path) -> None:
    fake = ranked(
        steady(5, 0.05, {777: 1.3}), ranks=1024, per_host=1, array="local_times", repeats=2
    )
    study = study_of(tmp_path, fake)
    assert only(slow_ranks(study)).sentence.startswith(
        "Rank 777 on n777 is a straggler: its own work"
    )
    figure = only_drawing(study)
    assert "Quantiles of 5 epochs for each rank, each the median over 2 runs." in figure.caption
    assert "With so few values" in figure.caption
    assert "rank 777, n777" in words(figure)


def test_one_run_is_not_confirmed(tmp_path: Path) -> None:
    found = only(slow_ranks(study_of(tmp_path, ranked(steady(50, 0.05, {1: 1.3}), repeats=1))))
    assert (found.state, found.reason) == ("open", "one run")


def test_slow_in_one_run_of_three_is_no_straggler(tmp_path: Path) -> None:
    def once(draw: Draw, ranks: int, repeat: int) -> Array:
        return steady(50, 0.05, {3: 1.5} if repeat == 1 else None)(draw, ranks, repeat)

    found = only(slow_ranks(study_of(tmp_path, ranked(once))))
    assert found.state == "note" and found.sentence.startswith("No straggler among 8 ranks")


def test_a_slow_host_is_told_apart_from_a_slow_rank(tmp_path: Path) -> None:
    two = ranked(steady(50, 0.05, {4: 1.2, 5: 1.2}), per_host=2)
    found = only(slow_ranks(study_of(tmp_path / "a", two)))
    assert found.sentence.startswith(
        "Host n2 is slow, not one rank alone: the step of its ranks takes"
    )
    assert "the median of 4 hosts" in found.sentence and found.evidence["key"]["host"] == "n2"
    one = ranked(steady(50, 0.05, {4: 1.4}), per_host=2)
    assert only(slow_ranks(study_of(tmp_path / "b", one))).sentence.startswith("Rank 4 on n2 is a")
    half = ranked(steady(50, 0.05, dict.fromkeys(range(4, 8), 1.2)))
    found = only(slow_ranks(study_of(tmp_path / "c", half)))
    assert (
        found.sentence.startswith("Host n1 is slow") and "that of the other host" in found.sentence
    )


def test_a_slow_host_that_has_other_ranks_in_every_run(tmp_path: Path) -> None:
    def moved(draw: Draw, ranks: int, repeat: int) -> Array:
        return steady(50, 0.05, {repeat: 1.3})(draw, ranks, repeat)

    def changes(_point: Any, repeat: int) -> dict[str, Any]:
        return {"resources": {"hosts": [f"n{(rank - repeat) % 8}" for rank in range(8)]}}

    fake = ranked(moved, changes=changes, array="local_times")
    found = only(slow_ranks(study_of(tmp_path, fake)))
    assert found.state == "clear" and found.sentence.startswith("Host n0 is slow")


def test_two_ranks_are_compared_and_none_is_called_a_straggler(tmp_path: Path) -> None:
    found = only(slow_ranks(study_of(tmp_path / "a", ranked(steady(50, 0.05, {1: 1.2}), ranks=2))))
    assert found.state == "open" and "straggler" not in found.sentence
    assert found.sentence.startswith("Rank 1 on n0 is slower than the other: its step takes 1.19")
    for number, changes in enumerate(({"times": steady(50, 0.05)}, {"repeats": 1})):
        words: dict[str, Any] = {"times": steady(50, 0.05, {1: 1.2}), **changes}
        assert slow_ranks(study_of(tmp_path / str(number), ranked(ranks=2, **words))) == []


def test_waiting_for_input_counts_as_a_share_of_the_epoch(tmp_path: Path) -> None:
    much = ranked(steady(6, 0.05, {7: 2.3}), array="span_input", per_host=1)
    found = only(named(study_of(tmp_path / "a", much)))
    assert found.sentence.startswith("Rank 7 on n7 is a straggler: its wait for input in an epoch")
    assert "% of an epoch more" in found.sentence and found.evidence["key"]["time"] == "input"
    little = ranked(steady(6, 0.05, {7: 1.3}), array="span_input", per_host=1)
    assert named(study_of(tmp_path / "b", little)) == []


def coupled(draw: Draw, ranks: int, _repeat: int) -> Array:
    """Each step ends on all ranks when the slowest, always the first, is done."""
    own = 0.1 * np.exp(0.1 * draw.standard_normal((50, ranks)))
    own[:, 0] *= 1.5
    ends = np.cumsum(own.max(axis=1))[:, None] + 0.01 * draw.random((50, ranks))
    return np.diff(np.vstack([np.zeros(ranks), ends]), axis=0)


def test_steps_that_wait_for_all_ranks_name_none(tmp_path: Path) -> None:
    found = only(slow_ranks(study_of(tmp_path, ranked(coupled))))
    assert found.state == "note"
    assert "where steps wait for all ranks, this does not show which one" in found.sentence


# --- figures ---


def only_drawing(study: ExperimentResults) -> Any:
    drawings = [drawing for drawing in draw(study) if drawing.name.startswith("ranks-")]
    assert len(drawings) == 1
    return drawings[0]


def words(drawing: Any) -> list[str]:
    return [text.get_text() for ax in drawing.figure.axes for text in ax.texts]


def test_a_figure_marks_and_names_stragglers(tmp_path: Path) -> None:
    figure = only_drawing(study_of(tmp_path, ranked(steady(50, 0.05, {13: 1.2}), ranks=64)))
    assert figure.name == "ranks-step" and words(figure) == ["rank 13, n3"]
    assert "Slower than the others: rank 13, n3 (1.2" in figure.caption
    assert "Quantiles of 50 steps for each rank, each the median over 3 runs." in figure.caption
    (ax,) = figure.figure.axes
    assert ax.get_ylabel() == "Step time [s]" and ax.get_xlabel() == "Rank"
    marks = [line for line in ax.lines if line.get_marker() == "^"]
    assert [line.get_xdata().tolist() for line in marks] == [[13]]


def test_a_figure_without_stragglers_says_so(tmp_path: Path) -> None:
    figure = only_drawing(study_of(tmp_path, ranked(steady(50, 0.05), ranks=100)))
    assert "No rank is slower" in figure.caption and words(figure) == []
    assert not [line for line in figure.figure.axes[0].lines if line.get_marker() == "^"]


def test_hostile_hosts_are_text(tmp_path: Path) -> None:
    hosts = [f"$x^{{{rank}}}$ <b>&amp;" for rank in range(8)]
    fake = ranked(steady(50, 0.05, {3: 1.2}), changes=lambda p, r: {"resources": {"hosts": hosts}})
    study = study_of(tmp_path, fake)
    assert hosts[3] in only(named(study)).sentence
    assert any("<b>" in text for text in words(only_drawing(study)))
    assert all(finding.sentence for finding in find(study))
