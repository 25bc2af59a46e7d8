"""Where the time of a PyTorch step goes: faults planted in the program come out where they are."""

import json
import subprocess

import numpy as np
import pytest

from tests.benchmarks.programs import helper
from tests.benchmarks.torch_programs import DEFAULTS
from tests.fakes.torch_python import TORCH, needs_torch

pytestmark = [pytest.mark.slow, needs_torch]

ATTEMPTS = 3  # other tests on the same cores may add to one of the cases
NEAR = 0.06  # of what is planted
COARSE = ("span_input", "span_compute", "span_communication")
COMPUTE = ("span_forward", "span_backward", "span_optimizer")
REST = "rest"  # of the step, which nothing names
# Layout and case -> the array that has the delay of rank 1, and that in which rank 0 waits for it.
LATE = {
    "ddp-straggler": ("span_forward", "span_data_parallel"),
    "accumulated-backward": ("span_backward", "span_data_parallel"),
    "fsdp2-straggler": ("span_forward", "span_data_parallel"),
    "fsdp2-copy": ("span_forward", "span_data_parallel"),
    "tensors-straggler": ("span_forward", "span_tensor_parallel"),
    "pipeline-straggler": ("span_forward", "span_pipeline_wait"),
    "pipeline-backward": ("span_backward", "span_pipeline_wait"),
    "compiled_ddp-straggler": ("span_forward", "span_data_parallel"),
    "compiled_tensors-straggler": ("span_forward", "span_tensor_parallel"),
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """``measured(n)``: the folder of the n-th measurement of all cases."""
    folders = {}

    def measure(number):
        if number not in folders:
            folder = folders[number] = tmp_path_factory.mktemp("planted")
            words = [str(TORCH), *helper("torch_planted.py", folder)[1:]]
            ranks = [
                subprocess.Popen([*words, str(rank), "2", json.dumps(DEFAULTS)])
                for rank in range(2)
            ]
            try:
                assert [rank.wait(300) for rank in ranks] == [0, 0]
            finally:
                for rank in ranks:
                    rank.kill()
        return folders[number]

    return measure


def arrays_of(folder, name):
    with np.load(folder / f"{name}.npz") as archive:
        arrays = dict(archive)
    return arrays | {REST: arrays["step_times"] - sum(arrays[name] for name in COARSE)}


def near(seconds, planted):
    """Whether a step has so many seconds as were slept, in the step that other work disturbs
    least."""
    return float(np.min(np.abs(seconds / planted - 1))) <= NEAR


def check_late(folder, name):
    own, waits = LATE[name]
    arrays = arrays_of(folder, name)
    planted = arrays["planted"][:, 1]
    assert planted.min() > 0.07 and not arrays["planted"][:, 0].any()
    # Each without what the other rank has of it, which is late for nobody and waits for nobody.
    assert near(arrays[own][:, 1] - arrays[own][:, 0], planted), own
    assert near(arrays[waits][:, 0] - arrays[waits][:, 1], planted), waits
    # What is elsewhere is there in every step; other work on the same cores is not.
    for other in (*COARSE[:1], *COMPUTE, REST):
        if other != own:
            assert np.min(arrays[other][:, 1]) < planted.mean() / 2, other
        assert np.min(arrays[other][:, 0]) < planted.mean() / 2, other
    assert np.min(arrays[waits][:, 1]) < planted.mean() / 2


def check_common(folder, name, where):
    """What all ranks have: as much of it as was slept, and nothing like it elsewhere."""
    arrays, plain = arrays_of(folder, name), arrays_of(folder, "ddp-none")
    planted = arrays["planted"].max(axis=1)
    assert planted.min() > 0.07
    for rank in range(2):
        assert near(arrays[where][:, rank] - plain[where][:, rank].min(), planted)
        for other in COARSE:
            if other != where:
                assert np.min(arrays[other][:, rank]) < planted.mean() / 2, other


CHECKS = {
    **dict.fromkeys(LATE, (check_late,)),
    "ddp-reader": (check_common, "span_input"),
    "ddp-network": (check_common, "span_communication"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_planted_faults_are_in_the_array_that_names_them(measured, name):
    check, *more = CHECKS[name]
    for number in range(ATTEMPTS):
        try:
            check(measured(number), name, *more)
        except AssertionError:
            if number == ATTEMPTS - 1:
                raise
        else:
            return


def test_parts_add_up_to_their_step_on_every_rank(measured):
    paths = sorted(measured(0).glob("*.npz"))
    assert len(paths) == len(CHECKS) + 1  # and one without a fault
    planted = arrays_of(measured(0), "ddp-straggler")["planted"].max()
    for path in paths:
        arrays = arrays_of(path.parent, path.stem)
        waits = [name for name in arrays if name.endswith(("_parallel", "_wait"))]
        assert len(waits) == 1, path.stem
        for whole, parts in (("span_compute", COMPUTE), ("span_communication", waits)):
            np.testing.assert_allclose(arrays[whole], sum(arrays[name] for name in parts))
        assert (arrays[REST] >= -1e-9).all() and (arrays["span_between"] >= 0).all()
        assert arrays[REST].min() < planted / 4, path.stem


def test_a_gpu_is_timed_by_its_stream_and_its_host_waits_for_nothing(measured):
    """Work of known length on a made up stream that is behind the host."""
    gpu = json.loads((measured(0) / "gpu.json").read_text())
    assert gpu["method"] == "hooks and events on the GPU's stream"
    assert gpu["host_s"] < gpu["step_times"][0]
    expected = {
        "span_input": 1, "span_data_parallel": 4, "span_communication": 4, "span_backward": 16,
        "span_optimizer": 32,
    }  # fmt: skip
    for name, seconds in expected.items():
        assert gpu[name] == [seconds] * 3, name
    assert gpu["span_forward"] == [10, 11, 12]
    assert gpu["step_times"] == [127, 128, 129]
    assert gpu["span_between"] == [0, 0.5, 0.5]  # nothing is known before the first step
