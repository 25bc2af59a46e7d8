"""The map of the Ultra-Scale Playbook's sweep: shapes, layouts, failures and memory of its rows."""

from pathlib import Path

import pytest
import yaml

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.aspects.memory.table import MemoryRow
from scalesweep.config.shapes import planned_shape
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import runs_of
from tests.conftest import ROOT
from tests.fakes.imported_table import imported

MAP = ROOT / "resources" / "maps" / "ultrascale_playbook.yaml"
HEAD = "model,nodes,dp,tp,pp,zero,mbs,gradacc,gbs,status,mfu_pct,tok_s_gpu,tok_s,gpu_memory_gb\n"
# vinjn/nanotron-ultrascale-playbook 924e4d0b.
ROWS = """\
1B,1,8,1,1,0,1,32,256,ok,38.3,39273,314187,36.7
1B,1,8,1,1,1,1,32,256,ok,38.1,39006,312045,24.2
1B,1,2,1,4,1,4,32,256,ok,41.7,36566,292528,42.6
1B,1,1,1,8,0,32,8,256,failed,,,,
8B,1,1,1,8,0,1,256,256,ok,41.0,6807,54456,62.5
8B,1,2,1,4,1,1,128,256,ok,45.2,7503,60024,63.1
8B,1,8,1,1,1,1,32,256,failed,,,,
"""


def gflop_of_token(shape: ModelShape) -> float:
    """6 N + 12 L d T (PaLM), with both tables counted."""
    wide = 3 * shape.width * (shape.ffn_width or 0)
    weights = shape.layers * (4 * shape.width**2 + wide) + 2 * 131072 * shape.width
    return (6 * weights + 12 * shape.layers * shape.width * shape.sequence) / 1e9


def test_rows_have_the_model_that_their_mfu_implies_and_its_memory(tmp_path: Path) -> None:
    _, entry, tables = imported(tmp_path, HEAD + ROWS, yaml.safe_load(MAP.read_text()))
    for run in entry["runs"]:
        shape = planned_shape(entry, run["point"])
        assert shape is not None
        # 989 TFLOP/s x MFU / tokens/s of a GPU: 11.25 and 59.6 GFLOP of a token.
        implied = 11.25 if run["point"]["model"] == "1B" else 59.6
        assert gflop_of_token(shape) == pytest.approx(implied, rel=0.003)
    rows = ExperimentResults(entry, tables).of(MemoryRow)
    ratios = [row.ratio for row in rows if row.ratio is not None]
    assert len(rows) == 7 and len(ratios) == 5
    # Few peaks: near the default constants, which are 19 % off in the median.
    assert all(0.7 < ratio < 1.5 for ratio in ratios)
    failed = [row for row in rows if row.measured is None]
    assert {row.outcome for row in failed} == {"failed otherwise"}
    # The logits of 32 samples of 1B take 454 GB of 85; 8B on one node needs 115.
    assert [row.verdict for row in failed] == ["will not fit"] * 2
    assert all(row.needed > (row.device or 0) for row in failed)


def test_a_row_that_contradicts_its_own_global_batch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        HEAD + ROWS + "1B,1,2,1,4,1,2,4,256,ok,24.7,21650,173200,29.0\n"
    )
    table = runs_of(load_map(MAP, tmp_path / "t.csv"))
    assert len(table.runs) == 7
    [refusal] = table.refusals
    assert "global_batch" in str(refusal) and "16" in str(refusal)
