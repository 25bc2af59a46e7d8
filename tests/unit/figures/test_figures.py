"""Figures: the right kinds for what varies, holes that stay holes, files that do not change."""

import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scalesweep.analysis.factors import fold_axes
from scalesweep.aspects import draw as figures_module
from scalesweep.aspects.draw import draw, write_figures
from scalesweep.aspects.find import find
from scalesweep.aspects.scaling import figure as scaling
from scalesweep.aspects.scaling.figure import MAX_SERIES_FIGURES
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.heatmap import MAX_PLANES, _contrast, heat_planes, heatmap_figures
from scalesweep.figures.lines import group_figures
from scalesweep.figures.missing import missing_words
from scalesweep.figures.style import Drawing, log_axis, look, parameter_axis
from scalesweep.figures.svg import tidy_svg
from tests.fakes.drawn import figures_of
from tests.fakes.finding_rows import figure_for
from tests.fakes.pages import render as render_page
from tests.fakes.pages import visible
from tests.fakes.results import Fake, demo, make_results
from tests.fakes.scripts import run_script


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ExperimentResults]:
    root = make_results(tmp_path_factory.mktemp("figures"))
    return studies_of(root)


def studies_of(root: Path) -> dict[str, ExperimentResults]:
    plan = read_plan(root / "plan.json")
    return {entry["name"]: load_results(entry, root / "tables") for entry in plan["experiments"]}


def one(root: Path, fake: Fake) -> ExperimentResults:
    return studies_of(make_results(root, [fake]))[fake.name]


def named(drawings: list[Drawing], name: str) -> Drawing:
    return next(drawing for drawing in drawings if drawing.name == name)


def texts(figure: Figure | Axes) -> list[str]:
    from matplotlib.text import Text

    return [t.get_text() for t in figure.findobj(Text) if isinstance(t, Text) and t.get_text()]


def lines(ax: Axes) -> list[tuple[Any, Any]]:
    return [(line.get_xdata(), line.get_ydata()) for line in ax.get_lines()]


@pytest.mark.slow
def test_kinds_follow_what_varies(studies: dict[str, ExperimentResults]) -> None:
    names = {name: [d.name for d in figures_of(study)] for name, study in studies.items()}
    assert names["io_weak_scaling"] == [
        "scaling-init", "scaling-later", "ledger", "waterfall",
    ]  # fmt: skip
    assert names["thread_pools"] == ["heatmap", "groups-init", "groups-later"]
    assert names["batch_sizes"][:3] == ["overview-init", "overview-later", "scaling-1-init"]
    assert len(names["batch_sizes"]) == 2 + 3 * 2 + 2 + 1 and "heatmap" in names["batch_sizes"]
    assert names["models"] == names["parallel_reads"] == names["allreduce"] == ["parameter"]
    assert names["not_started"] == []


def test_scaling_panels_axes_and_ideal(studies: dict[str, ExperimentResults]) -> None:
    drawing = named(figures_of(studies["io_weak_scaling"]), "scaling-init")
    upper, lower = drawing.figure.axes[:2]
    assert upper.get_yscale() == "log" and lower.get_xscale() == "log"
    ticks = [lower.xaxis.get_major_formatter()(t, 0) for t in lower.get_xticks()]
    assert sorted(map(int, ticks)) == [2**i for i in range(11)]
    rows = {row["ranks"]: row for row in studies["io_weak_scaling"].scaling}
    drawn = [y for x, y in lines(upper) if len(y) == 10 and y[-1] > 5000]
    assert drawn, "the ideal total line is there"
    assert drawn[0][-1] == pytest.approx(1024 * rows[1]["total_throughput_mean_init"])
    horizontals = {y[0] for x, y in lines(lower) if len(y) == 2}
    assert {0.8, 1.0} <= horizontals


def test_hole_breaks_the_line_and_is_named(studies: dict[str, ExperimentResults]) -> None:
    figure = named(figures_of(studies["io_weak_scaling"]), "scaling-later").figure
    upper = figure.axes[0]
    x, y = next((x, y) for x, y in lines(upper) if len(x) == 11)
    assert list(x)[9] == 512 and math.isnan(y[9])
    assert "NODE_FAIL" in texts(figure)


