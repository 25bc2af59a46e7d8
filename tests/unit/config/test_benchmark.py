"""Run ids: the same measurement has one id, two measurements never share one."""

from typing import Any

import pytest

from scalesweep.config.benchmark import BENCHMARKS, Benchmark, load_benchmark
from scalesweep.core.errors import UserError
from tests.conftest import ROOT

TOY = load_benchmark("toy", folder=ROOT / "tests" / "toy")


def resolved(benchmark: Benchmark, given_point: dict[str, Any]) -> dict[str, Any]:
    normal = {k: benchmark.parameters[k].normalise(v, "test") for k, v in given_point.items()}
    return {**benchmark.defaults, **normal}


def test_shipped_benchmarks_say_which_losses_are_compared() -> None:
    found = {
        path.parent.name: load_benchmark(path.parent.name)
        for path in BENCHMARKS.glob("*/benchmark.yaml")
    }
    assert found["cnn_training"].compare == {
        "final_loss": "never",
        **dict.fromkeys(("final_validation_loss", "final_validation_accuracy"), "same_training"),
    }
    assert found["cnn_training"].metrics["final_loss"].startswith("cross-entropy of the last timed")
    for name in ("cosmoflow_training", "nt3"):
        assert set(found[name].compare.values()) == {"same_training"}
    # Of every metric that may be a loss the file says how it is compared.
    for benchmark in found.values():
        for metric in benchmark.metrics:
            learned = {"loss", "mae", "accuracy"} & set(metric.split("_"))
            assert (metric in benchmark.compare) == bool(learned), (benchmark.name, metric)


@pytest.mark.parametrize(
    ("point", "other", "same"),
    [
        ({"ranks": 2, "size": 3}, {"size": 3, "ranks": 2}, True),
        ({"ranks": 4, "rate": 2}, {"ranks": 4.0, "rate": 2.0}, True),
        ({"threads": None}, {}, True),
        ({"ranks": 4}, {"ranks": 5}, False),
        ({"size": 4}, {"rate": 4}, False),
    ],
)
def test_equal_points_have_one_id_and_others_never(
    point: dict[str, Any], other: dict[str, Any], same: bool
) -> None:
    ids = [TOY.run_id(resolved(TOY, it), 0) for it in (point, other)]
    assert (ids[0] == ids[1]) == same
    assert len({TOY.run_id(resolved(TOY, point), repeat) for repeat in range(3)}) == 3


def test_a_new_parameter_at_its_default_changes_no_id() -> None:
    larger = TOY.with_variables(["NEW"])
    for point in ({}, {"ranks": 4}):
        whole = resolved(larger, point)
        assert larger.run_id(whole, 1) == TOY.run_id(resolved(TOY, point), 1)
        assert larger.run_id({**whole, "env.NEW": "x"}, 1) != larger.run_id(whole, 1)


def test_ids_name_benchmark_version_and_ranks() -> None:
    point = resolved(TOY, {"ranks": 64})
    run_id = TOY.run_id(point, 0)
    assert run_id.startswith("toy-r64-") and len(run_id.rsplit("-", 1)[1]) == 12
    newer = TOY.model_copy(update={"version": 2})
    newer.__dict__.pop("_head")
    assert newer.run_id(point, 0) != run_id


# A changed default changes what a benchmark measures: whoever changes one raises the version in
# benchmark.yaml and adds a line here. Lines are never edited.
FINGERPRINTS: dict[tuple[str, int], str] = {
    ("data_loading", 1): "b4192e5066d17d62",
    ("tf_cnn_benchmarks", 1): "c0e7c99c865a9d0d",
    ("keras_multi_gpu", 1): "504b9a3435706f6c",
    ("cnn_training", 1): "6cae8068c54eabca",
    ("cosmoflow_training", 1): "ef0e8ca07546f079",
    ("nt3", 1): "73018de6b9e0c683",
    ("step_layers", 1): "02d4e768a3b0a6e3",
    ("compute_peak", 1): "7abfc5c63ae6ed45",
    ("memory_bandwidth", 1): "d5df9c74287e74be",
    ("allreduce", 1): "a6cb409c625874c0",
    ("file_read", 1): "2babab5374b16486",
    ("copy_bandwidth", 1): "6000556684f84f09",
    ("pair_latency", 1): "0be4529f5b1d73e4",
    ("input_pipeline", 1): "5b83dfbd3bbacd0c",
    ("torch_training", 1): "24145c6e55506c2c",
    ("torch_peak", 1): "263b346fe3ad1249",
}


# Parameters that came later, whose defaults are what was done before them: they change no id.
ADDED: dict[tuple[str, int], dict[str, Any]] = {
    ("allreduce", 1): {"launch_options": None},
    ("cnn_training", 1): {"tf32": None},
    ("memory_bandwidth", 1): {"device": "auto"},
    ("step_layers", 1): {"tf32": None, "sequence_steps": 35},
    ("compute_peak", 1): {
        "tf32": None, "images": 8, "height": 28, "width": 28, "kernel": 3, "channels_in": None,
    },
}  # fmt: skip


def test_defaults_change_only_with_the_version() -> None:
    for file in sorted(BENCHMARKS.glob("*/benchmark.yaml")):
        benchmark = load_benchmark(file.parent.name)
        key = (benchmark.name, benchmark.version)
        added = ADDED.get(key, {})
        assert added == {name: benchmark.defaults[name] for name in added}, key
        for name in added:
            del benchmark.defaults[name]
        assert FINGERPRINTS.get(key) == benchmark.fingerprint(), (
            f"defaults of {key} differ from the committed fingerprint: raise 'version', or name a "
            "parameter that is new in ADDED"
        )


