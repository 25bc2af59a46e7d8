"""The data-loading benchmark as the launcher starts it: one process per rank, ``--run FILE``."""

import numpy as np
import pytest

from cosmoflow_data import dataset
from cosmoflow_data.files import files_in_data_set, files_of_rank
from tests.benchmarks.programs import Program, read

SHAPE = [32, 32, 32, 4]
SMALL = {
    "sample_shape": SHAPE,
    "samples_per_rank": 16,
    "validation_samples_per_rank": 4,
    "epochs": 3,
}
PROGRAM = Program("data_loading", SMALL)
DECLARED, DEFAULTS = PROGRAM.declared, PROGRAM.defaults
start = PROGRAM.start


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set for two ranks of SMALL."""
    return PROGRAM.staged(tmp_path_factory, {"train": 32, "valid": 8})


def sums(ranks):
    """Sums over log(x + 1) and y of all samples of `ranks` ranks, from the generator."""
    fmt = dataset.Format(tuple(SHAPE))
    sum_x = sum_y = 0.0
    for split, count in (("train", 16 * ranks), ("valid", 4 * ranks)):
        for index in range(count):
            for x, y in dataset.samples(fmt, split, index):
                sum_x += np.log1p(x.astype(float)).sum()
                sum_y += y.astype(float).sum()
    return sum_x, sum_y


@pytest.mark.slow
def test_one_rank(tmp_path, data):
    done, out = start(tmp_path, data, drop_page_cache=True)
    assert done.stderr == ""
    native, samples = read(done, out)
    assert set(native["phases"]) == {
        *("import", "init", "data_staging", "warmup", "timed", "teardown")
    }
    assert native["work"] == {
        "samples_per_epoch": 20,
        "bytes_per_epoch": 20 * dataset.Format(tuple(SHAPE)).file_bytes,
    }
    assert {array.shape for array in samples.values()} == {(3, 1)}
    assert (samples["global_times"] >= samples["local_times"]).all()
    np.testing.assert_array_equal(
        samples["span_wait"], samples["global_times"] - samples["local_times"]
    )
    assert native["phases"]["timed"] >= samples["global_times"].sum()
    sum_x, sum_y = sums(1)
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
    params = DEFAULTS | SMALL | {"ranks": 4, "shuffle": shuffle}
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
    params = DEFAULTS | {"sample_shape": shape, "samples_per_file": 3}
    declared = eval(DECLARED["data"]["bytes_per_file"], {"__builtins__": {}}, params)
    exact = dataset.Format(tuple(shape), 3).file_bytes
    assert exact <= declared <= exact + 3 * 128