@pytest.mark.slow
def test_titles_and_captions_say_source_repeats_and_band(
    studies: dict[str, ExperimentResults],
) -> None:
    for study in studies.values():
        for drawing in figures_of(study):
            assert "(simulated)" in drawing.title
            assert any("(simulated)" in text for text in texts(drawing.figure))
            assert "Source: simulated." in drawing.caption
            assert re.search(r"repeats? per point", drawing.caption)
            assert drawing.alt
    caption = named(figures_of(studies["io_weak_scaling"]), "scaling-init").caption
    assert "95 % interval over repeats" in caption and "epoch 0" in caption
    single = figures_of(studies["parallel_reads"])[0].caption
    assert "± std over epochs and ranks" in single and "1 repeat per point" in single


def test_measured_is_not_marked(tmp_path: Path) -> None:
    study = one(tmp_path, Fake("e", {"ranks": [1, 2]}, "weak", source="measured"))
    drawing = figures_of(study)[0]
    assert drawing.title == "e: weak scaling, first epoch"
    assert "Source: measured." in drawing.caption


def test_heat_map_labels_real_cells_and_marks_holes(studies: dict[str, ExperimentResults]) -> None:
    study = studies["thread_pools"]
    figure = named(figures_of(study), "heatmap").figure
    for ax, phase in zip(figure.axes[:2], ("init", "later"), strict=True):
        mesh = ax.collections[0]
        values = np.asarray(mesh.get_array(), float).reshape(5, 6)
        assert np.isnan(values).sum() == 3  # failed, pending, excluded
        assert np.nanmin(values) > 0
        assert values[2, 0] == pytest.approx(
            next(
                row[f"total_throughput_mean_{phase}"]
                for row in study.points
                if (row["inter_threads"], row["intra_threads"]) == (2, 0)
            )
        )
        told = [text.get_text() for text in ax.texts]
        assert len(told) == 30
        assert {"pending", "excluded", "out\nof\nmemory"} <= set(told)
        assert "0" not in told
        hatched = [patch for patch in ax.patches if patch.get_hatch()]
        assert len(hatched) == 3
        outlined = [patch for patch in ax.patches if patch.get_linewidth() > 2]
        assert len(outlined) == 1
        best = outlined[0]
        i, j = round(best.get_y() + 0.46), round(best.get_x() + 0.46)  # type: ignore[attr-defined]
        assert values[i, j] == np.nanmax(values)
    bars = [ax.get_ylabel() for ax in figure.axes[2:]]
    assert bars == ["Total throughput [samples/s]"] * 2


def test_heat_map_outlines_the_lowest_where_lower_is_better(tmp_path: Path) -> None:
    fake = Fake("e", {"a": [1, 2], "b": [1, 2]}, epochs=0, metrics={"latency": ("s", "lower")})
    study = one(tmp_path, fake)
    assert study.main is not None and not study.main.higher
    ax = named(figures_of(study), "heatmap").figure.axes[0]
    values = np.asarray(ax.collections[0].get_array(), float).reshape(2, 2)
    best = next(patch for patch in ax.patches if patch.get_linewidth() > 2)
    i, j = round(best.get_y() + 0.46), round(best.get_x() + 0.46)  # type: ignore[attr-defined]
    assert values[i, j] == values.min()


def test_cell_text_contrasts() -> None:
    assert _contrast((1.0, 1.0, 0.9)) == "#000000"
    assert _contrast((0.1, 0.0, 0.3)) == "#ffffff"


def test_group_lines_have_mean_and_std_band(studies: dict[str, ExperimentResults]) -> None:
    study = studies["thread_pools"]
    left, right = named(figures_of(study), "groups-later").figure.axes[:2]
    assert left.get_xlabel() == "intra_threads [threads]"
    assert right.get_xlabel() == "inter_threads [threads]"
    x, y = next((line.get_xdata(), line.get_ydata()) for line in left.get_lines()
                if line.get_color() == "black" and line.get_linewidth() == 1.8)  # fmt: skip
    column = [r["total_throughput_mean_later"] for r in study.points if r["intra_threads"] == 12]
    assert list(x) == [0, 6, 12, 24, 36, 48]
    assert y[2] == pytest.approx(np.mean(column))
    band = next(c for c in left.collections if c.get_zorder() == 0)
    at = [v[1] for path in band.get_paths() for v in path.vertices if v[0] == 12]
    assert max(at) == pytest.approx(np.mean(column) + np.std(column))
    assert {"mean", "± std", "inter_threads"} <= set(texts(left))


def planes_and_left_out(study: ExperimentResults) -> tuple[list[tuple[str, ...]], int]:
    planes, left_out = heat_planes(study)
    return [(*plane.sides, plane.words(study)) for plane in planes], left_out


