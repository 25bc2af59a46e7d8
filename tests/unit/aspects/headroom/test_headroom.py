"""What points take of what probes reach: with the numbers of the course, by hand, of reading."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scalesweep.analysis.table_io import write_parquet
from scalesweep.aspects.headroom.figure import headroom_figures
from scalesweep.aspects.headroom.table import binding_resource, headroom_table
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.plan_format import Plan, write_plan_file
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.machine import known_machine
from tests.fakes.campaigns import Campaign, exchange
from tests.fakes.finding_rows import said

# S. Kesselheim, Is my code fast?, Helmholtz AI at JSC, 2021: ResNet-50 on ImageNet, one A100.
PCIE, FP32, TF32, MEMORY = 32e9, 21e12, 151e12, 1.3e12
GRADIENT = 20e9  # FLOP of an image
IMAGE = 224 * 224 * 3  # bytes, uint8
WEIGHTS, BATCH = 25_000_000, 64
MODEL = {"model": "resnet50", "batch_size": BATCH}
IMAGES = "images_per_second"


def campaign(
    rate: float = 700.0, *, flops: float = FP32, probes: str = "copies compute layers",
    ranks: int = 1,
) -> Campaign:  # fmt: skip
    """Training of so many images/s, and the probes that are named; repeats differ by 1 %."""
    scatter = (0.998, 1.0, 0.999)
    row = {
        "model_parameters_mean_run": float(WEIGHTS),
        "copied_bytes_per_sample_mean_run": float(IMAGE),
        "samples": 6400, "bytes": 6400 * 110_000, "_account": None,
        "_exchange": exchange([4 * WEIGHTS], 128e6) if ranks > 1 else None,
    }  # fmt: skip
    runs = [({"ranks": ranks}, {**row, f"{IMAGES}_mean_run": rate * n}) for n in (0.99, 1.0, 1.01)]
    fixed = {"ranks_per_node": 4, "input": "tfrecords", **MODEL}
    made = Campaign().add("training", runs, main_metric=IMAGES, fixed=fixed)
    if "copies" in probes:
        made.rates("up", "copies", [PCIE * n for n in scatter], direction="host_to_device")
        made.rates("down", "copies", [9 * PCIE] * 3, direction="device_to_host")
    if "compute" in probes:
        made.rates("compute", "compute", [flops * n for n in scatter])
    if "memory" in probes:
        made.rates("memory", "memory", [MEMORY * n for n in scatter])
    if "layers" in probes:
        made.layers([("conv", "conv2d", BATCH * GRADIENT, 1e9)], WEIGHTS, **MODEL)
    if "files" in probes:
        cold = {"pattern": "sequential", "cache": "cold"}
        made.rates("reads", "files", [10e9 * n for n in scatter], **cold)
    if "network" in probes:
        made.network(1e-4, 25e9, ranks=(2, 4), ranks_per_node=4)
    if "loading" in probes:
        times = {"total_throughput_mean_later": 5000.0, "samples": 100, "bytes": 100 * 110_000}
        made.add(
            "loading", [({}, times)] * 3,
            fixed={"ranks": 1, "ranks_per_node": 4, "page_cache": "warm", "step_gflop": 0},
        )  # fmt: skip
    return made


def study(made: Campaign) -> ExperimentResults:
    summary, plan = made.done()
    meanings = summary.attrs["metrics"]["b"]
    meanings[IMAGES] = {"unit": "images/s", "better": "higher", "scope": "total"}
    meanings["copied_bytes_per_sample"] = {"unit": "bytes", "better": "lower", "scope": "rank"}
    return ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["training"])


def rows_of(results: ExperimentResults) -> dict[str, Any]:
    return {row["resource"]: row for row in results.rows("headroom")}


def test_the_case_of_the_course() -> None:
    """PCIe allows 200 k images/s, computation 1 k in FP32 and 7 k in TF32."""
    results = study(campaign(probes="copies compute memory layers"))
    rows = rows_of(results)
    assert rows["copies"]["allowed"] == pytest.approx(200e3, rel=0.07)  # 212 thousand
    assert rows["compute"]["allowed"] == pytest.approx(1050)
    assert [row["resource"] for row in rows.values() if row["binding"]] == ["compute"]
    assert rows["compute"]["share"] == pytest.approx(700 / 1050)
    assert rows["compute"]["rate"] == pytest.approx(700 * GRADIENT)
    assert rows["compute"]["share_low"] < 700 / 1050 < rows["compute"]["share_high"]
    assert rows["compute"]["where"] == "compute and layers"
    assert rows["memory"]["share"] == pytest.approx(700 * 1.3e9 / BATCH / MEMORY)  # with the update
    fast = rows_of(study(campaign(3000, flops=TF32)))
    assert fast["compute"]["allowed"] == pytest.approx(7550)
    (finding,) = said(binding_resource(results))
    assert finding.state == "note"
    assert finding.sentence.startswith("Compute binds at 1 rank: 67 [65, 68] %")
    assert finding.sentence.endswith("; not probed: files, decode and network.")
    assert len(headroom_table(results, 10).rows) == 6
    (drawing,) = headroom_figures(results)
    assert drawing.panels[0].frame["value"].max() == pytest.approx(66.7, abs=0.1)


@pytest.mark.parametrize(
    ("probes", "resource", "reason"),
    [
        ("copies compute layers", "files",
         "nothing has measured plain reads of a cold cache on as many nodes (1)"),
        ("copies compute layers", "decode",
         "nothing has loaded samples of this size alone, on as many ranks and nodes"),
        ("copies compute layers", "network", "a single rank exchanges nothing"),
        ("compute layers", "copies",
         "nothing has measured copies from host to GPU (copy_bandwidth)"),
        ("copies layers", "compute", "nothing has measured the ceiling of computation in float32"),
        ("copies compute", "compute",
         "step_layers has not counted its model in float32 at a local batch of 64"),
    ],
)  # fmt: skip
def test_what_is_not_known_has_its_reason(probes: str, resource: str, reason: str) -> None:
    row = rows_of(study(campaign(probes=probes)))[resource]
    assert row["missing"] == reason and row["share"] is None and not row["binding"]


def test_files_decoding_and_network_count_on_as_many_ranks() -> None:
    rows = rows_of(study(campaign(probes="copies compute layers files loading")))
    assert rows["files"]["allowed"] == pytest.approx(10e9 / 110_000)
    assert rows["decode"]["allowed"] == pytest.approx(5000)
    made = campaign(probes="copies compute layers network loading", ranks=4)
    rows = rows_of(study(made))
    # 100 MB on a ring of four: 6 x 0.1 ms and 1.5 x 100 MB at 25 GB/s for 256 images.
    assert rows["network"]["allowed"] == pytest.approx(256 / 6.6e-3, rel=0.05)
    assert rows["copies"]["allowed"] == pytest.approx(4 * PCIE / IMAGE)
    assert rows["compute"]["allowed"] == pytest.approx(1050)  # of the node, which they share
    assert rows["decode"]["missing"]  # was loaded on one rank
    for row in made.rows:
        row["_exchanged_by"] = '"horovod over gloo"' if row.get("_sweep") else '"torch.distributed"'
    assert rows_of(study(made))["network"]["missing"].startswith("another library carries")


def test_more_than_a_ceiling_is_for_attention() -> None:
    (finding,) = said(binding_resource(study(campaign(1500))))
    assert finding.state == "attention"
    assert "143 [139, 146] % of a ceiling measured too low (compute" in finding.sentence
    assert study(campaign(probes="")).tables.get("headroom") is None


# Reading: an input pipeline on a node, plain reads, and training on dummy input.
PLAIN = {"warm": [4e9, 4.2e9, 4.1e9], "cold": [1e9, 0.99e9, 0.98e9]}
BYTES = 64e6  # of a sample


def reading(
    read: Mapping[int, Sequence[float]],
    used: Mapping[int, Sequence[float]] | None = None,
    fixed: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
) -> tuple[pd.DataFrame, Plan]:
    """Samples/s that are read, and that training consumes, by rank count."""

    def runs(rates: Mapping[Any, Sequence[float]], axis: str, *columns: str, **more: Any) -> Any:
        noted = {"samples": 320, "bytes_read_per_byte_mean_run": 1.0}
        return [
            ({axis: value, **more},
             {**noted, **{c: rate * (BYTES if c.startswith("read") else 1) for c in columns}})
            for value, every in rates.items() for rate in every
        ]  # fmt: skip

    parameters = {"sample_shape": {"workload": True}, "batch_size": {}}
    columns = ("total_throughput_mean_init", "read_rate_mean_init")
    usual = {"ranks_per_node": 1, "batch_size": 4, "sample_shape": [128, 128, 128, 4]}
    made = Campaign()
    if read:
        fixed = {**usual, "drop_page_cache": True, **(fixed or {})}
        every = runs(read, "ranks", *columns)
        made.add("io", every, scaling="weak", parameters=parameters, fixed=fixed)
    if used:
        fixed = {**usual, **(training or {})}
        every = runs(used, "ranks", columns[0], input="dummy")
        made.add("train", every, parameters=parameters, fixed=fixed)
    made.add(
        "files", runs(PLAIN, "cache", "best_mean_run"), main_metric="best", ceiling="files",
        parameters={"cache": {"workload": True}}, fixed={"ranks": 1},
    )  # fmt: skip
    return made.done()


def io_of(summary: pd.DataFrame, plan: Plan) -> ExperimentResults:
    tables = make_tables(summary, plan, machine=known_machine(summary, plan))
    return ExperimentResults(plan["experiments"][0], tables["io"])


def around(rate: float) -> list[float]:
    return [0.99 * rate, rate, 1.01 * rate, rate]


def test_reading_is_held_against_plain_reads_of_the_same_cache_on_as_many_nodes() -> None:
    (row,) = io_of(*reading({1: around(5.0), 2: around(9.0)})).rows("headroom")
    assert (row["ranks"], row["phase"], row["resource"]) == (1, "init", "files")
    assert (row["ceiling"], row["where"]) == (1e9, "files")
    assert row["share"] == pytest.approx(5.0 * BYTES / 1e9)
    # The ceiling's own scatter is in it.
    assert row["share_low"] < 0.3 and row["share_high"] > 0.32
    (warm,) = io_of(*reading({1: around(5.0)}, fixed={"page_cache": "warm"})).rows("headroom")
    assert warm["ceiling"] == 4.2e9


def test_what_training_would_take_of_what_is_read() -> None:
    """Reading keeps up at 16 ranks; from 64 on training would wait, by twice at 64."""
    read = {n: around(rate) for n, rate in {16: 33.0, 64: 119.0, 256: 380.0}.items()}
    used = {n: around(rate) for n, rate in {16: 30.0, 64: 238.0, 256: 950.0}.items()}
    results = io_of(*reading(read, used))
    rows = [row for row in results.rows("headroom") if row["resource"] == "training"]
    assert [row["share"] for row in rows] == pytest.approx([30 / 33, 2, 2.5], rel=1e-3)
    assert all(row["share_low"] < row["share"] < row["share_high"] for row in rows)
    findings = said(binding_resource(results))
    assert [finding.state for finding in findings] == ["attention", "attention", "note"]
    assert findings[0].sentence.startswith("Input-bound at 256 ranks, first epoch: training")
    assert "would take 250 [245, 255] %" in findings[0].sentence
    (drawing,) = headroom_figures(results)
    assert sorted(drawing.panels[0].frame["value"])[::2] == pytest.approx([90.9, 250], rel=1e-3)


def test_other_samples_are_not_compared() -> None:
    small = {"sample_shape": [64, 64, 64, 4]}
    rows = rows_of(io_of(*reading({1: around(5.0)}, {1: around(9.0)}, training=small)))
    assert rows["training"]["missing"] == "samples differ in sample_shape"
    assert rows["files"]["binding"]


def test_training_of_another_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    others, plan = reading({}, {1: around(9.0)})
    write_plan_file(tmp_path / "plan.json", plan)
    write_parquet(others, tmp_path / "summary.parquet", {})
    summary, own = reading({1: around(5.0)})
    own["consumer"] = str(tmp_path)
    assert rows_of(io_of(summary, own))["training"]["where"] == f"train of {tmp_path}"
    write_plan_file(tmp_path / "plan.json", {**plan, "site": "elsewhere"})
    assert "training" not in rows_of(io_of(summary, own))
    assert "consumer: " in caplog.text and "nothing is held against it" in caplog.text
