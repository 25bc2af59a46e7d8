"""Printed MFU and HFU against what their own rows give, and those that cannot be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.core.errors import UserError
from scalesweep.importers.printed_utilisation import check_utilisation
from scalesweep.importers.table_map import TableMap, load_map
from scalesweep.importers.table_runs import TableRuns, runs_of
from tests.conftest import ROOT
from tests.fakes.imported_table import imported

MAP = ROOT / "resources" / "maps" / "llm_foundry.yaml"
HEAD = (
    "Model|SeqLen (T)|# GPUs|GPU|MFU|HFU|Model TFLOP|MicroBatchSize|GradAccum|GlobalBatchSize"
    "|Throughput (S/s)|Throughput (T/s)|Throughput (T/s/GPU)|GlobalBatchSize (T)|Precision|MP Mode"
    "|Sharding Strategy|Activation Checkpointing|Activation CPUOffload|NumParams\n"
)
# mosaicml/llm-foundry, scripts/train/benchmarking/README.md: H100 in bfloat16 and float8, A100.
ROWS = """\
70b|2048|64|h100_80gb|42.57|56.76|4.212583E+14|8|4|2048|32|66523|1039|4194304|amp_bf16|DEFAULT|FULL_SHARD|True|False|64862437376
7b|65536|8|h100_80gb|28.59|38.13|2.829422E+14|1|2|16|0|15654|1956|1048576|amp_bf16|DEFAULT|FULL_SHARD|True|False|6918905856
13b|2048|64|h100_80gb|39.86|39.86|3.943653E+14|2|1|128|150|307209|4800|262144|amp_bf16|DEFAULT|FULL_SHARD|False|False|12853954560
3b|2048|8|h100_80gb|27.7|27.7|5.482421E+14|10|6|480|119|244692|30586|983040|amp_fp8|DEFAULT|FULL_SHARD|False|False|2651837440
350m|512|8|h100_80gb|17.77|17.77|3.516870E+14|56|4|1792|2412|1235360|154420|917504|amp_fp8|DEFAULT|FULL_SHARD|False|False|354412544
"""
Read = Callable[..., tuple[TableMap, TableRuns]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(rows: str = ROWS, **changes: Any) -> tuple[TableMap, TableRuns]:
        content = yaml.safe_load(MAP.read_text())
        for key, change in changes.items():
            content[key] = {**content[key], **change} if isinstance(change, dict) else change
        (tmp_path / "map.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        (tmp_path / "t.csv").write_text((HEAD + rows).replace("|", ","))
        table_map = load_map(tmp_path / "map.yaml", tmp_path / "t.csv")
        return table_map, runs_of(table_map)

    return read


def test_every_printed_mfu_and_hfu_of_llm_foundry_comes_out(read: Read) -> None:
    table_map, runs = read()
    assert len(runs.runs) == 5 and not runs.refusals and not runs.impossible
    checks = check_utilisation(table_map, runs.runs)
    assert [(check.metric, check.agree, check.others) for check in checks] == [
        ("mfu_palm", 5, ()), ("hfu_palm", 5, ()),
    ]  # fmt: skip
    # HFU is 4/3 of MFU with checkpointing, and MFU without.
    shares = [
        (run.metrics["hfu_palm"]["value"] / run.metrics["mfu_palm"]["value"], run.point)
        for run in runs.runs
    ]
    for ratio, point in shares:
        assert ratio == pytest.approx(4 / 3 if point["checkpointing"] else 1, abs=0.0005)
    assert runs.runs[0].point["layers"] == 80 and runs.runs[0].point["width"] == 8192


def test_a_printed_mfu_that_its_row_does_not_give_is_named_with_the_cause(read: Read) -> None:
    # Half of it, and a digit that is wrong.
    table_map, runs = read(ROWS.replace("|42.57|", "|21.29|").replace("|28.59|", "|28.69|"))
    (mfu, hfu) = check_utilisation(table_map, runs.runs)
    assert (mfu.agree, hfu.agree) == (3, 5)
    first, second = mfu.others
    assert "t.csv:2: mfu_palm: printed 0.2129, its own row gives 0.4257" in first
    assert "(the peak of h100_sxm in float8 gives it)" in first
    assert "t.csv:3: mfu_palm: printed 0.2869, its own row gives 0.2859" in second
    assert not second.endswith(")")
    h100 = {"transformer": {"device": "'a100_40gb' if gpu == 'h100_80gb' else 'h100_sxm'"}}
    table_map, runs = read(**h100)
    (mfu, _) = check_utilisation(table_map, runs.runs)
    # Float8 is what an A100 has not: nothing is worked out.
    assert mfu.agree == 0 and len(mfu.others) == 3
    assert "(the peak of h100_sxm in bfloat16 gives it)" in mfu.others[0]


def test_another_convention_is_found_in_its_numbers(read: Read) -> None:
    as_megatron = {
        "mfu_megatron": {
            "formula": "MFU / 100", "unit": "1", "better": "higher", "scope": "total",
        }
    }  # fmt: skip
    table_map, runs = read(metrics=as_megatron)
    by_name = {check.metric: check for check in check_utilisation(table_map, runs.runs)}
    assert by_name["mfu_palm"].agree == 5 and by_name["mfu_megatron"].agree == 0
    assert "(the convention palm gives it)" in by_name["mfu_megatron"].others[1]


def test_float8_has_no_mfu_unless_its_share_is_stated(read: Read) -> None:
    table_map, runs = read(transformer={"float8_share": "null"})
    (mfu, _) = check_utilisation(table_map, runs.runs)
    assert mfu.agree == 3 and not mfu.others
    table_map, runs = read(transformer={"float8_share": 0.5})
    (mfu, _) = check_utilisation(table_map, runs.runs)
    assert mfu.agree == 3 and len(mfu.others) == 2


def test_a_utilisation_above_all_of_a_peak_is_left_out_with_the_likely_cause(read: Read) -> None:
    percentages = {"mfu_palm": {"column": "MFU", "unit": "1", "better": "higher", "scope": "total"}}
    _, runs = read(metrics=percentages)
    assert len(runs.runs) == 5 and all("mfu_palm" not in run.metrics for run in runs.runs)
    assert len(runs.impossible) == 5
    assert (
        "t.csv:2: mfu_palm = 42.57 is more than all of a peak, and was left out"
        in (runs.impossible[0])
    )
    assert "a percentage that was taken for a share" in runs.impossible[0]


def test_maps_name_the_convention_of_each_metric(read: Read) -> None:
    metric = {"formula": "MFU / 100", "unit": "1", "better": "higher", "scope": "total"}
    with pytest.raises(UserError, match=r"metrics\.mfu: which FLOP are counted is part of"):
        read(metrics={"mfu": metric})
    with pytest.raises(UserError, match=r'metrics\.mfu_unstated\.unit: is "1" for a share'):
        read(metrics={"mfu_unstated": {**metric, "unit": "%"}})
    table_map, runs = read(metrics={"mfu_unstated": metric})
    assert "mfu_unstated" in runs.runs[0].metrics
    # Nothing can be said of a convention that is not stated.
    assert [check.metric for check in check_utilisation(table_map, runs.runs)] == [
        "mfu_palm", "hfu_palm"
    ]  # fmt: skip


def test_a_parameter_that_no_column_has_is_worked_out(read: Read) -> None:
    groups = {"groups": {"derive": "ranks / micro_batch"}}
    _, runs = read(parameters=groups)
    assert runs.types["groups"] == "number"
    assert [run.point["groups"] for run in runs.runs] == [8, 8, 32, 0.8, 8 / 56]
    _, runs = read(parameters={"groups": {"derive": "ranks / (micro_batch - 1)"}})
    assert len(runs.runs) == 4
    assert "t.csv:3: groups = ranks / (micro_batch - 1) cannot be worked out" in (
        runs.refusals[0].message
    )


@pytest.mark.slow
def test_the_table_of_an_import_has_all_conventions_beside_the_printed_one(tmp_path: Path) -> None:
    text = (HEAD + ROWS).replace("|", ",")
    _, _, tables = imported(tmp_path, text, yaml.safe_load(MAP.read_text()))
    table = tables["utilisation"]
    assert len(table) == 5 * 6
    palm = table[table.convention == "palm"]
    for name in ("mfu", "hfu"):
        assert (palm[name] / palm[f"printed_{name}"] - 1).abs().max() < 3e-4
    others = table[table.convention != "palm"]
    assert others.printed_mfu.isna().all() and table.fault.isna().all()
    # At 65,536 tokens PaLM's count is 1.58 times Megatron's.
    far = table[table.sequence == 65_536].set_index("convention").mfu
    assert far["palm"] / far["megatron"] == pytest.approx(1.58, abs=0.01)