def test_heat_maps_of_numbers_come_first_and_name_what_is_held(tmp_path: Path) -> None:
    fakes = [
        Fake("words", {"mode": ["x", "y"], "layout": ["p", "q"]}, repeats=1, epochs=2),
        Fake("card", {"ranks": [1, 2], "mode": ["x", "y"], "layout": ["p", "q"], "a": [1, 2],
                      "b": [0, 1]}, "weak", repeats=1, epochs=2),
        Fake("models", {"mode": ["x", "y", "z"], "a": [1, 2], "b": [0, 1]}, repeats=1, epochs=2,
             fate=lambda p, r: "TIMEOUT" if p["mode"] == "x" and p["a"] + p["b"] == 3 else "done"),
        Fake("line", {"a": [1, 2]}, linked={"b": lambda p: 2 * p["a"]}, repeats=1),
        # At each mode a and b change together: no two points show what one of them does.
        Fake("diagonal", {"mode": ["x", "y", "z"], "a": [1, 2], "b": [1, 2]}, repeats=1,
             excluded=lambda p: "" if (p["a"] == p["b"]) == (p["mode"] == "x") else "not asked"),
    ]  # fmt: skip
    studies = studies_of(make_results(tmp_path, fakes))
    assert ("a", "b") not in [sides[:2] for sides in planes_and_left_out(studies["diagonal"])[0]]
    assert planes_and_left_out(studies["words"]) == ([("mode", "layout", "")], 0)
    planes, left_out = planes_and_left_out(studies["card"])
    assert planes == [
        ("a", "b", "1 rank, mode x, layout p"),
        ("a", "ranks", "mode x, layout p, b 0"),
        ("b", "ranks", "mode x, layout p, a 1"),
    ]
    assert left_out == 10 * 8 - MAX_PLANES
    # Of planes of one pair the fullest is the first.
    planes, left_out = planes_and_left_out(studies["models"])
    assert planes == [("a", "b", "mode y"), ("a", "b", "mode z"), ("a", "b", "mode x")]
    assert left_out == 2 * 2
    assert planes_and_left_out(studies["line"]) == ([], 0)
    (last,) = heatmap_figures(studies["models"])[-1].draw()
    assert "mode x" in last.title and "Held: mode x." in last.caption
    assert "4 more heat maps" in last.caption and "Explore" in last.caption
    assert len(group_figures(studies["card"])) == 2 * MAX_PLANES


def test_heat_map_over_the_scale_has_efficiencies_and_holes(tmp_path: Path) -> None:
    fake = Fake(
        "e", {"ranks": [1, 2, 4, 64], "batch": [1, 2]}, "weak", repeats=2, epochs=2,
        excluded=lambda p: "too big" if p["ranks"] * p["batch"] > 64 else "",
    )  # fmt: skip
    study = one(tmp_path, fake)
    figure = heatmap_figures(study)[0].draw()[0].figure
    drawn = [
        np.asarray(ax.collections[0].get_array(), float).reshape(2, 4) for ax in figure.axes[:4]
    ]
    assert [ax.get_title() for ax in figure.axes[:4]] == [
        "first epoch", "later epochs", "Efficiency, first epoch", "Efficiency, later epochs",
    ]  # fmt: skip
    assert all(np.isnan(values).sum() == 1 and np.isnan(values[1, 3]) for values in drawn)
    rows = {(row["batch"], row["ranks"]): row for row in study.scaling if row["repeats"]}
    for (batch, ranks), row in rows.items():
        at = (batch - 1, [1, 2, 4, 64].index(ranks))
        assert drawn[1][at] == pytest.approx(row["total_throughput_mean_later"])
        assert drawn[3][at] == pytest.approx(row["total_eff_later"])
    outlined = [sum(patch.get_linewidth() > 2 for patch in ax.patches) for ax in figure.axes[:4]]
    assert outlined == [1, 1, 0, 0]  # the base of every series has 100 %
    # Rates that differ by orders of magnitude are coloured by their logarithms.
    assert [type(ax.collections[0].norm).__name__ for ax in figure.axes[:3]] == [
        "LogNorm", "LogNorm", "Normalize",
    ]  # fmt: skip


