"""Published tables whose parameters are a product: each is compared with the others equal."""

from pathlib import Path

import pytest

from tests.fakes.imported_table import imported

RATE = {"unit": "images/s", "better": "higher", "scope": "total"}
# keras-multi-gpu, "PIX vs. PHB": AlexNet on pairs of seven GeForce GTX 1070 and 1080.
PAIRS = """PS,variable_update,NCCL,p01,p45,p05
gpu,parameter_server,FALSE,1863.78,1830.2,1572.61
cpu,parameter_server,FALSE,1240.73,1233.27,1225.74
gpu,replicated,FALSE,1196.69,,1210.87
gpu,replicated,TRUE,1428.81,,1175.59
gpu,independent,FALSE,2751.71,,2643.55
"""
# By mode: the ratios that the source prints.
PAIR_RATIOS = {
    ("gpu", "parameter_server", False): 1.17, ("cpu", "parameter_server", False): 1.01,
    ("gpu", "replicated", False): 0.99, ("gpu", "replicated", True): 1.22,
    ("gpu", "independent", False): 1.04,
}  # fmt: skip


def test_parameters_of_a_table_are_compared_with_the_others_equal(
    tmp_path: Path,
) -> None:
    """The published ratios of pairs of GPUs come out, from a table with holes, and so do those of
    each of the other words."""
    names = {"ps": "PS", "variable_update": "variable_update", "nccl": "NCCL"}
    pairs = {
        "parameter": "link",
        "values": {"PHB": {"rate": "p05"}, "PIX": {"rate": ["p01", "p45"]}},
    }
    content = {
        "name": "pairs",
        "parameters": {"ranks": {"value": 2}, **{k: {"column": v} for k, v in names.items()}},
        "metrics": {"rate": RATE},
        "side_by_side": pairs,
    }
    _, entry, tables = imported(tmp_path, PAIRS, content)
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
