"""What a benchmark says of its memory, the device of a rank, and points that are left out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.analysis.memory_fit import MemoryFit
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.config.memory import (
    GIB,
    PointMemory,
    load_memory,
    planned_point_memory,
    point_memory,
)
from scalesweep.config.memory_limit import memory_on
from scalesweep.config.site import load_site
from scalesweep.core.errors import UserError

KNOWN = dict.fromkeys(("ranks", "tp", "kind"))


@pytest.fixture(scope="module")
def torch() -> Benchmark:
    return load_benchmark("torch_training")


def memory_of(benchmark: Benchmark, **change: Any) -> Any:
    point = {**benchmark.defaults, "ranks": 4, "ranks_per_node": 4, "model": "transformer",
             "optimizer": "adam", **change}  # fmt: skip
    assert benchmark.memory and benchmark.transformer
    return point_memory(benchmark.memory, benchmark.transformer, benchmark.mesh, point, "b")


def test_torch_training_says_what_its_ranks_hold(torch: Benchmark) -> None:
    weights = 4 * 163_037_184
    ddp = memory_of(torch).parts[0]
    # Positions, norms and biases are not counted: 0.6 % of all.
    assert ddp[:3] == pytest.approx([weights, 2 * weights, 2 * weights], rel=0.007)
    views = memory_of(torch, gradient_as_bucket_view=True).parts[0]
    assert views[1] == ddp[1] / 2
    shards = memory_of(torch, data_parallel="fsdp2").parts[0]
    blocks = 2 * 4 * (12 * 768**2 + 2 * 768)
    assert shards[:3] == pytest.approx([ddp[0] / 4 + blocks, ddp[0] / 4, ddp[2] / 4])
    zero2 = memory_of(torch, data_parallel="fsdp2", reshard_after_forward=False).parts[0]
    assert zero2[0] == ddp[0] and zero2[1] == shards[1]
    # tp splits the matrices of the blocks only: a table of tokens and a last layer stay whole.
    split = memory_of(torch, tp=4).parts[0]
    tables = 2 * 4 * 50257 * 768
    assert split[0] - tables == pytest.approx((ddp[0] - tables) / 4)
    assert split[4] == ddp[4]
    half = memory_of(torch, precision="mixed_bfloat16").parts[0]
    assert half[0] == ddp[0] and half[3] == ddp[3] / 2
    stages = memory_of(torch, pp=4, micro_batches=8).parts
    assert list(stages[:, 3] / stages[3, 3]) == [4, 3, 2, 1]
    assert memory_of(torch, model="mlp", heads=12) is None


def test_what_is_not_known_is_said() -> None:
    whole = load_benchmark("torch_training")
    assert whole.transformer and whole.memory
    fields = {k: v for k, v in whole.transformer.fields.items() if k not in ("dtype", "tied")}
    bare = replace(whole, transformer=replace(whole.transformer, fields=fields))
    assert memory_of(bare) == "tied, dtype"
    assert memory_of(replace(whole, mesh=None), data_parallel="fsdp2") == "dp_shard"


def test_the_device_of_a_rank(torch: Benchmark) -> None:
    def gib(**change: Any) -> float | None:
        site = load_site("local").model_copy(update=change)
        memory = memory_on(torch, site, change.get("rank"))
        point = {**torch.defaults, "ranks": 2, "ranks_per_node": 4, "model": "transformer"}
        assert memory and torch.transformer
        judged = point_memory(memory, torch.transformer, torch.mesh, point, "b")
        assert isinstance(judged, PointMemory)
        return None if judged.device is None else judged.device / GIB

    assert gib() is None
    assert gib(memory_gib_per_node=12) == 6
    assert gib(memory_gib_per_node=12, gpus_per_node=4) is None
    assert gib(memory_gib_per_node=12, gpus_per_node=4, memory_gib_per_gpu=79.6) == 79.6
    assert memory_on(torch, load_site("local"), 1.5).texts["device_gib"] == "1.5"  # type: ignore
    assert memory_on(load_benchmark("cnn_training"), load_site("local")) is None


def test_a_plan_says_the_same(torch: Benchmark) -> None:
    point = {**torch.defaults, "ranks": 2, "ranks_per_node": 2, "model": "transformer"}
    assert torch.memory and torch.transformer and torch.mesh
    entry: Any = {
        "benchmark": "torch_training",
        "memory": torch.memory.on("3").texts,
        "transformer": torch.transformer.texts,
        "mesh": torch.mesh.texts,
    }
    planned = planned_point_memory(entry, point)
    assert isinstance(planned, PointMemory) and planned.device == 3 * GIB
    assert (planned.parts == memory_of(torch, ranks=2, optimizer="sgd").parts).all()
    assert planned_point_memory({"benchmark": "b"}, point) is None  # type: ignore
    again = load_memory(torch.memory.declared, torch.parameters, "here")
    assert again.texts == torch.memory.texts


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"zero": 4}, "memory.zero: must be 0 to 3, not 4"),
        ({"schedule": "'gpip'"}, "did you mean gpipe? allowed: 1f1b, gpipe, interleaved, not gpip"),
        ({"split_vocabulary": "1"}, "memory.split_vocabulary: must be true or false, not 1"),
        ({"device_gib": 0}, "memory.device_gib: must be a number above 0, not 0"),
        ({"weight_bytes": "'two'"}, "memory.weight_bytes: must be a number above 0, not two"),
    ],
)
def test_values_that_cannot_be(torch: Benchmark, content: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError) as refused:
        memory_of(replace(torch, memory=load_memory(content, KNOWN, "f: memory")))
    assert why in str(refused.value)


def test_expressions_over_unknown_parameters() -> None:
    with pytest.raises(UserError, match=r"f: memory\.zero: .*stage"):
        load_memory({"zero": "stage"}, KNOWN, "f: memory")


def campaign(folder: Path, **keys: Any) -> Any:
    content = {
        "campaign": "c",
        "site": "local",
        "experiments": {
            "e": {
                "benchmark": "torch_training",
                "fixed": {"model": "transformer", "ranks": 2, "ranks_per_node": 2},
                "axes": {"batch_size": [1, 8, 64]},
                **keys,
            }
        },
    }
    file = folder / "c.yaml"
    file.write_text(yaml.safe_dump(content))
    return load_campaign(file).experiments[0]


def test_points_that_need_too_much_are_left_out_with_the_reason(tmp_path: Path) -> None:
    whole = campaign(tmp_path, memory_gib_per_rank=16)
    assert len(whole.points) == 3 and not whole.excluded
    less = campaign(tmp_path, memory_gib_per_rank=16, skip_if_memory_exceeds=1.2)
    assert [point["batch_size"] for point in less.points] == [1, 8]
    [(point, reason)] = less.excluded
    assert point["batch_size"] == 64
    assert reason == "needs more than 1.2 x the memory of its device, by the memory model"
    needed = [
        MemoryFit().needed(memory_of(whole.benchmark, **{**p, "optimizer": "sgd"}).parts) / GIB
        for p in whole.points
    ]
    assert needed[1] < 1.2 * 16 < needed[2]
    # What stays keeps its ids.
    assert {run.run_id for run in less.runs} < {run.run_id for run in whole.runs}


def test_a_limit_without_a_model_or_a_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="skip_if_memory_exceeds: site local does not say memory_g"):
        campaign(tmp_path, skip_if_memory_exceeds=1.2)
    with pytest.raises(UserError, match="data_loading does not say how much memory a point needs"):
        campaign(
            tmp_path, benchmark="data_loading", skip_if_memory_exceeds=1, fixed={},
            axes={"ranks": [1, 2]},
        )  # fmt: skip


def test_a_point_that_cannot_be_is_refused_for_what_it_is(tmp_path: Path) -> None:
    fixed = {"model": "transformer", "ranks": 2, "ranks_per_node": 2, "tp": 4}
    with pytest.raises(UserError, match=r"ranks = 2 is not a multiple of tp \* pp = 4"):
        campaign(tmp_path, fixed=fixed, memory_gib_per_rank=8, skip_if_memory_exceeds=1.2)
