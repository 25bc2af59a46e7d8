"""The table `prediction`, and what figures and findings make of it."""

import pandas as pd
import pytest

from scalesweep.aspects.prediction import Prediction, prediction
from scalesweep.aspects.scaling.figure import scaling_figures
from scalesweep.commands.predict import rows_text
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.finding_rows import said
from tests.fakes.results import Fake, make_results

TO_64 = [2**k for k in range(7)]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ExperimentResults]:
    root = make_results(
        tmp_path_factory.mktemp("results"),
        [
            Fake("weak", {"ranks": TO_64}, "weak", predict=[32, 128, 512, 100_000]),
            Fake("two", {"ranks": [1, 2]}, "weak", predict=[64]),
            Fake("not_asked", {"ranks": TO_64}, "weak"),
            Fake("no_scaling", {"ranks": TO_64}, predict=[128]),
        ],
    )  # fmt: skip
    entries = read_plan(root / "plan.json")["experiments"]
    return {entry["name"]: load_results(entry, root / "tables") for entry in entries}


@pytest.mark.slow
def test_a_row_for_each_count_that_was_not_measured(studies: dict[str, ExperimentResults]) -> None:
    later = studies["weak"].tables["prediction"].query("phase == 'later'")
    assert later["ranks"].tolist() == [128, 512, 100_000]  # 32 was measured
    kinds = later[["source", "based_on", "metric"]].drop_duplicates().to_numpy().tolist()
    assert kinds == [["predicted", "simulated", "total_throughput"]]
    near, far, refused = (row for _, row in later.iterrows())
    assert near["low"] < near["low_90"] < near["value"] < near["high_90"] < near["high"]
    assert near["high"] / near["low"] < far["high"] / far["low"]
    assert (near["largest"], near["smallest"], near["points"]) == (64, 1, 7)
    # By hand: perfect weak scaling from 25 samples/s of a rank; the machine loses a few per cent.
    assert 0.8 < near["value"] / (128 * 25) < 1
    assert near["efficiency"] == pytest.approx(near["value"] / 128 / 25, rel=0.05)
    assert pd.isna(refused["value"])
    assert "are more than 8 times the largest measured count of 64" in refused["refused"]
    for name in ("points", "scaling", "runs"):  # those of other tables were measured
        assert studies["weak"].tables[name]["ranks"].max() == 64


def test_nothing_is_predicted_unasked(studies: dict[str, ExperimentResults]) -> None:
    assert studies["not_asked"].tables["prediction"] is None
    assert studies["no_scaling"].tables["prediction"] is None
    assert prediction(studies["not_asked"]) == []


def test_findings_say_how_far_and_how_sure(studies: dict[str, ExperimentResults]) -> None:
    given, refused = (one.sentence for one in said(prediction(studies["weak"])))
    assert given.startswith("Predicted (later epochs): 512 ranks give")
    assert "100,000 ranks are more than 8 times the largest" in refused


def test_the_scaling_figure_shows_them_dashed(studies: dict[str, ExperimentResults]) -> None:
    weak, plain = (
        next(one for one in scaling_figures(studies[name]) if one.name == "scaling-later")
        for name in ("weak", "not_asked")
    )
    for ax in weak.figure.axes:
        hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
        assert [list(line.get_xdata()) for line in hollow] == [[64, 128, 512]]
    assert "predicted" not in set(plain.panels[0].frame["style"])


def test_the_command_prints_refusals(studies: dict[str, ExperimentResults]) -> None:
    """Its rows: tests/acceptance/test_textbook."""
    text = rows_text(studies["two"], studies["two"].of(Prediction))
    assert text.startswith("two: weak scaling\n") and "refused: 2 counts measured" in text
