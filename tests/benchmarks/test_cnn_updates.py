"""The ways to share gradients: all that are synchronous give the weights that one device gives.

Two devices with batches of 16 train on the images of one with a batch of 32, so that their weights
must be those of plain arithmetic (`train_copies.reference`).
"""

import json

import numpy as np
import pytest

from tests.benchmarks.programs import start_helper

pytestmark = pytest.mark.slow

STEPS = 3
# Float32, summed in another order; single weights are of the size of 0.1.
TOLERANCE = {"rtol": 1e-4, "atol": 2e-6}
# Ways of one process that give the same weights, and how many copies of these it has.
SYNCHRONOUS = {
    "parameter_server": 1,
    "replicated": 2,
    "collective_all_reduce": 2,
    "distributed_replicated": 3,
    "hierarchical_copy": 2,
}
MODES = [*SYNCHRONOUS, "independent"]
WAYS = {way: {"variable_update": way} for way in MODES} | {
    "hierarchical_copy": {"all_reduce": "hierarchical_copy", "xla": True},
    "reference": {"reference": True},
    # Of few images, for CPUs take long; last: Keras keeps its policy.
    "few": {"reference": True, "batch_size": 2},
    "float16": {"precision": "mixed_float16", "batch_size": 2},
}


def train(folder, cases, ranks=1, steps=STEPS):
    """Train the cases in one process per rank; return arrays ``[case][rank]``."""
    start_helper("train_copies.py", folder, steps, *map(json.dumps, cases), ranks=ranks)
    names = [[f"case{n}-rank{rank}.npz" for rank in range(ranks)] for n in range(len(cases))]
    return [[dict(np.load(folder / name)) for name in each] for each in names]


def distance(weights, others):
    return abs(weights - others).max()


def check_spans(arrays, exchanges=True):
    """Input, computation and communication of a step are parts of it, and little is left; the time
    between two steps is part of neither."""
    times, spans = arrays["times"], arrays["spans"]
    assert spans.shape == (*times.shape[:1], 4, *times.shape[1:])
    assert (spans > -1e-5).all()  # clocks of a host, in microseconds
    spent = spans[:, :3].sum(axis=1)
    assert (spent <= times + 1e-3).all()
    assert (spans[:, 1] > 0).all()
    # Of the step that a busy machine disturbs least. Computation; ranks that share a core wait most
    # of a step for each other.
    assert np.max(spans[1:, 1] / times[1:]) > 0.05
    assert (spans[:, 2] > 0).all() == exchanges
    assert np.max(spent[1:] / times[1:]) > 0.5


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    """What one process with two devices gives in all of its ways, by name."""
    cases = [{"variable_update": "replicated", "devices_per_rank": 2} | it for it in WAYS.values()]
    results = train(tmp_path_factory.mktemp("one"), cases)
    return {name: each[0] for name, each in zip(WAYS, results, strict=True)}


@pytest.fixture(scope="module")
def expected(one_process):
    return one_process["reference"]["copies"][0]


@pytest.mark.parametrize(("way", "copies"), SYNCHRONOUS.items())
def test_two_devices_are_as_one(one_process, expected, way, copies):
    arrays = one_process[way]
    assert len(arrays["copies"]) == copies
    np.testing.assert_allclose(arrays["copies"], [expected] * copies, **TOLERANCE)
    losses = one_process["reference"]["losses"]
    np.testing.assert_allclose(arrays["losses"], losses, rtol=1e-4, atol=1e-4)
    assert arrays["times"].shape == (STEPS,)
    assert (arrays["times"] > 0).all()
    check_spans(arrays)


def test_independent_devices_go_their_own_ways(one_process, expected):
    arrays, reference = one_process["independent"], one_process["reference"]
    check_spans(arrays, exchanges=False)
    assert distance(*arrays["copies"]) > 1e-3
    assert distance(arrays["copies"][0], expected) > 1e-3
    assert arrays["losses"][0] == pytest.approx(reference["losses"][0], rel=1e-4)


def test_float16_trains_as_float32_does_but_not_quite(one_process, expected):
    """Gradients are scaled against underflow, and the scale is taken out again."""
    copies, (few,) = one_process["float16"]["copies"], one_process["few"]["copies"]
    assert distance(*copies) == 0
    assert 0 < distance(copies[0], few) < min(0.02, 0.2 * distance(few, expected))


@pytest.mark.measured
@pytest.mark.parametrize("way", ["horovod", "collective_all_reduce"])
def test_two_ranks_are_as_one(tmp_path, expected, way):
    horovods = [{"variable_update": way, "compression": "fp16"}, {"variable_update": "independent"}]
    cases = [{"variable_update": way}, *(horovods if way == "horovod" else [])]
    plain, *others = train(tmp_path, [case | {"ranks": 2} for case in cases], ranks=2)
    for arrays in plain:
        assert arrays["losses"].shape == (STEPS,)
        np.testing.assert_allclose(arrays["copies"], [expected], **TOLERANCE)
        check_spans(arrays)
    if others:
        compressed, alone = ([arrays["copies"] for arrays in case] for case in others)
        assert 0 < distance(compressed[0], expected) < 1e-3
        assert distance(*compressed) == 0 and distance(*alone) > 1e-3


@pytest.mark.measured
def test_ranks_with_parameter_servers_all_train(tmp_path):
    steps = 16
    case = {"variable_update": "parameter_server", "ranks": 2, "optimizer": "sgd"}
    ((arrays, others),) = train(tmp_path, [case], ranks=2, steps=steps)
    assert (len(arrays["copies"]), len(others["copies"])) == (1, 0)
    assert len(set(arrays["places"])) == 2
    # The other process, which has no loop, trains too.
    assert others["cpu_seconds"] > 0.2 * arrays["cpu_seconds"]
    assert arrays["times"].shape == arrays["losses"].shape == (steps, 2)
    assert (arrays["times"] > 0).all()
    check_spans(arrays)
    assert (arrays["losses"][-1] < 0.9 * arrays["losses"][0]).all()
    # Both began with the same weights, but on their own images.
    assert arrays["losses"][0, 0] != arrays["losses"][0, 1]
