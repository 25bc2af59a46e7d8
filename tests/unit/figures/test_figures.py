"""Figures: the right ones for what varies, forms that tell the truth, files for a page."""

import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from scalesweep.aspects.draw import draw, write_figures
from scalesweep.aspects.scaling import figure as module
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing
from scalesweep.figures.forms import Bars, Dots, Heat, Lines
from scalesweep.figures.theme import Axis, set_axis
from tests.fakes.pages import render, visible
from tests.fakes.results import Fake, make_results, studies_of


def single(root: Path, fake: Fake) -> ExperimentResults:
    return studies_of(make_results(root, [fake]))[fake.name]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ExperimentResults]:
    return studies_of(make_results(tmp_path_factory.mktemp("figures")))


def named(results: ExperimentResults, name: str) -> Drawing:
    return next(drawing for drawing in draw(results) if drawing.name == name)


def texts(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)}


def test_kinds_follow_what_varies(studies: dict[str, ExperimentResults]) -> None:
    names = {name: [d.name for d in draw(study)] for name, study in studies.items()}
    scaling = ["scaling-init", "scaling-later"]
    heat = ["heatmap", "heatmap-init"]
    assert names["io_weak_scaling"] == [*scaling, "ledger", "waterfall", "ranks-epoch"]
    by = [f"compare-{kind}_threads-{phase}" for kind in ("inter", "intra")
          for phase in ("init", "later")]  # fmt: skip
    assert names["thread_pools"] == [*heat, *by]
    assert names["batch_sizes"][:4] == [*scaling, *heat]
    assert names["models"] == ["compare-model-init", "compare-model-later"]  # names
    assert names["allreduce"] == ["compare-message_bytes-run"]  # numbers
    assert names["not_started"] == []
    titles = {figure.title for study in studies.values() for figure in draw(study)}
    assert all("(simulated)" in title for title in titles)


def test_scaling_has_its_ideal_its_target_and_holes(studies: dict[str, ExperimentResults]) -> None:
    study = studies["io_weak_scaling"]
    drawing = named(study, "scaling-later")
    rates = drawing.panels[0].frame.set_index(["series", "style", "x"])["y"]
    rows = {row["ranks"]: row for row in study.scaling}
    assert rates["total", "ideal", 1024] == pytest.approx(
        1024 * rows[1]["total_throughput_mean_later"]
    )
    assert math.isnan(rates["total", "", 512])  # breaks the line
    upper, lower = drawing.figure.axes[:2]
    assert upper.get_yscale() == "log" and lower.get_xscale() == "log"
    assert {"NODE_FAIL", "80 % target"} <= texts(drawing.figure)


def test_heat_map_has_real_cells_and_marks_holes(studies: dict[str, ExperimentResults]) -> None:
    study = studies["thread_pools"]
    drawing = named(study, "heatmap")
    frame = drawing.panels[0].frame.set_index(["y", "x"])
    assert frame["value"].isna().sum() == 3  # failed, pending, excluded
    row = next(r for r in study.points if (r["inter_threads"], r["intra_threads"]) == (2, 0))
    assert frame["value"][2, 0] == pytest.approx(row["total_throughput_mean_later"])
    (ax, _) = drawing.figure.axes
    assert {"pending", "excluded", "out\nof\nmemory"} <= texts(drawing.figure)
    assert sum(bool(patch.get_hatch()) for patch in ax.patches) == 3
    (best,) = [patch for patch in ax.patches if patch.get_linewidth() > 2]
    at = (round(best.get_y() + 0.46), round(best.get_x() + 0.46))  # type: ignore[attr-defined]
    values = frame["value"].to_numpy().reshape(5, 6)
    assert values[at] == np.nanmax(values)


@pytest.mark.parametrize(
    ("fake", "sides", "held"),
    [
        (Fake("e", {"ranks": [1, 2], "m": ["x", "y"], "a": [1, 2], "b": [0, 1]}, "weak"),
         ("a", "b"), "1 rank, m x"),
        (Fake("e", {"a": [1, 2]}, linked={"b": lambda p: 2 * p["a"]}), None, ""),
        # At each mode a and b change together: no two points show what one of them does.
        (Fake("e", {"m": ["x", "y", "z"], "a": [1, 2], "b": [1, 2]},
              excluded=lambda p: "" if (p["a"] == p["b"]) == (p["m"] == "x") else "not asked"),
         ("m", "a"), "b 1"),
    ],
)  # fmt: skip
def test_a_plane_is_of_numbers_if_there_are_any(
    tmp_path: Path, fake: Fake, sides: tuple[str, str] | None, held: str
) -> None:
    fake.repeats, fake.epochs = 1, 2
    study = single(tmp_path, fake)
    drawings = [drawing for drawing in draw(study) if drawing.name == "heatmap"]
    if sides is None:
        assert not drawings
        return
    panel: Any = drawings[0].panels[0]
    assert (panel.y.label.split()[0], panel.x.label.split()[0]) == sides
    assert drawings[0].title.endswith(f"later epochs{', ' + held if held else ''} (simulated)")


