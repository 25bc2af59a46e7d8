"""Rooflines: classes and least times by hand, ceilings, the table, figures and what is said."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.roofline import COMPUTE, LAUNCH, MEMORY, UNRATED, Roof, share_of
from scalesweep.analysis.stats import Estimate
from scalesweep.aspects.roofline.figure import roofline_figures
from scalesweep.aspects.roofline.table import layer_table, step_against_roof
from scalesweep.report.export_tables import write_all
from scalesweep.tables.bookkeeping import as_text
from scalesweep.tables.layers import LAYERS, LayerTimes
from scalesweep.tables.machine import DATASHEET, MEASURED, machine_of
from scalesweep.tables.provenance import FACTS, run_facts
from tests.fakes.campaigns import Campaign
from tests.fakes.finding_rows import said

# 100 GFLOP/s and 20 GB/s: the ridge is at 5 FLOP/byte, as in docs/methods/roofline.md.
FLOPS, BYTES = 100e9, 20e9
LAUNCH_S = 10e-6
# name, kind, count, FLOP and bytes forward and backward, seconds forward and of both.
CONV = ("conv", "conv2d", 2, 1e9, 2e9, 20e6, 40e6, 0.015, 0.050)
NORM = ("norm", "batch_norm", 3, 10e6, 15e6, 40e6, 60e6, 0.003, 0.008)
TINY = ("tiny", "dense", 1, 1e4, 2e4, 1e4, 2e4, 20e-6, 50e-6)
STEP_S = 0.130


def times(
    step: float = STEP_S, layers: Sequence[Any] = (CONV, NORM, TINY), slower: float = 1
) -> str:
    columns = zip(*layers, strict=True)
    names = list(LayerTimes.__annotations__)[:9]
    values = {name: list(column) for name, column in zip(names, columns, strict=True)}
    for name in ("forward", "both"):
        values[name] = [value * slower for value in values[name]]
    return json.dumps({**values, "step": step, "launch": LAUNCH_S})


STEPS = [times(STEP_S * factor) for factor in (0.98, 1.0, 1.02)]


def timed(by_batch: Mapping[int, Sequence[str]], **fixed: Any) -> Campaign:
    """Runs of step_layers at some local batches, with their layers' times."""
    runs = [
        ({"batch_size": batch}, {LAYERS: text})
        for batch, texts in by_batch.items()
        for text in texts
    ]
    every = {"ranks": 1, "ranks_per_node": 1, "model": "net", **fixed}
    return Campaign().add("layers", runs, fixed=every, work=["batch_size"])


def with_ceilings(campaign: Campaign) -> Campaign:
    campaign.rates("compute", "compute", [0.996 * FLOPS, 0.998 * FLOPS, FLOPS])
    return campaign.rates("memory", "memory", [0.996 * BYTES, 0.998 * BYTES, BYTES])


def measured(steps: Sequence[str] = STEPS, **fixed: Any) -> Campaign:
    return with_ceilings(timed({32: steps}, **fixed))


def rows_of(campaign: Campaign, **more: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in campaign.study("layers", **more).rows("roofline")]


@pytest.mark.parametrize(
    ("kind", "flop", "moved", "launch", "bound", "least"),
    [
        ("dense", 3e9, 60e6, LAUNCH_S, COMPUTE, 0.030),  # 3 GFLOP at 100 GFLOP/s, 60 MB at 20 GB/s
        ("dense", 25e6, 100e6, LAUNCH_S, MEMORY, 0.005),
        ("dense", 3e4, 3e4, 2 * LAUNCH_S, LAUNCH, 1.5e-6),  # starting it takes 20 us
        ("dense", 3e4, 3e4, 1e-6, MEMORY, 1.5e-6),
        ("lrn", 1e8, 100e6, LAUNCH_S, MEMORY, 0.005),
        ("lrn", 4e9, 100e6, LAUNCH_S, UNRATED, 0.040),
        ("activation", 1e3, 1e4, LAUNCH_S, LAUNCH, 5e-7),
    ],
)
def test_least_times_and_classes_by_hand(
    kind: str, flop: float, moved: float, launch: float, bound: str, least: float
) -> None:
    roof = Roof(FLOPS, BYTES)
    assert roof.least_s(flop, moved) == pytest.approx(least)
    assert roof.class_of(kind, flop, moved, launch) == bound
    assert (roof.rate(1), roof.rate(5), roof.rate(50)) == (BYTES, FLOPS, FLOPS)


