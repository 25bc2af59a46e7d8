"""Mesh, transformer and memory: what benchmark.yaml says of a point, and points that cannot be."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.analysis.factors import series_parameters
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.config.shapes import Mesh, load_shapes
from scalesweep.config.site import load_site
from scalesweep.core.status import Status
from scalesweep.planning.machine import memory_on
from scalesweep.planning.plan import build_plan
from scalesweep.planning.planned_shapes import (
    GIB,
    PointMemory,
    planned,
    planned_shape,
    point_memory,
)
from scalesweep.state.run_state import RunState

KNOWN = ("ranks", "dp", "tp", "pp", "cp", "ep", "width", "full", "kind")


@pytest.fixture(scope="module")
def torch() -> Benchmark:
    return load_benchmark("torch_training")


def shapes(**content: Any) -> Any:
    return load_shapes(content, KNOWN, Path("b.yaml"))


def memory_of(benchmark: Any, **change: Any) -> Any:
    point = {**load_benchmark("torch_training").defaults, "ranks": 4, "ranks_per_node": 4,
             "model": "transformer", "optimizer": "adam", **change}  # fmt: skip
    return point_memory(benchmark, point, "b")


def test_torch_training_says_the_shape_of_its_transformer_alone(torch: Benchmark) -> None:
    point = {**torch.defaults, "ranks": 8, "model": "transformer", "tied_weights": True}
    assert torch.transformer is not None
    shape = torch.transformer.at(point, "t")
    assert shape is not None
    # GPT-2's; see the parameter tied_weights.
    assert shape.parameters == 124_439_808
    assert (shape.layers, shape.width, shape.heads, shape.ffn_width) == (12, 768, 12, 3072)
    assert (shape.sequence, shape.vocabulary, shape.tied) == (1024, 50257, True)
    assert (shape.micro_batch, shape.accumulation, shape.global_batch) == (64, 1, 512)
    assert (shape.dtype, shape.recompute) == ("float32", "none")
    entry: Any = {"transformer": torch.transformer.texts, "benchmark": "b"}
    assert planned_shape(entry, point) == shape
    assert torch.transformer.at({**point, "model": "resnet50"}, "t") is None
    assert planned_shape({"benchmark": "b"}, point) is None  # type: ignore


def test_ranks_that_make_no_such_mesh_are_named_with_the_numbers() -> None:
    axes: Mesh = shapes(mesh={role: role for role in ("dp", "tp", "pp", "cp", "ep")}).mesh
    point: dict[str, Any] = {"ranks": 64, "dp": 4, "tp": 2, "pp": 2, "cp": 4, "ep": 8}
    assert axes.fault(point) is None
    assert axes.at(point) == {"dp": 4, "tp": 2, "pp": 2, "cp": 4, "ep": 8}
    assert axes.reason == "dp x tp x pp x cp must be ranks"
    fault = axes.fault({**point, "tp": 4})
    assert fault == "dp x tp x pp x cp = 4 x 4 x 2 x 4 = 128, not the 64 ranks"
    # A size that no column states is not known, and nothing is said of the product.
    assert axes.fault({**point, "tp": None}) is None and axes.at({**point, "tp": None}) is None
    derived = shapes(mesh={"dp": "ranks / (tp * pp)", "tp": "tp", "pp": "pp"}).mesh
    assert derived.at({"ranks": 8, "tp": 2, "pp": 1}) == {"dp": 4, "tp": 2, "pp": 1}
    fault = "mesh.dp: 0.5 is not a whole number"
    assert derived.fault({"ranks": 8, "tp": 16, "pp": 1}) == fault


def test_torch_training_says_what_its_ranks_hold(torch: Benchmark) -> None:
    ddp = memory_of(torch).parts[0]
    # Positions, norms and biases are not counted: 0.6 % of all.
    assert ddp[0] == pytest.approx(4 * 163_037_184, rel=0.007)
    blocks = 2 * 4 * (12 * 768**2 + 2 * 768)
    assert memory_of(torch, data_parallel="fsdp2").parts[0][0] == pytest.approx(ddp[0] / 4 + blocks)
    zero2 = memory_of(torch, data_parallel="fsdp2", reshard_after_forward=False)
    assert zero2.parts[0][0] == ddp[0]
    # tp splits the matrices of the blocks only: a table of tokens and a last layer stay whole.
    tables = 2 * 4 * 50257 * 768
    split = memory_of(torch, tp=4).parts[0]
    assert split[0] - tables == pytest.approx((ddp[0] - tables) / 4)
    stages = memory_of(torch, pp=4, micro_batches=8).parts
    assert list(stages[:, 3] / stages[3, 3]) == [4, 3, 2, 1]
    assert memory_of(torch, model="mlp", heads=12) is None
    assert memory_of(torch.model_copy(update={"mesh": None}), data_parallel="fsdp2") == "dp_shard"
    entry: Any = {key: getattr(torch, key).texts for key in ("mesh", "transformer", "memory")}
    assert (memory_of(planned(entry)).parts == memory_of(torch).parts).all()


@pytest.mark.parametrize(
    ("change", "rank", "gib"),
    [
        ({}, None, None),
        ({}, 1.5, 1.5),
        ({"memory_gib_per_node": 12}, None, 6),
        ({"memory_gib_per_node": 12, "gpus_per_node": 4}, None, None),
        ({"gpus_per_node": 4, "memory_gib_per_gpu": 79.6}, None, 79.6),
    ],
)
def test_the_device_of_a_rank(
    torch: Benchmark, change: dict[str, Any], rank: float | None, gib: float | None
) -> None:
    site = load_site("local").model_copy(update=change)
    sized = torch.model_copy(update={"memory": memory_on(torch, site, rank)})
    judged = memory_of(sized, ranks=2)
    assert isinstance(judged, PointMemory)
    assert judged.device == (None if gib is None else gib * GIB)


def test_a_product_of_axes_leaves_out_what_makes_no_mesh(tmp_path: Path) -> None:
    fixed = {"model": "transformer", "data_parallel": "fsdp2", "layers": 4, "heads": 4, "width": 64,
             "ranks_per_node": 4}  # fmt: skip
    axes = {"ranks": [2, 4], "dp_replicate": [1, 2], "dp_shard": [1, 2], "tp": [1, 2]}
    experiment = campaign(tmp_path, fixed=fixed, axes=axes).experiments[0]
    assert all(experiment.benchmark.mesh.at(point) for point in experiment.points)
    reasons = {reason for _, reason in experiment.excluded}
    assert "torch_training: dp_replicate x dp_shard x tp x pp must be ranks" in reasons
    assert len(experiment.points) == 6 and len(experiment.excluded) == 10


def campaign(folder: Path, **keys: Any) -> Any:
    experiment = {
        "benchmark": "torch_training",
        "fixed": {"model": "transformer", "ranks": 2, "ranks_per_node": 2},
        "axes": {"batch_size": [1, 8, 64]},
        **keys,
    }
    content = {"campaign": "c", "site": "local", "experiments": {"e": experiment}}
    (folder / "c.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return load_campaign(folder / "c.yaml", results=str(folder / "results"))


def test_layouts_at_the_same_work_are_series_of_their_own(tmp_path: Path) -> None:
    """In strong scaling the parameters of the work tell no series apart; those of the mesh do."""
    loaded = campaign(
        tmp_path, scaling="strong",
        axes={"ranks": [2, 4], "tp": [1, 2], "pp": [1, 2], "micro": [1, 2]},
        derive={
            "batch_size": "micro", "accumulation": "8 / (micro * (ranks // (tp * pp)))",
            "micro_batches": "1 if pp > 1 else null",
        },
        exclude=["tp * pp > ranks", "accumulation < pp"],
        fixed={
            "model": "transformer", "layers": 2, "width": 32, "heads": 2, "sequence": 8,
            "vocabulary": 50, "ranks_per_node": 4,
        },
    )  # fmt: skip
    new = dict.fromkeys(loaded.unique_runs(), RunState(Status.NEW))
    (entry,) = build_plan(loaded, new)["experiments"]
    assert series_parameters(entry) == ["tp", "pp", "micro"]
    assert {"batch_size", "accumulation"} <= {*entry["work"]}
