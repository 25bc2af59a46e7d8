"""Reading samples, by data_loading and input_pipeline: each exactly once, whoever reads it."""

import numpy as np
import pytest

from cosmoflow_data import dataset
from cosmoflow_data.files import files_in_data_set, files_of_rank
from input_pipeline import python_samples
from tests.benchmarks.programs import Later, Program, read

SHAPE = [32, 32, 32, 4]
SMALL = {
    "sample_shape": SHAPE, "samples_per_rank": 16, "validation_samples_per_rank": 4, "epochs": 3,
}  # fmt: skip
LOADING = Program("data_loading", SMALL)
IN_FILES = {"samples_per_file": 4, "batch_size": 2, "shuffle_samples": 5}
PIPELINE = Program("input_pipeline", SMALL | IN_FILES)
pipelines = Later("input_pipeline.pipelines")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set of input_pipeline for two ranks."""
    return PIPELINE.staged(tmp_path_factory, {"train": 8, "valid": 0})


def sums(per_file, **files):
    """Sums over log(x + 1) and y of all samples of so many files of splits, from the generator."""
    fmt = dataset.Format(tuple(SHAPE), per_file)
    indexed = [(split, index) for split, count in files.items() for index in range(count)]
    samples = [each for place in indexed for each in dataset.samples(fmt, *place)]
    return (
        sum(np.log1p(x.astype(float)).sum() for x, _ in samples),
        sum(y.astype(float).sum() for _, y in samples),
    )


@pytest.mark.slow
def test_one_rank_loads(tmp_path, tmp_path_factory):
    data = LOADING.staged(tmp_path_factory, {"train": 16, "valid": 4})
    done, out = LOADING.start(tmp_path, data, drop_page_cache=True)
    assert done.stderr == ""
    native, samples = read(done, out)
    assert set(native["phases"]) == {
        *("import", "init", "data_staging", "warmup", "timed", "teardown")
    }
    size = sum(path.stat().st_size for path in data.glob("*/part-*"))
    assert native["work"] == {"samples_per_epoch": 20, "bytes_per_epoch": size}
    assert {array.shape for array in samples.values()} == {(3, 1)}
    assert (samples["global_times"] >= samples["local_times"]).all()
    assert native["phases"]["timed"] >= samples["global_times"].sum()
    sum_x, sum_y = sums(1, train=16, valid=4)
    assert native["notes"]["touched"]["sum_x"] == pytest.approx(sum_x, rel=1e-5)
    assert native["notes"]["touched"]["sum_y"] == pytest.approx(sum_y, abs=1e-5)
    # Each epoch read its own files, all of them and no others, while it was timed.
    assert native["notes"]["timed_bytes_over_file_bytes"] == pytest.approx([1] * 3, rel=0.01)
    cache = native["notes"]["page_cache"]
    assert cache["dropped"]
    if cache["verified"]:
        assert cache["worked"] == (cache["resident_after_max"] <= 0.01)


@pytest.mark.parametrize("shuffle", ["off", "after_shard"])
def test_ranks_share_all_files_and_none_twice(shuffle):
    params = LOADING.defaults | SMALL | {"ranks": 4, "shuffle": shuffle}
    first, second = (
        [files_of_rank(params, "", rank, epoch)["train"] for rank in range(4)] for epoch in (0, 1)
    )
    assert sorted(np.concatenate(first)) == [f"train/part-{n:06d}.tfrecord" for n in range(64)]
    assert [len(block) for block in first] == [16] * 4
    assert (first == second) == (shuffle == "off")
    assert [sorted(block) for block in first] == [sorted(block) for block in second]


@pytest.mark.parametrize(
    ("name", "more"),
    [("data_loading", {}), ("data_loading", {"shard": False}), ("cosmoflow_training", {})],
)
def test_declared_files_are_those_the_program_reads(name, more):
    program = Program(name, {})
    params = program.defaults | SMALL | more | {"ranks": 3, "samples_per_file": 2}
    declared = {
        split: eval(expression, {"__builtins__": {}}, params)
        for split, expression in program.declared["data"]["files"].items()
    }
    assert declared == files_in_data_set(params)


@pytest.mark.parametrize("shape", [SHAPE, [1, 1, 1, 1], [128, 128, 128, 4]])
def test_declared_bytes_per_file_are_an_upper_bound(shape):
    params = LOADING.defaults | {"sample_shape": shape, "samples_per_file": 3}
    declared = eval(LOADING.declared["data"]["bytes_per_file"], {"__builtins__": {}}, params)
    exact = dataset.Format(tuple(shape), 3).file_bytes
    assert exact <= declared <= exact + 3 * 128


@pytest.mark.slow
@pytest.mark.parametrize("name", ["serial", "prefetch", "parallel_map", "combined"])
def test_tf_data_adds_nothing_to_a_pipeline(name):
    params = PIPELINE.defaults | PIPELINE.small | {"pipeline": name}
    options = pipelines.make(["a"], params, 0).options()
    optimization = options.experimental_optimization
    assert optimization.apply_default_optimizations is False
    assert optimization.inject_prefetch is optimization.map_parallelization is False
    assert options.autotune.enabled is False


@pytest.mark.slow
@pytest.mark.measured
def test_ranks_take_each_sample_once(tmp_path, data):
    changes = {"pipeline": "combined", "shard": "after_reading", "step_gflop": 0.6}
    run = PIPELINE.start(tmp_path, data, ranks=2, ranks_per_node=2, **changes)
    native, samples = read(*run)
    size = sum(path.stat().st_size for path in data.glob("train/*"))
    assert native["work"] == {"samples_per_epoch": 32, "bytes_per_epoch": size}
    assert native["notes"]["touched"]["sum_y"] == pytest.approx([sums(4, train=8)[1]] * 3, abs=1e-5)
    assert native["metrics"]["bytes_read_per_byte"]["value"] == pytest.approx(2, rel=0.02)
    assert samples["local_times"].shape == (3, 2)
    assert (samples["span_input"] > 0).all() and (samples["span_compute"] > 0).all()
    rest = samples["local_times"] - samples["span_input"] - samples["span_compute"]
    assert (rest > -1e-6).all()
    assert np.median(rest / samples["local_times"]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["generator", "processes"])
def test_python_makes_the_same_samples(tmp_path, data, pipeline):
    native, samples = read(*PIPELINE.start(tmp_path, data, pipeline=pipeline, epochs=2))
    assert native["notes"]["touched"]["sum_y"] == pytest.approx([sums(4, train=4)[1]] * 2, abs=1e-5)
    assert (samples["span_input"] > 0).all()
    # What its workers read is not counted by this process.
    assert ("bytes_read_per_byte" in native["metrics"]) == (pipeline != "processes")


def test_a_record_is_parsed_and_mapped_without_tensorflow(tmp_path, data):
    """What records hold is tested with their staging; a file that ends early is no sample."""
    path = data / "train" / "part-000000.tfrecord"
    records = list(python_samples.records(str(path)))
    assert len(records) == 4
    x, y = python_samples.mapped(records[1], SHAPE, 2)
    assert x.dtype == np.float32 and x.shape == tuple(SHAPE)
    assert abs(x.mean()) < 1e-4 and x.std() == pytest.approx(1, abs=1e-3)
    task = python_samples.Task(str(path), 1, tuple(SHAPE), 2, "none")
    again, same = python_samples.make_sample(task)
    assert (again == x).all() and (same == y).all()
    cut = tmp_path / "cut.tfrecord"
    cut.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"cut\.tfrecord ends within a record"):
        list(python_samples.records(str(cut)))
