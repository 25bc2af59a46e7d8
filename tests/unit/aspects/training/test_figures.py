"""Figures of training runs: accuracy over time and energy, losses, phases and power."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from scalesweep.aspects.draw import draw, write_figures
from scalesweep.aspects.energy.figure import SLOTS, merge_spans
from scalesweep.aspects.phases.figure import LOOKS, looks_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import INK, MAX_LINES, Drawing
from tests.fakes.drawn import figures_of
from tests.fakes.training import Training, make_training, nt3

NAMES = [
    "ledger", "waterfall", "warm-up", "accuracy-time", "accuracy-energy", "accuracy-loss",
    "phases-time", "energy-phases", "power-time",
]  # fmt: skip


def one(root: Path, fake: Training) -> ExperimentResults:
    return make_training(root, fake)[fake.name]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return one(tmp_path_factory.mktemp("figures"), nt3())


def named(study: ExperimentResults, name: str) -> Drawing:
    return next(drawing for drawing in figures_of(study) if drawing.name == name)


def texts(figure: Figure) -> list[str]:
    from matplotlib.text import Text

    return [t.get_text() for t in figure.findobj(Text) if isinstance(t, Text) and t.get_text()]


def thick(ax: Any) -> list[tuple[Any, Any]]:
    return [(line.get_xdata(), line.get_ydata()) for line in ax.get_lines()
            if line.get_marker() not in ("", "None", None)]  # fmt: skip


def mae(**changes: Any) -> Training:
    words: dict[str, Any] = {
        "kind": "mae", "end": lambda p: 0.05 * p["ranks"], "fixed": {"target_mae": 0.08},
        "epochs": lambda p: 8,
    }  # fmt: skip
    return Training({"ranks": [1, 2]}, **{**words, **changes})


def test_figures_and_their_order(study: ExperimentResults) -> None:
    names = [drawing.name for drawing in figures_of(study)]
    assert names == ["scaling-run", *NAMES]
    for drawing in figures_of(study):
        assert drawing.alt and drawing.caption


def test_accuracy_over_time_is_drawn_by_point_and_repeat(study: ExperimentResults) -> None:
    drawing = named(study, "accuracy-time")
    ax = drawing.figure.axes[0]
    assert [len(x) for x, _ in thick(ax)] == [16, 4, 1]
    # Beside each mean its three repeats, thinner.
    assert len(ax.get_lines()) == 3 * (1 + 3)
    x, y = thick(ax)[1]
    epochs = study.tables["epochs"]
    assert epochs is not None
    last = epochs[(epochs["ranks"] == 4) & (epochs["epoch"] == 3)]
    assert x[-1] == pytest.approx(last["epoch_ends"].mean())
    assert y[-1] == pytest.approx(last["validation_accuracy"].mean())
    assert ax.get_ylabel() == "Validation accuracy"
    assert ax.get_xlabel() == "Wall time since training began [s]"
    assert {"1", "4", "16", "ranks"} <= set(texts(drawing.figure))


def test_energy_axis_has_a_readable_unit(study: ExperimentResults) -> None:
    drawing = named(study, "accuracy-energy")
    assert drawing.figure.axes[0].get_xlabel() == "Energy since training began [kJ]"
    x, _ = thick(drawing.figure.axes[0])[0]
    assert x[-1] == pytest.approx(17.7, abs=0.5)


def test_without_power_samples_runs_are_marked_at_their_total(tmp_path: Path) -> None:
    study = one(tmp_path, nt3(changes=lambda p, r: {"phase_spans": None}))
    drawing = named(study, "accuracy-energy")
    assert drawing.figure.axes[0].get_xlabel() == "Energy of the whole run [kJ]"
    assert "One marker per run" in drawing.caption
    assert sum(len(x) for x, _ in thick(drawing.figure.axes[0])) == 9


def test_without_energy_there_is_nothing_of_it(tmp_path: Path) -> None:
    study = one(tmp_path, nt3(watts=lambda p, r: None))
    names = {drawing.name for drawing in draw(study)}
    assert names == {
        "scaling-run", "ledger", "waterfall", "warm-up", "accuracy-time", "accuracy-loss",
        "phases-time",
    }  # fmt: skip


def test_error_with_its_target(tmp_path: Path) -> None:
    study = one(tmp_path, mae())
    ax = named(study, "accuracy-time").figure.axes[0]
    assert ax.get_ylabel() == "Validation MAE"
    assert [list(line.get_ydata()) for line in ax.get_lines()].count([0.08, 0.08]) == 1
    assert "target 0.08" in texts(named(study, "accuracy-time").figure)


@pytest.mark.slow
def test_dummy_input_is_not_drawn_as_learned(tmp_path: Path) -> None:
    fake = mae()
    fake.axes = {"ranks": [1, 2], "input": ["tfrecords", "dummy"]}
    study = one(tmp_path, fake)
    drawing = named(study, "accuracy-time")
    assert len(thick(drawing.figure.axes[0])) == 2
    assert "dummy input are left out" in drawing.caption
    assert "dummy" not in " ".join(texts(drawing.figure))
    bars = named(study, "phases-time").figure.axes[0]
    assert len(bars.get_yticklabels()) == 4
    only = one(tmp_path / "only", mae(fixed={"input": "dummy"}))
    assert "accuracy-time" not in {drawing.name for drawing in draw(only)}


def test_losses_are_side_by_side(study: ExperimentResults) -> None:
    left, _ = named(study, "accuracy-loss").figure.axes
    x, y = thick(left)[0]
    assert list(x) == list(range(1, 17)) and y[0] > y[-1]


def test_missing_losses_leave_gaps_not_zeros(tmp_path: Path) -> None:
    def damage(arrays: dict[str, Any], point: dict[str, Any], repeat: int) -> None:
        arrays["validation_accuracy"][1] = math.nan
        arrays["validation_loss"][:] = math.nan

    study = one(tmp_path, nt3(axes={"ranks": [1, 4]}, repeats=1, arrays=damage))
    x, y = thick(named(study, "accuracy-time").figure.axes[0])[1]
    assert len(x) == 3 and min(y) > 0.5
    assert len(named(study, "accuracy-loss").figure.axes) == 1


def test_means_end_where_the_first_repeat_ends(tmp_path: Path) -> None:
    def stop(arrays: dict[str, Any], point: dict[str, Any], repeat: int) -> None:
        if repeat == 1:
            for name in arrays:
                arrays[name] = arrays[name][:5]

    study = one(tmp_path, nt3(axes={"ranks": [1]}, arrays=stop))
    (x, _), *_ = thick(named(study, "accuracy-time").figure.axes[0])
    assert len(x) == 5


@pytest.mark.slow
def test_many_points_are_capped_and_the_rest_is_told(tmp_path: Path) -> None:
    study = one(tmp_path, nt3(axes={"ranks": [1], "batch_size": list(range(30))}, repeats=1))
    drawing = named(study, "accuracy-time")
    assert len(thick(drawing.figure.axes[0])) == MAX_LINES
    assert f"{30 - MAX_LINES} more points only in the tables." in drawing.caption
    assert "6 more points only in the tables." in named(study, "phases-time").caption


def test_phases_add_up_and_look_the_same_everywhere(study: ExperimentResults) -> None:
    drawing = named(study, "phases-time")
    ax = drawing.figure.axes[0]
    widths: dict[float, float] = {}
    for patch in ax.patches:
        middle = round(patch.get_y() + patch.get_height() / 2)  # type: ignore[attr-defined]
        widths[middle] = widths.get(middle, 0.0) + patch.get_width()  # type: ignore[attr-defined]
    table = study.tables["phases"]
    assert table is not None
    sums = table.groupby("ranks")["seconds"].sum()
    assert [widths[i] for i in range(3)] == pytest.approx(sums.tolist())
    assert ax.get_xlabel() == "Time [s]"
    looks = looks_of(["training", "mine", "other"])
    assert looks["training"] == LOOKS["training"] and looks["mine"] != looks["other"]
    assert len({look for name, look in LOOKS.items() if name not in ("training", "timed")}) == 11
    assert "training at 1 rank: 7" in drawing.alt


def test_power_has_a_panel_a_run_with_phases_behind(study: ExperimentResults) -> None:
    drawing = named(study, "power-time")
    panels = drawing.figure.axes[:3]
    four = panels[1]
    assert len(four.patches) == 3 + 2 * 4 + 1
    assert len(four.get_lines()) == 2  # total and core; hosts only where there is one domain
    total = next(line for line in four.get_lines() if line.get_color() == INK)
    assert np.nanmax(np.asarray(total.get_ydata(), float)) == pytest.approx(800)
    assert "core (not counted)" in texts(drawing.figure)
    assert four.get_ylim()[0] == 0


def test_short_phases_are_merged() -> None:
    spans = [("a" if i % 3 else "b", float(i), float(i + 1)) for i in range(10 * SLOTS)]
    merged = merge_spans(spans)
    assert len(merged) <= SLOTS and {name for name, _, _ in merged} == {"a"}
    assert (merged[0][1], merged[-1][2]) == (0.0, pytest.approx(10 * SLOTS))
    assert merge_spans(spans[:4]) == spans[:4]
    assert merge_spans([]) == []


@pytest.mark.parametrize("name", ["<b>&", "$x^2$", "a" * 200])
@pytest.mark.slow
def test_hostile_names_are_drawn_literally(tmp_path: Path, name: str) -> None:
    study = one(tmp_path / "r", nt3(axes={"ranks": [1, 4], "mode": [name, "plain"]}, repeats=1))
    entries = write_figures(study, tmp_path / "f", ("svg",))
    for entry in entries:
        text = (tmp_path / "f" / entry["files"]["svg"]).read_text()
        assert "<b>" not in text and "<script" not in text
