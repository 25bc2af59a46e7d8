"""What each resource would allow: with the numbers of the course, by hand, and where not known."""

from typing import Any

import pytest

from scalesweep.aspects.limits.findings import binding_resource
from scalesweep.aspects.limits.section import limit_table
from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.provenance import FACTS, facts_text
from tests.fakes.campaigns import Campaign, exchange

# S. Kesselheim, Is my code fast?, Helmholtz AI at JSC, 2021: ResNet-50 on ImageNet, one A100.
PCIE, FP32, TF32 = 32e9, 21e12, 151e12
GRADIENT = 20e9  # FLOP of an image
IMAGE = 224 * 224 * 3  # bytes, uint8
WEIGHTS, BATCH = 25_000_000, 64
MODEL = {"model": "resnet50", "batch_size": BATCH}
IMAGES = "images_per_second"


def campaign(
    rate: float = 700.0,
    *,
    flops: float = FP32,
    probes: str = "copies compute layers",
    ranks: int = 1,
) -> Campaign:
    """Training of so many images/s, and the probes that are named; repeats differ by 1 %."""
    scatter = (0.998, 1.0, 0.999)
    row = {
        "model_parameters_mean_run": float(WEIGHTS),
        "copied_bytes_per_sample_mean_run": float(IMAGE),
        "samples": 6400, "bytes": 6400 * 110_000, "_account": None,
        "_exchange": exchange([4 * WEIGHTS], 128e6, 1.0) if ranks > 1 else None,
    }  # fmt: skip
    runs = [({"ranks": ranks}, {**row, f"{IMAGES}_mean_run": rate * n}) for n in (0.99, 1.0, 1.01)]
    made = Campaign().add(
        "training",
        runs,
        main_metric=IMAGES,
        fixed={"ranks_per_node": 4, "input": "tfrecords", **MODEL},
    )
    named = probes.split()
    if "copies" in named:
        made.rates("up", "copies", [PCIE * n for n in scatter], direction="host_to_device")
        made.rates("down", "copies", [9 * PCIE] * 3, direction="device_to_host")
    if "compute" in named:
        made.rates("compute", "compute", [flops * n for n in scatter])
    if "layers" in named:
        made.layers([("conv", "conv2d", BATCH * GRADIENT, 1e9)], WEIGHTS, **MODEL)
    if "files" in named:
        made.rates(
            "reads", "files", [10e9 * n for n in scatter], pattern="sequential", cache="cold"
        )
    if "network" in named:
        made.network(1e-4, 25e9, ranks=(2, 4), ranks_per_node=4)
    if "loading" in named:
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
    return {row["resource"]: row for row in results.rows("limits")}


def test_the_case_of_the_course() -> None:
    """PCIe allows 200 k images/s, computation 1 k in FP32 and 7 k in TF32."""
    results = study(campaign())
    rows = rows_of(results)
    assert rows["copies"]["allowed"] == pytest.approx(200e3, rel=0.07)  # 212 thousand
    assert rows["compute"]["allowed"] == pytest.approx(1050)
    assert rows["compute"]["allowed_low"] < 1050 <= rows["compute"]["allowed_high"]
    assert [row["resource"] for row in rows.values() if row["binding"]] == ["compute"]
    assert rows["compute"]["share"] == pytest.approx(700 / 1050)
    assert rows["compute"]["share_low"] < 700 / 1050 < rows["compute"]["share_high"]
    assert not any(row["above"] for row in rows.values())
    assert rows["compute"]["where"] == "compute and layers"
    fast = rows_of(study(campaign(3000, flops=TF32)))
    assert fast["compute"]["allowed"] == pytest.approx(7550)
    (finding,) = binding_resource(results)
    assert finding.level == "note"
    assert "2 resources that are measured compute allows least: 1,050" in finding.text
    assert "21.0 TFLOP/s over 20.0 GFLOP a sample; compute and layers" in finding.text
    assert "not known: files, decode and network" in finding.text
    assert "contradiction" not in finding.text
    table = limit_table(results, 10)
    assert table is not None and len(table.rows) == 5


def test_what_is_not_known_has_its_reason_and_no_number() -> None:
    rows = rows_of(study(campaign()))
    for name, reason in (
        ("files", "nothing has measured plain reads of a cold cache on as many nodes (1)"),
        ("decode", "nothing has loaded samples of this size alone, on as many ranks and nodes"),
        ("network", "a single rank exchanges nothing"),
    ):
        assert rows[name]["missing"] == reason
        assert rows[name]["allowed"] is None and not rows[name]["binding"]
    rows = rows_of(study(campaign(probes="compute layers")))
    assert rows["copies"]["missing"].endswith("(copy_bandwidth)")
    rows = rows_of(study(campaign(probes="copies layers")))
    assert (
        rows["compute"]["missing"] == "nothing has measured the ceiling of computation in float32"
    )
    assert rows["copies"]["binding"]
    rows = rows_of(study(campaign(probes="copies compute")))
    assert "at a local batch of 64" in rows["compute"]["missing"]
    assert study(campaign(probes="")).tables.get("limits") is None


def test_files_decoding_and_network_count_on_as_many_ranks() -> None:
    rows = rows_of(study(campaign(probes="copies compute layers files loading")))
    assert rows["files"]["allowed"] == pytest.approx(10e9 / 110_000)
    assert rows["decode"]["allowed"] == pytest.approx(5000)
    rows = rows_of(study(campaign(probes="copies compute layers network loading", ranks=4)))
    # 100 MB on a ring of four: 6 x 0.1 ms and 1.5 x 100 MB at 25 GB/s for 256 images.
    assert rows["network"]["allowed"] == pytest.approx(256 / 6.6e-3, rel=0.05)
    assert rows["network"]["per_sample"] == pytest.approx(4 * WEIGHTS / 256)
    made = campaign(probes="copies compute layers network", ranks=4)
    for row in made.rows:
        row["_exchanged_by"] = "horovod over gloo" if row.get("_sweep") else "torch.distributed"
    limit = rows_of(study(made))["network"]
    assert limit["allowed"] is None
    assert limit["missing"] == (
        "torch.distributed carries its messages, horovod over gloo those of the network's probe"
    )
    assert rows["copies"]["allowed"] == pytest.approx(4 * PCIE / IMAGE)
    assert rows["compute"]["allowed"] == pytest.approx(1050)  # of the node, which they share
    assert rows["decode"]["missing"]  # was loaded on one rank


def test_a_measured_rate_above_an_allowed_one_is_said_to_contradict_it() -> None:
    results = study(campaign(1500))
    rows = rows_of(results)
    assert rows["compute"]["above"] and not rows["copies"]["above"]
    (finding,) = binding_resource(results)
    assert "above what compute allows, which is a contradiction" in finding.text


def test_runs_in_tf32_are_held_against_no_float32() -> None:
    made = campaign(3000)
    noted = {"tf32": {"device": "GPU", "supported": True, "in_force": True}}
    for row in made.rows:
        if row["run_id"].startswith("training"):
            row[FACTS] = facts_text({"source": "measured", "notes": noted}, ["n1"])
    rows = rows_of(study(made))
    assert rows["compute"]["missing"].startswith("step_layers has not counted its model in tf32")
