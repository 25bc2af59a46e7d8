"""``scaling: model``: of a model that grows with the ranks FLOP/s alone have an ideal."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.experiment.constant_words import constant_words
from tests.fakes.imported_table import imported

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
    assert "1700 to 7500 million parameters" in constant_words(entry).replace(",", "")
