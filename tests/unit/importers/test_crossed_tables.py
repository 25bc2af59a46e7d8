"""Published tables whose parameters are a product: each is compared with the others equal."""

from pathlib import Path

import pytest

from tests.fakes.imported_table import imported
from tests.fakes.published import PAIR_RATIOS, PAIRS, PAIRS_MAP

RATE = {"unit": "images/s", "better": "higher", "scope": "total"}


def test_parameters_of_a_table_are_compared_with_the_others_equal(
    tmp_path: Path,
) -> None:
    """The published ratios of pairs of GPUs come out, from a table with holes, and so do those of
    each of the other words."""
    _, entry, tables = imported(tmp_path, PAIRS, PAIRS_MAP)
    assert not entry["linked"] and not entry["excluded"] and entry["points"] == 10
    ratios = tables["comparisons"].set_index(["ps", "variable_update", "nccl"])
    links = ratios.query("parameter == 'link'")
    assert {k: round(v, 2) for k, v in links["ratio"].items()} == PAIR_RATIOS
    assert set(links["value"]) == {"PIX"} and set(links["reference"]) == {"PHB"}
    nccl = ratios.query("parameter == 'nccl' and link == 'PIX'")
    assert nccl["ratio"].tolist() == pytest.approx([1428.81 / 1196.69])
    servers = ratios.query("parameter == 'ps' and link == 'PHB'")
    assert servers["ratio"].tolist() == pytest.approx([1225.74 / 1572.61])


def test_ratios_of_layouts_by_model_and_count(tmp_path: Path) -> None:
    """One row of the table is not there; a model is what is computed, and is not compared."""
    text = "model,gpus,layout,rate\n" + "".join(
        f"{model},{gpus},{layout},{rate * gpus}\n"
        for model, rates in {"resnet50": (100.0, 125.0), "alexnet": (400.0, 600.0)}.items()
        for gpus in (1, 2)
        for layout, rate in zip(("NHWC", "NCHW"), rates, strict=True)
        if (model, gpus, layout) != ("alexnet", 2, "NCHW")
    )
    content = {
        "name": "layouts",
        "scale": "gpus",
        "scaling": "weak",
        "parameters": {
            "ranks": {"column": "gpus"},
            "model": {"column": "model", "workload": True},
            "layout": {"column": "layout"},
        },
        "metrics": {"rate": {**RATE, "column": "rate"}},
    }
    spec, _, tables = imported(tmp_path, text, content)
    assert spec["axes"] == {
        "ranks": [1, 2], "model": ["resnet50", "alexnet"], "layout": ["NHWC", "NCHW"]
    }  # fmt: skip
    assert spec["repeats"] == [[0]] * 7 + [[]]
    layouts = tables["comparisons"].set_index(["model", "gpus"])["ratio"].to_dict()
    assert layouts == {("resnet50", 1): 1.25, ("resnet50", 2): 1.25, ("alexnet", 1): 1.5}
    assert set(tables["comparisons"]["parameter"]) == {"layout"}
    scaling = tables["scaling"].query("gpus == 2")
    assert scaling["rate_eff_run"].tolist() == pytest.approx([1.0] * 3)
