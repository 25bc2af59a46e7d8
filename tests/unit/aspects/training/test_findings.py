"""Findings on training: each rule with data where it holds and data where it must not."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects.comparisons.best import best_configuration
from scalesweep.aspects.find import find
from scalesweep.aspects.training.findings import (
    accuracy_over_scale,
    energy_against_time,
    input_cost,
    target_time,
)
from scalesweep.aspects.training.input_share import data_loading, input_share
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from tests.fakes.finding_rows import said
from tests.fakes.training import Training, make_training, nt3

Rule = Callable[[ExperimentResults], list[Finding]]


def one(root: Path, fake: Training) -> ExperimentResults:
    return make_training(root, fake)[fake.name]


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [finding.text for finding in findings]
    return findings[0]


def mae(**changes: Any) -> Training:
    words: dict[str, Any] = {
        "axes": {"ranks": [1, 2]}, "kind": "mae", "end": lambda p: 0.05 * p["ranks"],
        "fixed": {"target_mae": 0.12}, "epochs": lambda p: 8,
    }  # fmt: skip
    return Training(**{**words, **changes})


# --- target ---


def test_fastest_to_the_target_is_named_when_clear(tmp_path: Path) -> None:
    found = only(target_time(one(tmp_path, mae())))
    assert found.level == "confirmed"
    assert found.text.startswith("Fastest to the target: 2 ranks with ")
    assert "clear of 1 other that met it in every run; next is 1 rank" in found.text
    assert found.evidence["table"] == "accuracy" and found.evidence["key"]["ranks"] == 2


def test_no_fastest_without_intervals_or_with_overlap(tmp_path: Path) -> None:
    single = only(target_time(one(tmp_path / "a", mae(repeats=1))))
    assert single.level == "open" and "do not identify" in single.text


@pytest.mark.slow
def test_runs_that_missed_the_target_do_not_compete(tmp_path: Path) -> None:
    fake = mae(end=lambda p: 0.05 if p["ranks"] == 1 else 0.2)
    found = only(target_time(one(tmp_path, fake)))
    assert "met in every run only at 1 rank" in found.text
    assert "some runs missed it at 2 ranks" in found.text
    assert target_time(one(tmp_path / "none", mae(end=lambda p: 0.4))) == []
    assert target_time(one(tmp_path / "no", nt3())) == []


def test_a_point_with_an_unfinished_run_does_not_compete(tmp_path: Path) -> None:
    study = one(tmp_path, mae())
    runs = [run for run in study.entry["runs"] if run["point"]["ranks"] == 2]
    runs[0].update(status="unfinished", cause="UNFINISHED")
    found = only(target_time(study))
    assert "met in every run only at 1 rank" in found.text
    assert "some runs missed it at 2 ranks" in found.text


def test_a_target_met_in_a_single_run_is_not_confirmed(tmp_path: Path) -> None:
    found = only(target_time(one(tmp_path / "a", mae(axes={"ranks": [1]}, repeats=1))))
    assert found.level == "open" and found.text.endswith(", in a single run.")
    found = only(target_time(one(tmp_path / "b", mae(axes={"ranks": [1]}))))
    assert found.level == "confirmed" and "single" not in found.text


def test_points_of_other_targets_do_not_compete(tmp_path: Path) -> None:
    study = one(tmp_path, mae(axes={"ranks": [1], "target_mae": [0.1, 0.2]}, fixed={}))
    assert len(target_time(study)) == 2


# --- final accuracy over the scale ---


def test_lower_accuracy_at_scale_is_worse(tmp_path: Path) -> None:
    found = only(accuracy_over_scale(one(tmp_path, nt3())))
    assert found.level == "confirmed"
    assert "validation accuracy at 16 ranks is lower (worse) than at 1 rank" in found.text


def test_higher_error_at_scale_is_worse_and_lower_better(tmp_path: Path) -> None:
    found = only(accuracy_over_scale(one(tmp_path / "a", mae())))
    assert "validation MAE at 2 ranks is higher (worse) than at 1 rank" in found.text
    better = mae(end=lambda p: 0.1 / p["ranks"])
    found = only(accuracy_over_scale(one(tmp_path / "b", better)))
    assert "is lower (better) than at 1 rank" in found.text


@pytest.mark.slow
def test_no_difference_is_claimed_within_the_noise(tmp_path: Path) -> None:
    alike = nt3(end=lambda p: 0.9, noise=0.05)
    found = only(accuracy_over_scale(one(tmp_path / "a", alike)))
    assert found.level == "open" and "no difference" in found.text.lower()
    found = only(accuracy_over_scale(one(tmp_path / "b", nt3(repeats=1))))
    assert found.level == "open" and "one repeat" in found.text
    fake = mae(axes={"ranks": [1, 2]}, fixed={"input": "dummy"})
    assert accuracy_over_scale(one(tmp_path / "c", fake)) == []


@pytest.mark.slow
def test_accuracy_is_compared_only_after_the_same_training(tmp_path: Path) -> None:
    assert accuracy_over_scale(one(tmp_path / "a", nt3(compare=None))) == []
    assert accuracy_over_scale(one(tmp_path / "b", nt3(compare="never"))) == []
    # Ranks that train on samples of their own train on more in all, unless to a target.
    more: dict[str, Any] = {"planned": lambda p: 100 * p["ranks"], "scaling": "weak"}
    assert accuracy_over_scale(one(tmp_path / "c", nt3(**more))) == []
    target = nt3(**more, fixed={"target_accuracy": 0.5})
    assert only(accuracy_over_scale(one(tmp_path / "d", target))).level == "confirmed"
    declared = nt3(**more, compare="always")
    assert only(accuracy_over_scale(one(tmp_path / "e", declared))).level == "confirmed"


def test_identical_repeats_confirm_no_accuracy(tmp_path: Path) -> None:
    study = one(tmp_path, nt3(noise=0.0))
    found = only(accuracy_over_scale(study))
    assert found.level == "open"
    assert found.text.endswith(
        "; not confirmed, the repeats of a side are identical, so their scatter is unknown."
    )
    row = study.rows("points")[0]
    assert row["final_validation_accuracy_low_run"] is None
    assert study.measures["training_time"].without_interval(row, "run") == "identical repeats"


# --- data loading ---


def test_data_loading_that_takes_much(tmp_path: Path) -> None:
    study = one(tmp_path, nt3(load_s=lambda p: 40.0))
    found = only(data_loading(study))
    assert found.level == "confirmed"
    assert re.match(r"Data loading takes 74\.\d+ \[74\.\d+, 7[45]\.\d+\] % of", found.text)
    assert "at 16 ranks" in found.text and 0.7 < found.evidence["numbers"]["share_low"] < 0.75
    assert "the most of 3 points where it takes 10 % or more" in found.text


def test_data_loading_that_takes_little_or_is_uncertain(tmp_path: Path) -> None:
    assert data_loading(one(tmp_path / "a", nt3(load_s=lambda p: 0.1))) == []
    found = only(data_loading(one(tmp_path / "b", nt3(repeats=1, load_s=lambda p: 40.0))))
    assert found.level == "open" and "not confirmed" in found.text


# --- input ---


def waits(share: float, name: str = "train", **changes: Any) -> Training:
    """Training of which ranks wait such a share for input (with 16 ranks twice of it)."""

    def arrays(found: dict[str, Any], point: dict[str, Any], repeat: int) -> None:
        part = share * (2 if point["ranks"] == 16 else 1) * (1 + 0.02 * repeat)
        found["span_input"] = part * found["local_times"]

    return nt3(arrays=arrays, name=name, **changes)


def test_the_share_of_training_that_input_takes(tmp_path: Path) -> None:
    found = only(input_share(one(tmp_path, waits(0.1))))
    assert found.level == "confirmed"
    assert found.text.startswith("Waiting for input takes 20.4 [19.4, 21.4] % of training at 16")
    assert found.text.endswith("the most measured at 3 points.")
    assert found.evidence["key"]["ranks"] == 16 and found.evidence["table"] == "epochs"
    assert found.evidence["numbers"]["share"] == pytest.approx(0.204)


@pytest.mark.slow
def test_no_share_of_input_without_repeats_or_spans(tmp_path: Path) -> None:
    single = only(input_share(one(tmp_path / "a", waits(0.1, repeats=1))))
    assert single.level == "open" and "one repeat, not confirmed" in single.text
    assert input_share(one(tmp_path / "b", nt3())) == []
    dummy = waits(0.1, fixed={"input": "dummy"})
    assert input_share(one(tmp_path / "c", dummy)) == []


def inputs(seconds: dict[str, float], **changes: Any) -> Training:
    return mae(
        axes={"ranks": [1], "input": list(seconds)},
        epoch_s=lambda p: seconds[p["input"]],
        **changes,
    )


def test_input_cost_is_the_difference_to_dummy_input(tmp_path: Path) -> None:
    found = input_cost(one(tmp_path, inputs({"tfrecords": 15.0, "dummy": 10.0})))
    assert [finding.level for finding in found] == ["confirmed"] * 2
    first = found[0].text
    assert first.startswith("Input costs ") and " s of an epoch (first epoch): " in first
    cost = float(first.split()[2])
    assert cost == pytest.approx(5.05, abs=0.4)
    assert "with tfrecords" in first and "with dummy input, 1.48" in first


@pytest.mark.slow
def test_no_input_cost_where_none_can_be_told(tmp_path: Path) -> None:
    same = inputs({"tfrecords": 10.0, "dummy": 10.0}, noise=0.05)
    found = input_cost(one(tmp_path / "a", same))
    assert {finding.level for finding in found} == {"open"}
    single = inputs({"tfrecords": 15.0, "dummy": 10.0}, repeats=1)
    assert {f.level for f in input_cost(one(tmp_path / "b", single))} == {"open"}
    assert input_cost(one(tmp_path / "c", inputs({"tfrecords": 15.0, "other": 10.0}))) == []
    assert input_cost(one(tmp_path / "d", mae())) == []


def test_dummy_input_is_no_rival(tmp_path: Path) -> None:
    study = one(tmp_path, inputs({"tfrecords": 15.0, "other": 20.0, "dummy": 10.0}))
    found = only(best_configuration(study))
    assert "at 1 rank, input tfrecords" in found.text or "at input tfrecords" in found.text
    assert "clear of the only other" in found.text


# --- energy ---


def test_fastest_and_most_frugal_points(tmp_path: Path) -> None:
    found = only(energy_against_time(one(tmp_path / "a", nt3(watts=lambda p, r: 100.0 + r))))
    assert "16 ranks is fastest and needs the least energy" in found.text
    hungry = nt3(watts=lambda p, r: (20.0 + r) * p["ranks"])
    found = only(energy_against_time(one(tmp_path / "b", hungry)))
    assert (
        found.text.startswith("Fastest is 16 ranks (")
        and "; 1 rank needs the least energy (" in found.text
    )


@pytest.mark.slow
def test_energy_is_not_compared_where_it_cannot_be(tmp_path: Path) -> None:
    some = nt3(watts=lambda p, r: None if r == 2 and p["ranks"] == 4 else 100.0)
    single = nt3(repeats=1)
    weak = nt3(planned=lambda p: 100 * p["ranks"], scaling="weak")
    for number, fake in enumerate((some, single, weak, nt3(watts=lambda p, r: None))):
        assert said(energy_against_time(one(tmp_path / str(number), fake))) == []


@pytest.mark.parametrize("fake", [nt3(), mae(), nt3(fate=lambda p, r: "new"), nt3(repeats=1)])
def test_all_rules_bear_all_data(tmp_path: Path, fake: Training) -> None:
    for finding in find(one(tmp_path, fake)):
        assert finding.text.endswith(".") and "None" not in finding.text
        assert finding.text[:1] == finding.text[:1].upper() or ":" in finding.text
