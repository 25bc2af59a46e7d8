"""Meshes and transformers: what benchmark.yaml says of a point, and points that cannot be."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.analysis.factors import series_parameters
from scalesweep.analysis.flop_conventions import token_flops
from scalesweep.analysis.memory_model import unknown_of
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.config.mesh import Mesh, load_mesh, mesh_of_texts
from scalesweep.config.point_shape import mesh_of, planned_mesh, planned_shape, shape_of
from scalesweep.config.transformer import Transformer, load_transformer
from scalesweep.core.errors import UserError
from scalesweep.core.status import Status
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import RunState
from scalesweep.tables.layout_runs import layout_from

KNOWN = dict.fromkeys(("ranks", "dp", "tp", "pp", "cp", "ep", "width", "full", "kind"))


@pytest.fixture(scope="module")
def torch() -> Benchmark:
    return load_benchmark("torch_training")


def test_torch_training_has_the_mesh_that_its_program_makes(torch: Benchmark) -> None:
    """As workflow/benchmarks/torch_training/mesh.py, whose ``shape_of`` fills in what is null."""
    for change, sizes in (
        ({}, (8, 1, 1, 1)),
        ({"data_parallel": "none"}, (8, 1, 1, 1)),
        ({"tp": 2, "pp": 2}, (2, 1, 2, 2)),
        ({"data_parallel": "fsdp2"}, (1, 8, 1, 1)),
        ({"data_parallel": "fsdp2", "dp_replicate": 2}, (2, 4, 1, 1)),
        ({"data_parallel": "fsdp2", "dp_shard": 2, "tp": 2}, (2, 2, 2, 1)),
    ):
        point = {**torch.defaults, "ranks": 8, **change}
        mesh = mesh_of(torch, point)
        assert mesh == dict(zip(("dp_replicate", "dp_shard", "tp", "pp"), sizes, strict=True))
        assert math.prod(mesh.values()) == 8
        assert planned_mesh({"mesh": torch.mesh.texts}, point) == mesh  # type: ignore


def test_torch_training_says_the_shape_of_its_transformer_alone(torch: Benchmark) -> None:
    point = {**torch.defaults, "ranks": 8, "model": "transformer", "tied_weights": True}
    shape = shape_of(torch, point)
    assert shape is not None
    # GPT-2's; see the parameter tied_weights.
    assert shape.parameters == 124_439_808
    assert (shape.layers, shape.width, shape.heads, shape.ffn_width) == (12, 768, 12, 3072)
    assert (shape.sequence, shape.vocabulary, shape.tied) == (1024, 50257, True)
    assert (shape.micro_batch, shape.accumulation, shape.global_batch) == (64, 1, 512)
    assert (shape.dtype, shape.recompute) == ("float32", "none")
    untied = shape_of(torch, {**point, "tied_weights": False, "pp": 2, "micro_batches": 4})
    assert untied is not None and untied.parameters == 163_037_184
    assert (untied.micro_batch, untied.accumulation, untied.global_batch) == (16, 4, 256)
    entry: Any = {"transformer": torch.transformer.texts, "benchmark": "b"}  # type: ignore
    assert planned_shape(entry, point) == shape
    assert shape_of(torch, {**point, "model": "resnet50"}) is None
    assert planned_shape({"benchmark": "b"}, point) is None  # type: ignore


def mesh(*axes: Any) -> Mesh:
    return load_mesh(axes, KNOWN, "b.yaml: mesh")


def test_ranks_that_make_no_such_mesh_are_named_with_the_numbers() -> None:
    all_axes = mesh("dp", "tp", "pp", "cp", "ep")
    point: dict[str, Any] = {"ranks": 64, "dp": 4, "tp": 2, "pp": 2, "cp": 4, "ep": 8}
    assert all_axes.fault(point) is None
    assert all_axes.at(point) == {"dp": 4, "tp": 2, "pp": 2, "cp": 4, "ep": 8}
    assert all_axes.rule == "dp x tp x pp x cp must be ranks, and ep divide dp x cp"
    assert (
        all_axes.fault({**point, "tp": 4})
        == "dp x tp x pp x cp = 4 x 4 x 2 x 4 = 128, not the 64 ranks"
    )
    assert all_axes.fault({**point, "ep": 32}) == "ep = 32 does not divide dp x cp = 16"
    # A size that no column states is not known, and nothing is said of the product.
    assert all_axes.fault({**point, "tp": None}) is None
    assert all_axes.at({**point, "tp": None}) is None
    derived = mesh({"role": "dp", "ranks": "ranks / (tp * pp)"}, "tp", "pp")
    assert derived.at({"ranks": 8, "tp": 2, "pp": 1}) == {"dp": 4, "tp": 2, "pp": 1}
    assert mesh_of_texts(derived.texts).at({"ranks": 8, "tp": 2, "pp": 2}) == {
        "dp": 2, "tp": 2, "pp": 2
    }  # fmt: skip
    for tp, number in ((3, "2.66666666666667"), (16, "0.5")):
        fault = f"dp = {number} is not a whole number of 1 or more ranks"
        assert derived.fault({"ranks": 8, "tp": tp, "pp": 1}) == fault


@pytest.mark.parametrize(
    ("axes", "error"),
    [
        (["dp", "dp"], r"b.yaml: mesh\[1\]: dp is there already"),
        (["rows"], r"b.yaml: mesh\[0\]: 'rows' is no role; allowed: dp, dp_replicate"),
        (["dp_shard"], "unknown parameter 'dp_shard'"),
        ([{"role": "dp_shard", "ranks": "dp"}, "dp"], "dp is dp_replicate and dp_shard together"),
        (["tp", "ep"], "ep lies inside the data-parallel axes and cp"),
    ],
)
def test_a_mesh_that_cannot_be_is_refused(axes: list[Any], error: str) -> None:
    with pytest.raises(UserError, match=error):
        mesh(*axes)


def model(**fields: str) -> Transformer:
    needed = {"layers": "12", "width": "width", "sequence": "2048"}
    return load_transformer({**needed, **fields}, KNOWN, "t")


def test_what_a_source_does_not_state_of_a_model_is_not_known() -> None:
    checked = model(recompute="'full' if full else 'none'", heads="width / 64")
    shape = checked.at({"width": 768, "full": None}, "t")
    assert shape is not None and shape.recompute is None and shape.heads == 12
    assert model(sequence="width").at({"width": None, "full": True}, "t") is None
    stated = model(recompute="'none' if full is null else 'full'")
    shape = stated.at({"width": 768, "full": None}, "t")
    assert shape is not None and shape.recompute == "none"


def test_of_a_model_without_width_only_what_needs_none_follows() -> None:
    sized = model(
        parameters="8e9", ffn_width="11008", vocabulary="32000", tied="false", dtype="'bfloat16'",
        learned_positions="false", micro_batch="1",
    )  # fmt: skip
    unknown, known = (sized.at({"width": width, "full": None}, "t") for width in (None, 4096))
    assert unknown is not None and known is not None and unknown.width is None
    assert token_flops(unknown) == {"parameters_only": (48e9, 0.0, 0.0)}
    assert len(token_flops(known)) == 6
    assert (unknown_of(unknown), unknown_of(known)) == ("width", "")
    mesh = {"dp": 2}
    assert layout_from(mesh, replace(unknown, accumulation=1), None, {"ranks": 2}) is None
    assert layout_from(mesh, replace(known, accumulation=1), None, {"ranks": 2}) is not None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"heads": "width / 100"}, "transformer.heads: must be a whole number above 0, not 7.68"),
        ({"parameters": "0 - width"}, "transformer.parameters: must be above 0, not -768"),
        ({"dtype": "'bf16'"}, "transformer.dtype: .*allowed: float32, tf32, bfloat16"),
        ({"recompute": "'all'"}, "transformer.recompute: allowed: none, selective, full, not all"),
        ({"tied": "1"}, "transformer.tied: must be true or false, not 1"),
        ({"float8_share": "1.5"}, "transformer.float8_share: must be 0 to 1, not 1.5"),
        ({"ffn_width": "kind"}, "transformer.ffn_width: must be a number, not big"),
    ],
)
def test_a_model_that_cannot_be_is_refused(fields: dict[str, str], error: str) -> None:
    with pytest.raises(UserError, match=error):
        model(**fields).at({"width": 768, "kind": "big"}, "t")


def test_a_product_of_axes_leaves_out_what_makes_no_mesh(torch: Benchmark, tmp_path: Path) -> None:
    file = tmp_path / "meshes.yaml"
    file.write_text(
        "campaign: meshes\ndescription: meshes\nsite: local\nexperiments:\n  meshes:\n"
        "    benchmark: torch_training\n"
        "    scaling: none\n"
        "    fixed: {model: mlp, data_parallel: fsdp2, layers: 4, width: 64, ranks_per_node: 4}\n"
        "    axes: {ranks: [2, 4], dp_replicate: [1, 2], dp_shard: [1, 2], tp: [1, 2]}\n"
        "    repeats: 1\n"
    )
    (experiment,) = load_campaign(file).experiments
    assert all(mesh_of(torch, point) for point in experiment.points)
    reasons = {reason for _, reason in experiment.excluded}
    assert "torch_training: dp_replicate x dp_shard x tp x pp must be ranks" in reasons
    assert len(experiment.points) == 6 and len(experiment.excluded) == 10


def test_values_that_do_not_go_together_are_named_as_they_are_written() -> None:
    benchmark = load_benchmark("torch_training")
    point = {**benchmark.defaults, "ranks": 4, "model": "mlp", "data_parallel": "none", "tp": 2}
    with pytest.raises(UserError, match="dp_replicate = null, dp_shard = null, pp = 1, tp = 2: "):
        benchmark.check_point(point, "c.yaml")
    shards = {"data_parallel": "fsdp2", "tp": 1, "dp_shard": 8}
    said = "dp_replicate = 0 is not a whole number of 1 or more ranks"
    with pytest.raises(UserError, match=said):
        benchmark.check_point({**point, **shards}, "c.yaml")


def test_a_slip_in_a_model_is_told_when_planned(
    toy: Path, campaign_of: Callable[[str], Campaign]
) -> None:
    file = toy / "benchmarks" / "toy" / "benchmark.yaml"
    plain = file.read_text()
    model = "transformer: {layers: 2, width: size * 8, sequence: size / RANKS}\n"
    grid = "axes: {ranks: [1, 2]}\nfixed: {size: 3}\n"
    file.write_text(plain + model.replace("RANKS", "2"))
    with pytest.raises(
        UserError, match=r"toy: transformer\.sequence: must be a whole .*, not 1\.5"
    ):
        campaign_of(grid)
    file.write_text(plain + model.replace("RANKS", "1"))
    (experiment,) = campaign_of(grid).experiments
    shape = shape_of(experiment.benchmark, experiment.points[0])
    assert shape is not None and (shape.layers, shape.width, shape.sequence) == (2, 24, 3)


def test_layouts_at_the_same_work_are_series_of_their_own(tmp_path: Path) -> None:
    """In strong scaling the parameters of the work tell no series apart; those of the mesh do."""
    content = {
        "campaign": "c", "site": "local", "results": str(tmp_path / "results"),
        "experiments": {"e": {
            "benchmark": "torch_training", "scaling": "strong",
            "axes": {"ranks": [2, 4], "tp": [1, 2], "pp": [1, 2], "micro": [1, 2]},
            "derive": {
                "batch_size": "micro", "accumulation": "8 / (micro * (ranks // (tp * pp)))",
                "micro_batches": "1 if pp > 1 else null",
            },
            "require": ["tp * pp <= ranks", "accumulation >= pp"],
            "fixed": {
                "model": "transformer", "layers": 2, "width": 32, "heads": 2, "sequence": 8,
                "vocabulary": 50, "ranks_per_node": 4,
            },
        }},
    }  # fmt: skip
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    loaded = load_campaign(tmp_path / "c.yaml")
    new = dict.fromkeys(loaded.unique_runs(), RunState(Status.NEW))
    (entry,) = build_plan(loaded, new)["experiments"]
    assert series_parameters(entry) == ["tp", "pp", "micro"]
    assert {"batch_size", "accumulation"} <= {*entry["work"]}
