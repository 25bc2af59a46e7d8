"""``scaling: model``: the model has to grow with the ranks, and FLOP/s alone have an ideal."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.campaign import load_campaign
from scalesweep.core.status import Status
from scalesweep.experiment.constant_words import constant_words
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import RunState
from tests.fakes.imported_table import imported

FIXED = {
    "model": "transformer", "width": 64, "heads": 4, "sequence": 16, "vocabulary": 100,
    "batch_size": 4, "ranks_per_node": 8,
}  # fmt: skip


def campaign(tmp_path: Path, **experiment: Any) -> Any:
    content = {
        "campaign": "c", "site": "local", "results": str(tmp_path / "results"),
        "experiments": {"e": {"benchmark": "torch_training", "scaling": "model", **experiment}},
    }  # fmt: skip
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return load_campaign(tmp_path / "c.yaml")


def test_a_model_that_grows_is_a_series_and_its_sizes_are_told(tmp_path: Path) -> None:
    grown = campaign(
        tmp_path, axes={"ranks": [1, 2, 4], "batch_size": [4, 8]},
        derive={"layers": "2 * ranks"}, fixed={k: v for k, v in FIXED.items() if k != "batch_size"},
    )  # fmt: skip
    new = dict.fromkeys(grown.unique_runs(), RunState(Status.NEW))
    (entry,) = build_plan(grown, new)["experiments"]
    assert entry["scaling"] == "model"
    words = constant_words(entry)
    # 2, 4 and 8 blocks of 49,984 parameters, and embeddings, last layer and norms of 13,952.
    assert words.startswith("the model grows with the ranks: 0.114 million to 0.414 million ")
    assert (
        "0.103 million to 0.114 million of a rank; FLOP/s of a rank ideally stay the same" in words
    )


# D. Narayanan et al., Efficient large-scale language model training on GPU clusters using
# Megatron-LM, SC 2021, table 1: parameters in 1e9, GPUs, PFLOP/s in all; samples/s made up.
MEGATRON = "size,gpus,pflops,rate\n1.7,32,4.4,900\n3.6,64,8.8,860\n7.5,128,18.2,880\n"
MAP: dict[str, Any] = {
    "name": "megatron",
    "parameters": {"ranks": {"column": "gpus"}, "size": {"column": "size"}},
    "metrics": {
        "flops": {"column": "pflops", "unit": "PFLOP/s", "better": "higher", "scope": "total"},
        "rate": {"column": "rate", "unit": "samples/s", "better": "higher", "scope": "total"},
    },
    "scaling": "model",
    "transformer": {
        "layers": 24, "width": 2304, "sequence": 2048, "parameters": "size * 1000000000",
    },
}  # fmt: skip


def test_a_published_table_of_growing_models_has_an_ideal_of_flop_alone(tmp_path: Path) -> None:
    _, entry, tables = imported(tmp_path, MEGATRON, MAP)
    assert entry["scaling"] == "model"
    scaling = tables["scaling"].set_index("ranks")
    expected = [1.0, 8.8 / 2 / 4.4, 18.2 / 4 / 4.4]
    assert scaling["flops_eff_run"].tolist() == pytest.approx(expected)
    assert not [name for name in scaling if name.startswith("rate_") and "_eff" in name]
    assert "1700 million to 7500 million parameters" in constant_words(entry).replace(",", "")