def test_epochs_of_cnn_training() -> None:
    benchmark = load_benchmark("cnn_training")
    epochs = {"epochs": 3, "input": "tfrecords", "data_set": "cifar10", "model": "resnet20"}

    def point(**changes: Any) -> dict[str, Any]:
        return {**benchmark.defaults, **epochs, "variable_update": "replicated", **changes}

    benchmark.check_point(point(devices_per_rank=2), "e")
    assert benchmark.total_work(point()) == 3 * 2048
    # What is validated on lies in the files behind those that are trained on.
    assert benchmark.data is not None
    assert benchmark.data.needed(point()) == {"train": 12}
    assert benchmark.data.needed(point(epochs=None)) == {"train": 8}
    for changes, wrong in (
        ({"input": "synthetic"}, "there is nothing to learn in synthetic images"),
        ({"epochs": None, "target_accuracy": 0.5}, "target_accuracy is that of validation"),
        ({"ranks": 2, "variable_update": "parameter_server"}, "raise devices_per_rank instead"),
        ({"batch_size": 96}, "data_images = 2048 is not a multiple of"),
        ({"validation_images": 1000}, "validation_images = 1000 is not a multiple of"),
    ):
        with pytest.raises(UserError, match=wrong):
            benchmark.check_point(point(**changes), "e")


def test_layouts_of_torch_training() -> None:
    benchmark = load_benchmark("torch_training")
    small = {"ranks": 8, "model": "transformer", "layers": 8}

    def point(**changes: Any) -> dict[str, Any]:
        return {**benchmark.defaults, **small, **changes}

    samples = benchmark.defaults["batch_size"] * benchmark.defaults["batches"]
    for changes, data_ranks in (
        ({}, 8),
        ({"data_parallel": "none"}, 8),
        ({"dp_replicate": 8}, 8),
        ({"dp_replicate": 2, "tp": 4}, 2),
        ({"data_parallel": "fsdp2"}, 8),
        ({"data_parallel": "fsdp2", "dp_replicate": 2}, 8),
        ({"data_parallel": "fsdp2", "dp_shard": 2, "tp": 2}, 4),
        ({"data_parallel": "fsdp2", "dp_replicate": 2, "dp_shard": 2, "pp": 2}, 4),
        ({"pp": 2, "tp": 2, "pp_schedule": "gpipe", "micro_batches": 1}, 2),
        ({"pp": 2, "pp_schedule": "interleaved", "virtual_stages": 4, "micro_batches": 4}, 4),
        ({"pp": 4, "micro_batches": 2, "accumulation": 2}, 2),
        ({"model": "mlp", "tp": 8}, 1),
        ({"tp": 2, "tied_weights": True, "static_graph": True}, 4),
    ):
        benchmark.check_point(point(**changes), "e")
        assert benchmark.total_work(point(**changes)) == data_ranks * samples * changes.get(
            "accumulation", 1
        )
    product = "dp_replicate x dp_shard x tp x pp must be ranks"
    cut = "the residual networks are not cut"
    for changes, wrong in (
        ({"dp_replicate": 4}, product),
        ({"dp_replicate": 8, "tp": 2}, product),
        ({"data_parallel": "fsdp2", "dp_replicate": 3}, product),
        ({"data_parallel": "fsdp2", "dp_replicate": 2, "dp_shard": 2}, product),
        ({"data_parallel": "fsdp2", "dp_shard": 16}, product),
        ({"dp_shard": 8}, "ddp does not shard"),
        ({"data_parallel": "none", "tp": 2}, "ranks share nothing"),
        ({"tp": 3}, "ranks = 8 is not a multiple of tp [*] pp = 3; nearest valid: 6 or 9"),
        ({"ranks": 16, "tp": 8}, "heads = 12 is not a multiple of tp = 8"),
        ({"layers": 6, "pp": 4}, "layers = 6 is not a multiple of .* = 4; nearest valid: 4 or 8"),
        ({"pp": 2, "virtual_stages": 3, "pp_schedule": "interleaved"}, "layers = 8 is not"),
        ({"model": "mlp", "layers": 7, "tp": 2}, "of pp [*] virtual_stages [*] 2 = 2"),
        ({"pp": 2, "micro_batches": 3}, "batch_size = 64 is not a multiple of micro_batches = 3"),
        ({"pp": 4, "micro_batches": 2}, "1f1b needs a micro-batch for each stage"),
        ({"pp": 2, "virtual_stages": 2}, "the other schedules 1"),
        ({"pp": 2, "pp_schedule": "interleaved"}, "interleaved has 2 virtual_stages"),
        (
            {
                "pp": 4, "pp_schedule": "interleaved", "virtual_stages": 2, "micro_batches": 11,
                "batch_size": 11,
            },
            "is not a multiple of micro_batches [*] accumulation // pp",
        ),
        ({"micro_batches": 2}, "pp must be more than 1"),
        ({"model": "resnet50", "layers": 12, "tp": 2}, cut),
        ({"model": "resnet20", "layers": 12, "pp": 2}, cut),
        (
            {
                "model": "resnet20", "layers": 12, "data_parallel": "fsdp2",
                "precision": "mixed_bfloat16",
            },
            "batch normalisation takes no bfloat16 weights",
        ),
        ({"reshard_after_forward": False}, "reshard_after_forward is fsdp2's"),
        ({"data_parallel": "fsdp2", "bucket_cap_mb": 1}, "these are ddp's"),
        ({"static_graph": True, "accumulation": 2}, "takes every backward pass for the last"),
        ({"static_graph": True, "pp": 2}, "takes every backward pass for the last"),
        ({"tied_weights": True, "pp": 2}, "the first and the last layer are on different ranks"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=wrong):
            benchmark.check_point(point(**changes), "e")