FRAME = pd.DataFrame({"x": [1, 2, 4, 8], "y": [1.0, 3.0, 9.0, 81.0], "label": list("abcd"),
                      "value": [4.0, 3.0, 2.0, 1.0], "part": list("pqpq")})  # fmt: skip


@pytest.mark.parametrize(
    ("panel", "said"),
    [
        (Lines(FRAME, Axis("x", "scale"), Axis("y", "log", {"goal": 5.0}), holes={16: "FAILED"}),
         {"goal", "FAILED"}),
        (Lines(FRAME.assign(x=list("wxyz")), Axis("x"), Axis("y")), {"w", "z"}),
        (Bars(FRAME[["label", "value"]].assign(low=0.5, high=5.0), Axis("s")), {"a", "d", "4.00"}),
        (Dots(FRAME.assign(series=list("uuvv")), Axis("s", "log")), {"u", "v"}),
        (Bars(FRAME, Axis("ms"), line=("ideal", {"a": 2.0})), {"p", "q", "ideal"}),
        (Bars(FRAME.assign(start=1.0, note="+4 [3, 5]"), Axis("ms")), {"+4 [3, 5]"}),
        (Heat(FRAME.assign(y=[1, 1, 2, 2]), Axis("x"), Axis("y"), "s", best="lower"), {"1"}),
        (Lines(FRAME.assign(label="dot", size=9, style="dots", series="roof"), Axis("x", "log"),
               Axis("y", "log")), {"dot", "roof"}),
    ],
)  # fmt: skip
def test_each_form_says_what_it_was_given(panel: Any, said: set[str]) -> None:
    drawing = Drawing("n", "e: what", "Why.", [panel])
    assert said | {"e: what"} <= texts(drawing.figure)


def test_an_axis_has_some_ticks_whatever_it_spans_and_no_interval_hides_the_values() -> None:
    for kind in ("linear", "zero", "log", "values", "scale", "share"):
        for span in ((1e-12, 1e12), (1, 3e5), (221, 285), (100, 101)):
            ax = Figure().subplots()
            set_axis(ax, "y", Axis("", kind), span, [span[0] / 1e3, span[1]])
            low, high = ax.get_ylim()
            assert 1 <= sum(low <= tick <= high for tick in ax.get_yticks()) <= 24, (kind, span)
    ax = Figure().subplots()
    set_axis(ax, "y", Axis("", "share"), [0.9, 1.0], [0.01, 80.0])
    assert ax.get_ylim()[1] < 2


@pytest.mark.slow
def test_files_are_deterministic_and_can_stand_in_one_page(tmp_path: Path) -> None:
    study = single(tmp_path / "r", Fake("e", {"m": ["$x^2$", "<b>&"]}))
    out = tmp_path / "figures"
    entries = write_figures(study, out)
    same = [path for path in out.glob("*/*") if path.suffix != ".pdf"]  # its objects have no order
    before = [path.read_bytes() for path in same]
    write_figures(study, out, processes=2)
    assert [path.read_bytes() for path in same] == before
    assert all(b"DejaVuSans" in path.read_bytes() for path in out.glob("*/*.pdf"))
    assert json.loads((out / "e" / "index.json").read_text()) == entries
    drawn = [(out / entry["files"]["svg"]).read_text() for entry in entries]
    ids: list[str] = []
    for entry, text in zip(entries, drawn, strict=True):
        assert {Path(file).suffix for file in entry["files"].values()} == {".svg", ".pdf", ".png"}
        root = ET.fromstring(text)
        own = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
        used = re.findall(r"""(?:url\(#|href="#)([^)"]+)""", text)
        assert {*used} <= {*own}
        ids += own
        assert root.get("viewBox") and root.get("role") == "img"
        assert entry["title"] in str(root.get("aria-label")) and len(text) < 60_000
    assert len(ids) == len(set(ids))
    every = "".join(drawn)
    assert "$x^2$" in every and "&lt;b&gt;&amp;" in every and "<b>" not in every


def test_a_failed_figure_is_missing_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_results(tmp_path, [Fake("e", {"ranks": [1, 2]}, "weak")])

    def scaling_figures(_results: ExperimentResults) -> list[Drawing]:
        raise ValueError("no rate\nat all")

    monkeypatch.setattr(module, "FIGURES", (scaling_figures, *module.FIGURES[1:]))
    entries = write_figures(studies_of(root)["e"], root / "figures", ("svg",))
    assert [entry["name"] for entry in entries if "missing" in entry] == ["scaling"]
    assert len(entries) > 1
    page = visible(render(root))
    assert "e: scaling: this figure is missing." in page
    assert "Not drawn: ValueError: no rate. The tables have its numbers." in page
