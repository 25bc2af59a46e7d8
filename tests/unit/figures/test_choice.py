"""Which figures large experiments get, and the fonts that all figures share."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scalesweep.aspects import draw as draw_module
from scalesweep.aspects.draw import MANY_POINTS, draw, most_telling, plan_figures, write_figures
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import COMMON, WHOLE, Sketch, families
from tests.conftest import ROOT
from tests.fakes.results import Fake, demo, make_results

LARGE = Fake("e", {"ranks": [1, 2], "a": [0, 1], "b": [0, 1]}, "weak", repeats=1, epochs=2)


def studies_of(root: Path, fakes: list[Fake]) -> list[ExperimentResults]:
    root = make_results(root, fakes)
    plan = read_plan(root / "plan.json")
    return [load_results(entry, root / "tables") for entry in plan["experiments"]]


def sketches(*names: str) -> list[Sketch]:
    return [Sketch(name, list) for name in names]


def names_of(parts: list[Sketch]) -> list[str]:
    return [part.name for part in parts if not part.name.endswith("_figures")]


@pytest.mark.slow
def test_a_sketch_is_named_as_what_it_draws(tmp_path: Path) -> None:
    names = []
    for planned in map(plan_figures, studies_of(tmp_path, demo()[:3])):
        assert planned.left_out == []
        for part in planned.parts:
            drawn = [drawing.name for drawing in part.draw()]
            assert drawn == [part.name] or part.name.endswith("_figures")
            names += drawn
    assert {"overview-init", "scaling-1-later", "heatmap", "groups-init"} <= set(names)


@pytest.mark.slow
def test_large_campaigns_get_the_most_telling_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study,) = studies_of(tmp_path, [LARGE])
    monkeypatch.setattr(draw_module, "MANY_POINTS", 9)
    every = plan_figures(study)
    monkeypatch.setattr(draw_module, "MANY_POINTS", 8)
    monkeypatch.setattr(draw_module, "MOST_FIGURES", 4)
    large = plan_figures(study)
    assert names_of(large.parts) == ["overview-init", "overview-later", "heatmap", "groups-later"]
    assert [name for name in names_of(every.parts) if name in large.left_out] == large.left_out
    assert len(names_of(every.parts)) == 4 + len(large.left_out) and every.left_out == []

    entries = write_figures(study, tmp_path / "f", ["svg"])
    told = [entry for entry in entries if "left_out" in entry]
    assert told == entries[-1:] and told[0]["left_out"] == large.left_out
    assert f"{len(large.left_out)} more figures of this experiment" in told[0]["caption"]
    assert "of 8 points or more has the 4 most informative figures" in told[0]["caption"]


def test_ranks_of_what_figures_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_module, "MOST_FIGURES", 8)
    found = sketches(
        "overview-init", "overview-later", "scaling-1-init", "scaling-1-later", "scaling-2-later",
        "compare-cache-init", "compare-cache-later", "ratio-cache-later", "compare-gzip-2-later",
        "compare-gzip-2-init", "heatmap", "size-later",
    )  # fmt: skip
    kept = most_telling(found, MANY_POINTS)
    assert names_of(kept) == [
        "overview-init", "overview-later", "scaling-1-later", "compare-cache-later",
        "ratio-cache-later", "compare-gzip-2-later", "heatmap", "size-later",
    ]  # fmt: skip
    assert most_telling(found, MANY_POINTS - 1) == found
    # However many there are, a heat map is kept.
    monkeypatch.setattr(draw_module, "MOST_FIGURES", 1)
    many = sketches("overview-later", "heatmap", "heatmap-2")
    assert names_of(most_telling(many, MANY_POINTS)) == ["overview-later", "heatmap"]


def extent(text: str, family: list[str], weight: str) -> tuple[float, ...]:
    figure = Figure()
    drawn = figure.text(0.5, 0.5, text, family=family, weight=weight, parse_math=False)
    return tuple(drawn.get_window_extent(FigureCanvasAgg(figure).get_renderer()).extents)


@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_the_common_font_sets_text_as_the_whole_one_does(weight: str) -> None:
    assert families() == [COMMON, WHOLE]
    for text in ("Throughput [samples/s]", "first efficient AVATAR To 95 % ± 1.5 – é", "λ ≤ 2×µ…"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a family or a letter that is not found
            assert extent(text, [COMMON], weight) == extent(text, [WHOLE], weight)


def test_other_letters_come_from_the_whole_font() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert extent("Жук ✓", families(), "normal")[2] > 0
    with pytest.warns(UserWarning, match="missing"):
        extent("Жук", [COMMON], "normal")


@pytest.mark.slow
def test_processes_write_the_same_bytes(tmp_path: Path) -> None:
    root = make_results(tmp_path / "r", [Fake("e", {"ranks": [1, 2]}, "weak")])
    command = [sys.executable, str(ROOT / "workflow/scripts/figures.py")]
    command += ["--plan", str(root / "plan.json"), "--tables", str(root / "tables"), "--out"]
    for name in ("a", "b"):
        subprocess.run([*command, str(tmp_path / name)], check=True)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*"))
    assert {path.suffix for path in files} == {".json", ".pdf", ".png", ".svg"}
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes(), path
    assert b"DejaVuSansCommon" in next((tmp_path / "a").rglob("*.pdf")).read_bytes()


def test_a_number_may_be_missing_among_the_values_of_a_parameter(tmp_path: Path) -> None:
    (study,) = studies_of(tmp_path, [Fake("e", {"a": [1, 2], "threads": [None, 1]}, repeats=2)])
    assert [row["threads"] for row in study.points] == [None, 1, None, 1]
    assert [drawing.name for drawing in draw(study)] == ["heatmap", "groups-init", "groups-later"]
