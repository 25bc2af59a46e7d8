"""A training's rate beside comparable published ones: what is said, and where nothing is."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.commands import import_source, normal
from scalesweep.commands.interface import parser_of
from scalesweep.core.errors import UserError
from scalesweep.gallery.normal import (
    ABOVE,
    BELOW,
    FEWEST,
    NOT_JUDGED,
    UNCLEAR,
    WITHIN,
    best_of_each,
    place,
    sentence,
)
from scalesweep.gallery.normal_figure import figure_svg
from scalesweep.gallery.training_rates import (
    TrainingRate,
    check_device,
    check_dtype,
    gallery_rates,
    rates_of_results,
)
from scalesweep.table.declared import Estimate
from tests.fakes.gallery import tables_only

SHAPE = ModelShape(
    layers=32, width=4096, sequence=2048, parameters=6.7e9, dtype="bfloat16", device="h100_sxm"
)


def rate(tokens: float, ranks: int = 8, origin: str = "a", **shape: Any) -> TrainingRate:
    low, high = shape.pop("interval", (None, None))
    made = replace(SHAPE, **shape)
    return TrainingRate(origin, "p", "measured", ranks, made, Estimate(tokens, low, high))


GALLERY = [rate(9000.0), rate(10000.0, 16), rate(11000.0, 4)]


@pytest.mark.parametrize(
    ("tokens", "interval", "verdict"),
    [
        (9800.0, (None, None), WITHIN), (9000.0, (None, None), WITHIN),
        (5000.0, (None, None), BELOW), (8900.0, (8700.0, 9100.0), UNCLEAR),
        (8900.0, (8800.0, 8950.0), BELOW), (12000.0, (None, None), ABOVE),
        (11200.0, (10900.0, 11500.0), UNCLEAR),
    ],
)  # fmt: skip
def test_where_a_rate_lies(tokens: float, interval: tuple[Any, Any], verdict: str) -> None:
    placed = place(rate(tokens, interval=interval), GALLERY)
    assert placed.verdict == verdict and placed.values == [9000.0, 10000.0, 11000.0]
    ratio = placed.ratio
    assert ratio and ratio.value == pytest.approx(tokens / 10000)


def test_what_is_said() -> None:
    assert sentence(place(rate(9800.0), GALLERY)) == (
        "p: 9,800 tokens/s of a rank; 3 comparable published points (1 study): 9,000 to 11,000; "
        "normal, within what is published."
    )
    assert (
        "lower than all of them (if all 4 were alike, it would be the lowest in 25 % of cases)"
        in sentence(place(rate(5000.0), GALLERY))
    )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"device": "a100_80gb_sxm"}, "device (3)"), ({"dtype": "float8"}, "type of numbers (3)"),
        ({"parameters": 8.03e9}, "parameters (3)"), ({"sequence": 8192}, "tokens of a sample (3)"),
    ],
)  # fmt: skip
def test_what_is_not_comparable_is_left_out_with_the_reason(
    change: dict[str, Any], what: str
) -> None:
    placed = place(rate(5000.0, **change), GALLERY)
    assert placed.verdict == NOT_JUDGED and not placed.references
    assert placed.reason == (
        f"0 comparable points in the gallery, fewer than {FEWEST}; others differ in {what}"
    )
    far = place(rate(5000.0, ranks=64), GALLERY)
    assert far.verdict == NOT_JUDGED and "ranks (3)" in far.reason


def test_two_points_are_too_few() -> None:
    placed = place(rate(100.0), GALLERY[:2])
    assert placed.verdict == NOT_JUDGED and len(placed.references) == 2
    assert "2 comparable points in the gallery, fewer than 3" in placed.reason
    assert sentence(placed) == (
        "p: 100.0 tokens/s of a rank; 2 comparable published points (1 study): 9,000 to 10,000; "
        "not judged: 3 are needed."
    )
    alone = sentence(place(rate(100.0), GALLERY[:1]))
    assert "1 comparable published point (1 study): 9,000; not judged" in alone


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (rate(1.0, device=None), "its device is not stated"),
        (rate(1.0, dtype=None), "the type of its numbers is not stated"),
        (rate(1.0, parameters=None), "its number of parameters is not stated"),
        (replace(rate(1.0), source="simulated"), "it is simulated"),
        (replace(rate(1.0), source="predicted"), "it is predicted"),
        (replace(rate(1.0), shape=None), "declares no transformer"),
        (replace(rate(1.0), tokens=None), "its tokens/s are not known"),
    ],
)
def test_what_cannot_be_compared(made: TrainingRate, reason: str) -> None:
    placed = place(made, GALLERY)
    assert placed.verdict == NOT_JUDGED and reason in placed.reason and not placed.left_out


def test_of_a_sweep_only_the_best_layout_counts() -> None:
    slow = [rate(float(tokens)) for tokens in range(100, 5000, 100)]
    assert [r.tokens.value for r in best_of_each([*slow, *GALLERY]) if r.tokens] == [
        9000.0, 10000.0, 11000.0
    ]  # fmt: skip
    # The same scale of another study is a point of its own.
    assert len(best_of_each([*GALLERY, rate(8000.0, origin="b")])) == 4


@pytest.mark.parametrize("count", [3, 5, 9])
def test_the_lowest_of_alike_ones_is_as_often_yours_as_is_said(count: int) -> None:
    generator = np.random.default_rng(20261126 + count)
    lowest = 0
    for _ in range(1000):
        values = np.exp(generator.standard_t(3, count + 1) * 0.1) * 9000
        gallery = [rate(float(v), origin=str(i)) for i, v in enumerate(values[1:])]
        lowest += place(rate(float(values[0])), gallery).verdict == BELOW
    expected = 1 / (count + 1)
    assert abs(lowest / 1000 - expected) < 4 * (expected * (1 - expected) / 1000) ** 0.5


def test_shipped_rates(tmp_path: Path) -> None:
    rates = gallery_rates(tmp_path, tmp_path)
    assert {each.origin for each in rates} == {"llm_foundry", "torchtitan"}
    assert len(rates) == 216 + 32
    # A study is not compared with itself.
    own = gallery_rates(tmp_path, tmp_path / "llm_foundry")
    assert {each.origin for each in own} == {"torchtitan"}
    placed = place(rate(9800.0), rates)
    assert (placed.verdict, len(placed.values)) == (WITHIN, 3)


def test_a_figure_has_a_line_for_each_point() -> None:
    svg = figure_svg([place(rate(9800.0, interval=(9700.0, 9900.0)), GALLERY)])
    assert svg is not None and svg.lstrip().startswith("<?xml")
    assert figure_svg([place(rate(1.0, device=None), GALLERY)]) is None


USER = "gpus,rate,precision\n8,78400,bf16\n8,40000,bf16\n8,90000,fp8\n"
USER_MAP = {
    "name": "mine",
    "parameters": {
        "ranks": {"column": "gpus"},
        "precision": {"column": "precision"},
        "run": {"column": "rate"},
    },
    "metrics": {
        "tokens_per_second": {
            "column": "rate", "unit": "tokens/s", "better": "higher", "scope": "total",
        },
    },
    "transformer": {
        "layers": 32, "width": 4096, "sequence": 2048, "parameters": 6738415616,
        "dtype": "'bfloat16' if precision == 'bf16' else 'float8'",
    },
}  # fmt: skip


def test_the_points_of_a_results_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tables_only(monkeypatch)
    Path("mine.csv").write_text(USER)
    Path("map.yaml").write_text(yaml.safe_dump(USER_MAP))
    words = ["mine.csv", "--map", "map.yaml", "--results", "mine"]
    import_source.run(parser_of("import").read(words))
    capsys.readouterr()
    normal.run(parser_of("normal").read(["mine"]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("not judged: 3 points: its device is not stated")
    normal.run(parser_of("normal").read(["mine", "--device", "h100_sxm"]))
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition("; ")[2] for line in lines[:2]] == [
        "normal, within what is published.",
        "lower than all of them (if all 4 were alike, it would be the lowest in 25 % of cases).",
    ]
    assert lines[2].startswith("not judged: 1 point: 0 comparable points in the gallery")
    with Path("mine/normal/normal.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == [WITHIN, BELOW, ""]
    assert rows[0]["left_out"].startswith("parameters: ") and rows[0]["studies"] == "llm_foundry"
    assert Path("mine/normal/normal.svg").is_file()


def test_what_is_no_results_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no results folder: it has no plan.json"):
        rates_of_results(tmp_path, "a")
    with pytest.raises(UserError, match=r"--device h100: .*allowed: v100_sxm2"):
        check_device("h100")
    assert check_device("h200") == "h200"
    with pytest.raises(UserError, match=r"--dtype bf16: .*allowed: float32"):
        check_dtype("bf16")