def test_the_worked_example_of_the_documentation() -> None:
    study = measured().study("layers")
    conv, norm, _, step = study.rows("roofline")
    assert conv["flops"] == pytest.approx(60e9)
    assert (conv["of_roof"], norm["of_roof"]) == pytest.approx((0.6, 0.625))
    assert (conv["bound"], norm["bound"]) == (COMPUTE, MEMORY)
    # 60 + 15 + 0.0015 ms of 130 ms; the layers come to 124.05 ms.
    assert step["of_roof"] == pytest.approx(75.0015 / 130, rel=1e-3)
    assert step["coverage"] == pytest.approx(124.05 / 130, rel=1e-3)
    assert step["of_roof_low"] < step["of_roof"] < step["of_roof_high"]
    assert study.rows("ceilings")[0]["value"] == pytest.approx(FLOPS)
    # Ceilings without an interval give the step none.
    alone = timed({32: STEPS}).rates("compute", "compute", [FLOPS]).rates("m", "memory", [BYTES])
    assert not rows_of(alone)[-1]["of_roof_low"]
    shown = [[cell.text for cell in row] for row in layer_table(study, 100).rows]
    assert [row[2] for row in shown] == ["step", "conv (2 layers)", "norm (3 layers)", "tiny"]
    assert shown[1][5:] == ["60.0", "50.0", "compute", "60.0", "60.0 %", "–"]


def test_the_interval_joins_those_of_repeats_and_ceilings_in_quadrature() -> None:
    """In logarithms: 0.0497 of the repeats, by Student's t; ln 0.97 and ln 1.04 of the ceiling."""
    both = share_of(np.array([0.49, 0.5, 0.51]), Estimate(1.0, 0.97, 1.04))
    assert (both.low, both.high) == pytest.approx((0.47169, 0.53268), abs=1e-5)


def test_layers_without_products_are_not_held_against_a_product() -> None:
    """A normalisation over channels with 40 FLOP a byte: only its bytes count."""
    lrn = ("norm1", "lrn", 1, 2e9, 2e9, 50e6, 50e6, 0.010, 0.060)
    study = measured([times(0.17 * f, (CONV, lrn)) for f in (0.98, 1.0, 1.02)]).study("layers")
    _, other, step = study.rows("roofline")
    assert (other["bound"], other["least_ms"]) == (UNRATED, pytest.approx(5))  # 100 MB; not 40 ms
    assert step["least_ms"] == pytest.approx(65)
    (finding,) = said(step_against_roof(study))
    assert "the largest gap is in conv, compute bound" in finding.sentence  # of 40 ms, not 55


def test_ceilings_are_the_best_of_a_node_by_type() -> None:
    campaign = Campaign().rates("c0", "compute", [50e9, 52e9]).rates("c1", "compute", [90e9])
    # Two ranks on each of two nodes: half of it is of a node.
    campaign.rates("c2", "compute", [240e9], ranks=4, ranks_per_node=2)
    campaign.rates("c3", "compute", [300e9], dtype="bfloat16")
    campaign.rates("m0", "memory", [900e9]).rates("m1", "memory", [20e9])
    campaign.rows[-2]["source"] = "simulated"
    machine = machine_of(*campaign.done(peaks={"flops": {"float32": 1e12}, "bytes_per_s": 5e10}))
    values = {(one.kind, one.stated, one.dtype): one.value.value for one in machine.ceilings}
    assert values == {
        ("compute", MEASURED, "float32"): 120e9,
        ("compute", MEASURED, "bfloat16"): 300e9,
        ("memory", MEASURED, None): 20e9,
        ("compute", DATASHEET, "float32"): 1e12,
        ("memory", DATASHEET, None): 5e10,
    }
    best = next(one for one in machine.ceilings if one.where == "c2")
    assert (best.repeats, best.value) == (1, Estimate(120e9))


def test_the_type_of_the_model_chooses_its_ceiling_and_ranks_share_it() -> None:
    campaign = measured(precision="mixed_bfloat16")
    assert rows_of(campaign)[-1]["roof"] is None  # no bfloat16 was measured
    campaign.rates("half", "compute", [4 * FLOPS], dtype="bfloat16")
    assert rows_of(campaign)[0]["least_ms"] == pytest.approx(15)
    shared = measured(ranks=2, ranks_per_node=2)
    assert rows_of(shared)[0]["least_ms"] == pytest.approx(120)


def ran_on(campaign: Campaign, experiment: str, tf32: dict[str, Any] | None, gpus: bool) -> None:
    """Say of an experiment's runs what they noted of TF32, and whether their host has GPUs."""
    facts = {"gpus": {"values": [[{"name": "A100"}] if gpus else []]}}
    record = {
        "source": "measured", "resources": {"hosts": {"values": ["n1"]}},
        "environment": {"hardware": {"hosts": ["n1"], "facts": facts}},
        "notes": {"tf32": tf32} if tf32 else {},
    }  # fmt: skip
    for row in campaign.rows:
        if row["run_id"].rpartition("-")[0] == experiment:
            row[FACTS] = as_text(run_facts(record))