@pytest.mark.slow
def test_many_series_stay_readable(tmp_path: Path) -> None:
    fake = Fake("e", {"ranks": [1, 2, 4], "a": list(range(20))}, "weak", repeats=2)
    sketches = scaling.scaling_figures(one(tmp_path, fake))
    names = [sketch.name for sketch in sketches if sketch.name.endswith("init")]
    assert names[0] == "overview-init" and len(names) == 1 + MAX_SERIES_FIGURES
    (overview,) = sketches[0].draw()
    assert "8 more series" in overview.caption
    looks = [json.dumps(look(i)) for i in range(18)]
    assert len(set(looks)) == 18


def test_findings_link_to_the_figure_of_their_series(
    tmp_path: Path,
) -> None:
    study = one(tmp_path, Fake("e", {"ranks": [1, 2], "batch_size": [1, 2]}, "weak"))
    figures = {drawing.name: drawing.shows for drawing in draw(study)}
    linked = {
        finding.evidence["key"]["batch_size"]: figure_for(finding, figures)
        for finding in find(study)
        if finding.rule == "verdict"
    }
    assert linked == {1: "scaling-1-later", 2: "scaling-2-later"}


def test_linked_parameters_are_one_direction(studies: dict[str, ExperimentResults]) -> None:
    assert studies["models"].leaders == ["model"]
    assert studies["models"].followers == {"model": ["image_size"]}
    points = [{"ranks": r, "batch": 512 // r, "a": a} for r in (1, 2, 4) for a in (1, 2)]
    experiment = {
        "axes": ["batch", "a", "ranks"], "runs": [{"point": point} for point in points],
        "scale": "ranks", "scale_parameters": ["ranks"],
    }  # fmt: skip
    assert fold_axes(experiment) == (["ranks", "a"], {"ranks": ["batch"], "a": []})


@pytest.mark.slow
def test_files_are_deterministic(tmp_path: Path) -> None:
    study = one(tmp_path / "r", Fake("e", {"ranks": [1, 2, 4]}, "weak", repeats=2))
    out = tmp_path / "figures"
    entries = write_figures(study, out)
    before = {path: path.read_bytes() for path in out.glob("*/*")}
    assert len(before) == 13
    write_figures(study, out, processes=2)
    assert {path: path.read_bytes() for path in out.glob("*/*")} == before
    assert json.loads((out / "e" / "index.json").read_text()) == entries
    assert set(entries[0]) == {"experiment", "name", "title", "caption", "alt", "shows", "files"}


@pytest.mark.slow
def test_svgs_can_stand_in_one_page(tmp_path: Path) -> None:
    fakes = [Fake(name, {"ranks": [1, 2, 4]}, "weak", repeats=2) for name in ("e", "f")]
    studies = studies_of(make_results(tmp_path / "r", fakes))
    out = tmp_path / "figures"
    entries = [entry for study in studies.values() for entry in write_figures(study, out)]
    ids: list[str] = []
    for entry in entries:
        text = (out / entry["files"]["svg"]).read_text()
        root = ET.fromstring(text)
        found = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
        for target in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text):
            assert "".join(target) in found
        ids += found
        assert root.get("viewBox") and root.get("width") == "100%" and root.get("height") is None
        assert root.get("role") == "img" and root.get("aria-label") == entry["alt"]
        assert "<text" in text and "dc:date" not in text and "DOCTYPE" not in text
        assert len(text) < 60_000
    assert len(ids) == len(set(ids))


def test_svg_text_stays_text() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><text id="t">a &lt;script&gt; url(#t)</text></svg>'  # noqa: E501
    tidy = tidy_svg(svg, "p-", 'say "hi" <b>')
    assert "<script" not in tidy and "&lt;script&gt; url(#t)" in tidy
    assert ET.fromstring(tidy).get("aria-label") == 'say "hi" <b>'


def test_dollar_and_angle_names_are_drawn_literally(tmp_path: Path) -> None:
    fake = Fake("e", {"mode": ["$x^2$", "<b>&"]}, repeats=1)
    study = one(tmp_path / "r", fake)
    entries = write_figures(study, tmp_path / "f")
    text = (tmp_path / "f" / entries[0]["files"]["svg"]).read_text()
    assert "$x^2$" in text and "&lt;b&gt;&amp;" in text


def test_command_line(tmp_path: Path) -> None:
    root = make_results(tmp_path / "r", [demo()[4]])
    command = ["figures.py", "--tables", root / "tables", "--out", tmp_path / "out", "--plan"]
    done = run_script(*command, root / "plan.json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "parallel_reads" / "parameter.pdf").stat().st_size > 1000
    (root / "bad.json").write_text("{")
    bad = run_script(*command, root / "bad.json")
    assert bad.returncode == 1
    assert bad.stderr.startswith("error: ") and bad.stderr.count("\n") == 1


@pytest.mark.slow
def test_ticks_are_bounded_however_far_apart_values_are(tmp_path: Path) -> None:
    rates = {1: 1.0, 2: 1e-6, 4: 1e6, 8: 1.0}
    outlier = Fake("outlier", {"ranks": [*rates]}, "weak", speed=lambda p: rates[p["ranks"]])
    # Two repeats that differ, in no blocks: efficiencies with bounds of many thousands.
    differ: dict[str, Any] = {"repeats": 2, "slower": lambda point, repeat: 5.0**repeat}
    differ["source"] = "imported"
    apart = Fake("apart", {"ranks": [*rates], "mode": ["a", "b", "c"]}, "weak", **differ)
    bars = Fake("bars", {"mode": ["a", "b", "c"]}, **differ)
    studies = studies_of(make_results(tmp_path, [outlier, apart, bars]))
    bounds = [row["total_eff_high_later"] for row in studies["apart"].scaling]
    assert max(bound for bound in bounds if bound is not None) > 100
    for study in studies.values():
        drawings = figures_of(study)
        assert drawings
        for drawing in drawings:
            for ax in drawing.figure.axes:
                assert len(ax.get_xticks()) <= 24 and len(ax.get_yticks()) <= 24, drawing.name
    # An interval does not hide the values.
    lower = named(figures_of(studies["apart"]), "overview-later").figure.axes[1]
    assert lower.get_ylim()[1] < 10


@pytest.mark.parametrize("span", [(1e-300, 1e300), (5e-324, 1.7e308), (1e-9, 1e9), (1, 3e5)])
def test_a_log_axis_has_some_ticks_whatever_it_spans(span: tuple[float, float]) -> None:
    ax = Figure().subplots()
    log_axis(ax, span)
    assert 3 <= len(ax.get_yticks()) <= 24


def _no_drawing(*args: Any) -> Drawing:
    raise ValueError(f"no {args[-1]}\nat all")


@pytest.mark.slow
def test_a_figure_that_cannot_be_drawn_is_missing_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_results(tmp_path, [Fake("e", {"ranks": [1, 2], "mode": ["a", "b"]}, "weak")])
    study = studies_of(root)["e"]
    monkeypatch.setattr(figures_module, "_many", lambda _study: [scaling.scaling_figures])
    everything = {"ledger", "waterfall"} | {sketch.name for sketch in figures_module.listed(study)}
    with monkeypatch.context() as patched:
        patched.setattr(scaling, "_overview", _no_drawing)
        out = root / "figures"
        entries = write_figures(study, out, ("svg",))
    assert {entry["name"] for entry in entries} == everything
    missing = {entry["name"]: entry["missing"] for entry in entries if "missing" in entry}
    assert missing == {
        "overview-init": "ValueError: no init",
        "overview-later": "ValueError: no later",
    }
    assert missing_words(entries).startswith("2 figures not drawn: e/overview-init (ValueError: no")
    drawn = {path.stem for path in out.glob("*/*.svg")}
    assert drawn == everything - set(missing) and len(drawn) == 6
    page = visible(render_page(root))
    assert "e: overview-init: this figure is missing." in page
    assert "Not drawn: ValueError: no later. The tables have its numbers." in page
    entries = write_figures(study, out, ("svg",))
    assert missing_words(entries) == ""


@pytest.mark.parametrize("span", [(221, 285), (100, 101), (8, 9.5), (2.1, 2.9), (30, 4000)])
def test_a_log_axis_is_labelled_whatever_its_range(span: tuple[float, float]) -> None:
    ax = Figure().subplots()
    log_axis(ax, span)
    low, high = ax.get_ylim()
    assert sum(low <= tick <= high for tick in ax.get_yticks()) >= 3


def test_labels_of_a_parameter_axis_do_not_overlap() -> None:
    ax = Figure(figsize=(5, 3)).subplots()
    sizes = [4, 40, 128, 256, 512, 548, 1152, 1536, 5160, 5632, 73728, 4718592, 4718600]
    parameter_axis(ax, sizes, "message_bytes [bytes]")
    ax.set_xlim(3, 5e6)
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    texts = [text.get_text() for text in ax.get_xticklabels()]
    assert texts[-1] == "4718600" and texts[0] == "4" and len(texts) >= 5
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))
