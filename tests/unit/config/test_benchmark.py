"""Run ids: the same measurement has one id, two measurements never share one."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.benchmark import BENCHMARKS, Benchmark, load_benchmark
from scalesweep.config.benchmark_keys import Divides
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.core.files import digest_of
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


def test_sizes_are_numbers_and_nothing_is_divided_by_0() -> None:
    named = TOY.model_copy(update={"threads": Expression("behaviour", "b.yaml: threads")})
    with pytest.raises(UserError, match=r"^b\.yaml: threads: 'behaviour' is '\w+', which is no"):
        named.threads.number(TOY.defaults)
    size, nothing = Expression("size", ""), Expression("size - size", "")
    pair = Divides.model_construct(divisor=nothing, number=size)
    assert pair.fault(TOY.defaults) == "size - size is 0"


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


def test_defaults_change_only_with_the_version() -> None:
    known = load_yaml(Path(__file__).with_name("fingerprints.yaml"))
    for file in sorted(BENCHMARKS.glob("*/benchmark.yaml")):
        benchmark = load_benchmark(file.parent.name)
        key = f"{benchmark.name} {benchmark.version}"
        added = known["added"].get(key, {})
        assert added.items() <= benchmark.defaults.items(), key
        defaults = {k: v for k, v in benchmark.defaults.items() if k not in added}
        defaults |= known["left"].get(key, {})
        assert known["digests"].get(key) == digest_of(defaults, 8), (
            f"defaults of {key} differ from fingerprints.yaml: raise 'version', or name a "
            "parameter that is new under added"
        )


@pytest.mark.parametrize("name", ["allreduce", "pair_latency", "memory_bandwidth", "file_read"])
def test_probes_state_the_kind_of_their_main_metric(name: str) -> None:
    probe = load_benchmark(name)
    kind = {"allreduce": "intensive", "pair_latency": "latency"}.get(name, "extensive")
    assert probe.main_metric and probe.kinds[probe.main_metric] == kind
