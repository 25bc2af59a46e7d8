"""The CNN training benchmark as the launcher starts it: one process per rank, ``--run FILE``."""

import numpy as np
import pytest

from cnn_training import metrics
from scalesweep.core.profilers import environment, lacks
from tests.benchmarks.programs import Later, Program, read, value

tf_training = Later("harness.tf_training")
trainer = Later("cnn_training.trainer")
SMALL = {
    "model": "lenet", "batch_size": 4, "warmup_batches": 2, "batches": 6, "learning_rate": 0.001,
}  # fmt: skip
PROGRAM = Program("cnn_training", SMALL)
start = PROGRAM.start


def test_metrics_are_those_of_the_formulas():
    """Two ranks, B = 6, by hand; rank 0 runs at 2, 3, 2 and 6 images/s, rank 1 at 3 always."""
    times = np.array([[3.0, 2.0], [2.0, 2.0], [3.0, 2.0], [1.0, 2.0]])
    warmup = np.array([[6.0, 2.0]])
    losses = np.array([[5.0, 4.0]] * 3 + [[2.0, 1.0]])
    found = metrics.metrics(times, warmup, losses, wall=10.0, images=6)
    expected = {
        "total_images_per_second": 8 * 6 / 10,
        "images_per_second": (6 / 2.25 + 3) / 2,
        # s = 2, 3, 2, 6: variance (1.25^2 + 0.25^2 + 1.25^2 + 2.75^2) / 4
        "images_per_second_uncertainty": (2.6875**0.5 / 2 + 0) / 2,
        # median 2.5, deviations 0.5, 0.5, 0.5, 3.5
        "images_per_second_jitter": (1.4826 * 0.5 + 0) / 2,
        # with the warm-up 1, 2, 3, 2, 6
        "median_images_per_second": (2 + 3) / 2,
        "step_time_max": 3.0,
        "final_loss": 1.5,
    }
    assert {name: each["value"] for name, each in found.items()} == pytest.approx(expected)
    assert found["step_time_max"]["better"] == "lower"
    assert found["total_images_per_second"]["scope"] == "total"


@pytest.mark.slow
@pytest.mark.measured
def test_two_ranks_on_horovod_with_its_knobs(tmp_path):
    knobs = {"fusion_threshold_mb": 3, "cycle_time_ms": 2.5, "hierarchical_allreduce": True}
    knobs |= {"autotune": True, "compression": "fp16"}
    native, samples = read(*start(tmp_path, ranks=2, ranks_per_node=2, **knobs))
    assert samples["step_times"].shape == samples["loss"].shape == (6, 2)
    assert (samples["loss"][:, 0] != samples["loss"][:, 1]).all()
    assert native["work"]["samples_per_epoch"] == 2 * 4 * 6
    assert native["notes"]["mode"]["strategy"] == "horovod"
    exchange = native["notes"]["exchange"]  # two bytes a value: compressed
    assert (exchange["by"], exchange["backend"]) == ("horovod", "gloo")
    assert sum(exchange["tensor_bytes"]) == 2 * value(native, "model_parameters")
    wanted = {"FUSION_THRESHOLD": str(3 << 20), "CYCLE_TIME": "2.5", "HIERARCHICAL_ALLREDUCE": "1"}
    variables = {f"HOROVOD_{name}": value for name, value in wanted.items()}
    variables["HOROVOD_AUTOTUNE"] = "1"
    assert variables.items() <= native["environment"]["variables"].items()
    # Autotuning changes these while the program runs.
    assert (exchange["bucket_bytes"], exchange["cycle_s"]) == (None, None)
    assert exchange["from"]["cycle_s"] == "autotune"
    wall = 48 / value(native, "total_images_per_second")
    # On rank 0, whose clock the wall time is of: rank 1 may leave the barrier before it.
    assert samples["step_times"][:, 0].sum() <= wall <= native["phases"]["timed"]


@pytest.mark.slow
@pytest.mark.parametrize(("given_by_slurm", "taken"), [(False, [2, 3]), (True, [0, 1])])
def test_ranks_of_a_host_take_its_gpus_in_turn(monkeypatch, given_by_slurm, taken):
    """Rank 1 of two on a host that TensorFlow says has four GPUs."""
    visible, config = [], tf_training.tf.config
    monkeypatch.setattr(tf_training.hvd, "local_rank", lambda: 1)
    monkeypatch.setattr(tf_training.hvd, "local_size", lambda: 2)
    monkeypatch.setattr(config, "list_physical_devices", lambda _: ["g0", "g1", "g2", "g3"])
    monkeypatch.setattr(config, "set_visible_devices", lambda gpus, _: visible.extend(gpus))
    monkeypatch.setattr(config.experimental, "set_memory_growth", lambda *_: None)
    if given_by_slurm:
        monkeypatch.setenv("SLURM_GPUS_PER_TASK", "2")
    gpus = [f"g{number}" for number in taken]
    assert tf_training.take_gpus(2) == (gpus, None) and visible == gpus
    if not given_by_slurm:
        said = "3 GPUs for each rank: 4 GPUs for 2 ranks of a host"
        assert tf_training.take_gpus(3) == ([], (69, said))


@pytest.mark.slow
def test_without_a_warm_up_the_timed_steps_make_the_graph():
    made = trainer.repeat(None, None, [], [], None, "none")
    assert [each.size for each in made.run(0)] == [0, 0, 0]


@pytest.mark.slow
def test_without_exchange_each_rank_learns_alone(tmp_path):
    env, together = environment("noexchange", tmp_path), "collective_all_reduce"
    native, samples = read(*start(tmp_path, env=env, ranks=2, variable_update=together))
    assert native["notes"]["mode"]["strategy"] == "none"
    assert lacks("noexchange", [], native["notes"]) == ""
    assert np.ptp(samples["loss"], axis=1)[-1] > 0