def test_tf32_and_float32_are_not_held_against_each_other() -> None:
    """A100 as the course on performance has it: 21 TFLOP/s, 151 in TF32, 1.6 TB/s."""
    on, off = ({"device": "GPU", "supported": True, "in_force": value} for value in (True, False))
    campaign = timed({32: [times()] * 3})
    campaign.rates("fp32", "compute", [21e12] * 3).rates("tf32", "compute", [151e12] * 3)
    campaign.rates("memory", "memory", [1.6e12] * 3)
    ran_on(campaign, "fp32", off, True)
    ran_on(campaign, "tf32", on, True)
    for tf32, least, bound_by in ((on, 151e12, "tf32"), (off, 21e12, "float32")):
        ran_on(campaign, "layers", tf32, True)
        study = campaign.study("layers")
        conv = study.rows("roofline")[0]
        assert conv["least_ms"] == pytest.approx(max(6e9 / least, 120e6 / 1.6e12) * 1e3)
        assert conv["numbers"] == bound_by
        # The course's minimum intensities: 13 and 94.
        ridges = {row["dtype"]: row["ridge"] for row in study.rows("ceilings") if row["dtype"]}
        assert ridges == pytest.approx({"float32": 13, "tf32": 94}, rel=0.02)
    # Runs on GPUs that do not say, or differ, belong to neither.
    for unsure in (None, {**on, "in_force": None}):
        ran_on(campaign, "layers", unsure, True)
        assert rows_of(campaign)[0]["roof"] is None
    ran_on(campaign, "layers", {"device": "CPU", "supported": False, "in_force": False}, False)
    assert rows_of(campaign)[0]["numbers"] == "float32"


def test_without_measured_ceilings_nothing_is_said_of_the_step() -> None:
    layers = timed({32: [times()] * 2})
    study = layers.study("layers")
    rows = study.rows("roofline")
    assert [row["bound"] for row in rows] == [None] * 4
    assert roofline_figures(study) == step_against_roof(study) == []
    peaks = {"flops": {"float32": 2 * FLOPS}, "bytes_per_s": 2 * BYTES}
    study = layers.study("layers", peaks=peaks)
    assert study.rows("roofline")[0]["roof"] == DATASHEET
    assert step_against_roof(study) == [] and len(roofline_figures(study)) == 1


@pytest.mark.parametrize(
    ("steps", "state", "words"),
    [
        (STEPS, "clear", "of what its layers could; the largest gap is in conv, compute bound."),
        ([times(0.1 * f, slower=0.8) for f in (0.7, 1.0, 1.3)], "open", "the step reaches"),
        ([times(0.1, slower=0.8)], "open", "the step reaches"),
        ([times(0.2), times(0.202)], "note", "the layers, timed apart, come to"),
        ([times(0.09), times(0.0909)], "note", "the layers, timed apart, come to"),
        (
            [times(0.06 * factor, slower=0.5) for factor in (0.99, 1.0, 1.01)], "note",
            "faster than the measured ceilings allow",
        ),
    ],
)  # fmt: skip
def test_what_the_step_reaches(steps: list[Any], state: str, words: str) -> None:
    study = measured(steps).study("layers")
    (finding,) = said(step_against_roof(study))
    assert finding.state == state and words in finding.sentence


def test_a_ceiling_that_still_grows_confirms_nothing_of_the_step() -> None:
    study = measured().study("layers")
    study.tables["roofline"]["growing"] = True
    (finding,) = said(step_against_roof(study))
    assert (finding.state, finding.reason) == ("open", "the ceiling still grew at the last size")


def test_the_figure_follows_layers_as_the_local_batch_shrinks() -> None:
    by_batch = {batch: [times(STEP_S * f) for f in (0.99, 1.01)] for batch in (32, 16, 8, 4)}
    study = with_ceilings(timed(by_batch)).study("layers")
    (drawing,) = roofline_figures(study)
    assert drawing.name == "roofline" and "at a local batch of 32" in drawing.title
    assert len(drawing.figure.axes[0].lines[1].get_xdata()) == 4  # a path over the batches
    large, small = said(step_against_roof(study))
    assert large.sentence.startswith("At batch_size 32 the step reaches 5")
    assert small.sentence.startswith("At batch_size 4 the step reaches ")


def test_a_new_ceiling_makes_the_tables_of_layers_again(tmp_path: Path) -> None:
    campaign = measured()
    for expected in (60, 30):
        summary, plan = campaign.done(site="s")
        write_all(summary, plan, tmp_path / "runs", tmp_path / "tables")
        table = pd.read_csv(tmp_path / "tables" / "layers" / "roofline.csv")
        assert table["least_ms"][0] == pytest.approx(expected)
        campaign.rates("better", "compute", [2 * FLOPS])
