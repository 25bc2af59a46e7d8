"""A training's rate beside comparable published ones: what is said, and where nothing is."""

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from scalesweep.commands import import_source, normal
from scalesweep.commands.interface import parser_of
from scalesweep.compare.normal import ABOVE, BELOW, UNCLEAR, WITHIN, place, sentence
from scalesweep.core.errors import UserError
from tests.fakes.import_tables import tables_only

SHAPE = {"parameters": 6.7e9, "dtype": "bfloat16", "device": "h100_sxm", "sequence": 2048}


def point(tokens: float | None, low: Any = None, high: Any = None, **more: Any) -> dict[str, Any]:
    rate = {"tokens": tokens, "tokens_low": low, "tokens_high": high}
    return {"point": "p", "source": "measured", "ranks": 8, **SHAPE, **rate, **more}


def rates(*values: float) -> pd.DataFrame:
    """Published rates of ``SHAPE``, on 8, 16, 4, ... ranks."""
    ranks = [(8, 16, 4)[n % 3] for n in range(len(values))]
    more = {"ranks": ranks, "tokens_per_second_of_a_rank": values}
    return pd.DataFrame({"source": "a", **SHAPE, **more})


PUBLISHED = rates(9000.0, 10000.0, 11000.0)


@pytest.mark.parametrize(
    ("tokens", "verdict"),
    [
        ((9800.0,), WITHIN), ((9000.0,), WITHIN), ((5000.0,), BELOW), ((12000.0,), ABOVE),
        ((8900.0, 8700.0, 9100.0), UNCLEAR), ((8900.0, 8800.0, 8950.0), BELOW),
        ((11200.0, 10900.0, 11500.0), UNCLEAR),
    ],
)  # fmt: skip
def test_where_a_rate_lies(tokens: tuple[float, ...], verdict: str) -> None:
    placed = place(point(*tokens), PUBLISHED)
    assert (placed["verdict"], placed["published"]) == (verdict, 3)
    assert (placed["least"], placed["most"]) == (9000, 11000)
    assert placed["ratio"] == pytest.approx(tokens[0] / 10000)
    assert ("in 25 % of cases" in sentence(placed)) == (verdict in (BELOW, ABOVE))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"device": "a100_80gb_sxm"}, "device (3)"), ({"dtype": "float8"}, "type of numbers (3)"),
        ({"parameters": 8.03e9}, "parameters (3)"), ({"sequence": 8192}, "tokens of a sample (3)"),
        ({"ranks": 64}, "ranks (3)"), ({"ranks": 32}, "ranks (2)"),
    ],
)  # fmt: skip
def test_what_is_not_comparable_is_left_out_with_the_reason(
    change: dict[str, Any], what: str
) -> None:
    placed = place(point(5000.0, **change), PUBLISHED)
    assert "verdict" not in placed and placed["left_out"] == what and what in placed["reason"]
    assert placed["published"] == 3 - int(what[-2])


@pytest.mark.parametrize(
    ("lack", "reason"),
    [
        ({"device": ""}, "its device is not stated"),
        ({"dtype": ""}, "the type of its numbers is not stated"),
        ({"parameters": None}, "it declares no transformer with its size"),
        ({"source": "simulated"}, "it is simulated"),
        ({"tokens": None}, "its tokens/s are not known"),
    ],
)
def test_what_cannot_be_compared(lack: dict[str, Any], reason: str) -> None:
    placed = place({**point(1.0), **lack}, PUBLISHED)
    assert "verdict" not in placed and reason in placed["reason"] and not placed["published"]


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
    assert "9,800 tokens/s of a rank; 3 comparable published rates" in lines[0]
    assert lines[2].startswith("not judged: 1 point: 0 comparable published rates")
    with Path("mine/normal/normal.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == [WITHIN, BELOW, ""]
    assert rows[0]["published_by"] == "mosaicml/llm-foundry 8c8dd48f"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no results folder: it has no plan.json"),
        (["--device", "h100"], "--device h100: .*allowed: v100_sxm2"),
        (["--dtype", "bf16"], "--dtype bf16: .*allowed: float32"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, words: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        normal.run(parser_of("normal").read([str(tmp_path), *words]))
