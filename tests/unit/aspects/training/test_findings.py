"""Findings on training: each rule with data where it holds and data where it must not."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects.find import find
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.comparisons import Comparison
from tests.fakes.training import Training, mae, nt3, study_of


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
    assert level == "clear" and text.startswith(
        "Best is ranks 2; time to target over that of 1: 0."
    )
    ((level, text),) = told(study_of(tmp_path / "b", mae(repeats=1)), "best", "target")
    assert level == "open" and text.startswith("Lowest time to target measured, with ranks 2")
    # Points of other targets do not compete.
    apart = mae(axes={"ranks": [1], "target_mae": [0.1, 0.2]}, fixed={})
    assert rows(study_of(tmp_path / "c", apart), "time to target") == []


def test_final_accuracy_over_the_scale(tmp_path: Path) -> None:
    (row,) = rows(study := study_of(tmp_path / "a", nt3()), "scaling")
    assert (row.metric, row.value, row.base_value) == ("final_validation_accuracy", "16", "1")
    assert row.ratio and row.ratio.high and row.ratio.high < 1
    ((level, text),) = told(study, "ratio", "accuracy")
    assert level == "clear" and text.startswith("16 over 1 (ranks), ")
    assert rows(study_of(tmp_path / "b", mae(fixed={"input": "dummy"})), "scaling") == []


@pytest.mark.slow
def test_accuracy_is_compared_only_after_the_same_training(tmp_path: Path) -> None:
    # Ranks that train on samples of their own train on more in all, unless to a target.
    more: dict[str, Any] = {"planned": lambda p: 100 * p["ranks"], "scaling": "weak"}
    target = nt3(**more, fixed={"target_accuracy": 0.5})
    fakes = [nt3(compare=None), nt3(compare="never"), nt3(**more), target]
    fakes.append(nt3(**more, compare="always"))
    found = [rows(study_of(tmp_path / str(i), fake), "scaling") for i, fake in enumerate(fakes)]
    assert [len(each) for each in found] == [0, 0, 0, 1, 1]


def inputs(seconds: dict[str, float], **changes: Any) -> Training:
    return mae(
        axes={"ranks": [1], "input": list(seconds)},
        epoch_s=lambda p: seconds[p["input"]],
        **changes,
    )


def test_input_cost_is_the_ratio_to_dummy_input(tmp_path: Path) -> None:
    study = study_of(tmp_path, inputs({"tfrecords": 15.0, "dummy": 10.0}))
    first, _ = rows(study, "input")
    assert (first.value, first.base_value, first.metric) == ("tfrecords", "dummy", "total_time")
    assert first.ratio and first.ratio.value == pytest.approx(1.5, abs=0.05)
    ((level, text), _) = told(study, "ratio", "over dummy")
    assert level == "clear" and text.startswith("tfrecords over dummy (input), ")
    assert "(first epoch)" in text
    assert rows(study_of(tmp_path / "c", inputs({"tfrecords": 15.0, "other": 10.0})), "input") == []
