"""The input pipelines: each does what its name says, and ranks take each sample exactly once."""

import numpy as np
import pytest

from cosmoflow_data import dataset
from input_pipeline import python_samples
from tests.benchmarks.programs import Later, Program, read

SHAPE = [32, 32, 32, 4]
SMALL = {
    "sample_shape": SHAPE,
    "samples_per_file": 4,
    "samples_per_rank": 16,
    "epochs": 3,
    "batch_size": 2,
    "shuffle_samples": 5,
}
PROGRAM = Program("input_pipeline", SMALL)
pipelines = Later("input_pipeline.pipelines")
start = PROGRAM.start


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set for two ranks of SMALL."""
    return PROGRAM.staged(tmp_path_factory, {"train": 8, "valid": 0})


def sum_y(ranks):
    """The sum over y of all samples of `ranks` ranks, from the generator."""
    fmt = dataset.Format(tuple(SHAPE), samples_per_file=4)
    samples = (dataset.samples(fmt, "train", index) for index in range(4 * ranks))
    return sum(y.astype(float).sum() for of_file in samples for _, y in of_file)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["serial", "prefetch", "parallel_map", "combined"])
def test_tf_data_adds_nothing_to_a_pipeline(name):
    options = pipelines.make(["a"], PROGRAM.defaults | SMALL | {"pipeline": name}, 0).options()
    assert options.experimental_optimization.apply_default_optimizations is False
    assert options.experimental_optimization.inject_prefetch is False
    assert options.experimental_optimization.map_parallelization is False
    assert options.autotune.enabled is False


@pytest.mark.slow
@pytest.mark.measured
def test_ranks_take_each_sample_once(tmp_path, data):
    changes = {"pipeline": "combined", "shard": "after_reading", "step_gflop": 0.6}
    done, out = start(tmp_path, data, ranks=2, ranks_per_node=2, **changes)
    native, samples = read(done, out)
    assert native["work"] == {
        "samples_per_epoch": 32,
        "bytes_per_epoch": 32 * dataset.Format(tuple(SHAPE)).file_bytes,
    }
    assert native["notes"]["touched"]["sum_y"] == pytest.approx([sum_y(2)] * 3, abs=1e-5)
    assert native["metrics"]["bytes_read_per_byte"]["value"] == pytest.approx(2, rel=0.02)
    assert samples["local_times"].shape == (3, 2)
    assert (samples["span_input"] > 0).all() and (samples["span_compute"] > 0).all()
    rest = samples["local_times"] - samples["span_input"] - samples["span_compute"]
    assert (rest > -1e-6).all()
    assert np.median(rest / samples["local_times"]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["generator", "processes"])
def test_python_makes_the_same_samples(tmp_path, data, pipeline):
    done, out = start(tmp_path, data, pipeline=pipeline, epochs=2)
    native, samples = read(done, out)
    assert native["notes"]["touched"]["sum_y"] == pytest.approx([sum_y(1)] * 2, abs=1e-5)
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
