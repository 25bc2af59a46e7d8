"""The probes of a machine's ceilings: what they count, time and leave out; each started once."""

import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from harness import probe, tf32
from harness.probe import Case, Sweep, ceiling_metrics, rates, run_sweep
from memory_bandwidth import kernels
from pair_latency import links
from tests.benchmarks.programs import PYTORCH, TENSORFLOW, Later, Program, read, value, warm
from tests.fakes.torch_python import needs_torch

peak = Later("compute_peak.benchmark")


@pytest.fixture
def case(monkeypatch):
    """A maker of cases on a clock on which each call takes its own time."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(probe.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(probe.ranks, "barrier", lambda: None)

    def make(value, amount, seconds):
        return Case(value, amount, lambda: lambda: setattr(clock, "now", clock.now + seconds))

    return make


def swept(cases, least=0.0):
    sweep = Sweep("size", None, "B")
    limits = {"repeats": 3, "seconds_per_repeat": least, "seconds_per_value": 10.0}
    run_sweep(sweep, cases, limits)
    return sweep


def test_a_sweep_times_each_value_in_repeats_of_enough_calls(case):
    sweep = swept([case(1, 10.0, 0.01), case(2, 20.0, 0.5)], least=0.1)
    assert sweep.values == [1, 2]
    assert sweep.calls == [10, 1]
    np.testing.assert_allclose(sweep.seconds, [[0.01] * 3, [0.5] * 3])
    rate = rates(sweep, np.array(sweep.seconds)[:, :, None])
    np.testing.assert_allclose(rate, [[1000] * 3, [40] * 3])


def test_a_sweep_leaves_out_what_would_take_too_long(case):
    made = []

    def prepare():
        made.append(1)
        return lambda: None

    # 3 repeats of 4 s are known after the first calls; one of more work takes no less.
    cases = [case(0, 1e-3, 0.1), case(1, 1.0, 0.1), case(2, 5.0, 4.0)]
    sweep = swept([*cases, Case(3, 50.0, prepare)])
    assert sweep.values == [0, 1]
    assert set(sweep.left_out) == {"2", "3"}
    assert not made
    assert "12 s or more, of seconds_per_value 10" in sweep.left_out["2"]


def test_a_ceiling_is_the_best_of_values_and_repeats_by_the_slowest_rank():
    sweep = Sweep("size", None, "B", values=[1, 2], amounts=[10.0, 20.0])
    seconds = np.array([[[1.0, 2.0], [1.0, 1.0], [1.0, 4.0]], [[4.0, 1.0]] * 3])
    found = ceiling_metrics("speed", "B/s", rates(sweep, seconds))
    assert {name: each["value"] for name, each in found.items()} == {"speed": 10, "speed_median": 5}


@pytest.mark.slow
def test_flop_and_bytes_by_hand():
    defaults = Program("compute_peak", {}).defaults
    assert peak.flop(defaults, 2) == 16  # 4 results of 2 products and 2 additions
    assert peak.least_bytes(defaults, 2) == 3 * 4 * 4
    # 8 images, 28 x 28 outputs, 9 positions, 16 to 16 channels, 2 FLOP.
    convolution = defaults | {"operation": "convolution"}
    assert peak.flop(convolution, 16) == 8 * 784 * 9 * 256 * 2
    more = convolution | {"images": 2, "height": 4, "width": 5, "kernel": 5}
    assert peak.flop(more, 8) == 2 * (2 * 20 * 25 * 8 * 8)
    assert peak.least_bytes(more | {"dtype": "float16"}, 8) == 2 * (2 * 20 * (8 + 8) + 25 * 8 * 8)


@pytest.mark.parametrize("threads", [1, 3])
def test_numpy_kernels_are_those_of_stream(threads, monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK", 7)
    seen = {}
    monkeypatch.setattr(np, "empty", lambda size: seen.setdefault(len(seen), np.zeros(size)))
    made = kernels.numpy_kernels(100, threads)
    assert list(made) == list(kernels.ARRAYS)
    a, b, c = seen.values()
    expected = {"copy": (c, 1.0), "scale": (b, 3.0), "add": (c, 4.0), "triad": (a, 15.0)}
    for name, call in made.items():
        call()
        array, value = expected[name]
        assert (array == value).all(), name


PRODUCTS = {"sizes": [32, 64], "seconds_per_repeat": 0}
MESSAGES = {"sizes": [4, 4096], "seconds_per_repeat": 0, "tensors": 2}
FILES = {"file_mib": 1, "readers": [1, 2], "block_kib": 64}
# Program, parameters, ranks, amount of each value by all ranks, and the metric that is their rate.
RUNS = [
    ("compute_peak", PRODUCTS | {"dtype": "bfloat16"}, 1, [2 * 32**3, 2 * 64**3], "flops"),
    ("torch_peak", PRODUCTS | {"threads": 1}, 2, [4 * 32**3, 4 * 64**3], "flops"),
    ("memory_bandwidth", {"array_mib": 2}, 1, [2 << 21, 2 << 21, 3 << 21, 3 << 21] * 2,
     "bandwidth"),
    ("copy_bandwidth", {"sizes": [4, 4096], "direction": "host_to_host"}, 1, [4, 4096],
     "copy_bandwidth"),
    ("allreduce", MESSAGES, 2, [4, 4096], "algorithm_bandwidth"),
    ("file_read", FILES, 1, [1 << 20, 2 << 20], "read_bandwidth"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "params", "ranks", "amounts", "metric"),
    [pytest.param(*run, id=run[0], marks=needs_torch if run[0] == "torch_peak" else ())
     for run in RUNS],
)  # fmt: skip
def test_a_ceiling_is_the_best_of_what_was_swept(tmp_path, name, params, ranks, amounts, metric):
    kind = PYTORCH if name == "torch_peak" else TENSORFLOW
    program = Program(name, {"repeats": 3, "ranks": ranks, "ranks_per_node": ranks}, kind)
    data = tmp_path / "data" if "data" in program.declared else None
    if data:
        assert program.stage(data, {"read": 2}, how=warm, **params).returncode == 0
    native, samples = read(*program.start(tmp_path, data, **params | {"ranks": ranks}))
    assert samples["sweep_seconds"].shape == (len(amounts), 3, ranks)
    assert native["notes"]["sweep"]["amounts"] == amounts
    best = (np.array(amounts)[:, None] / samples["sweep_seconds"].max(axis=2)).max()
    assert value(native, metric) == pytest.approx(best)


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_every_two_ranks_meet_once_and_none_in_two_pairs_of_a_round(count):
    met = []
    for number in range(count - 1 + count % 2):
        others = [links.partner(rank, number, count) for rank in range(count)]
        assert all(other is None or others[other] == rank for rank, other in enumerate(others))
        met += [(rank, it) for rank, it in enumerate(others) if it is not None and it > rank]
    assert sorted(met) == [(a, b) for a in range(count) for b in range(a + 1, count)]


def test_a_link_that_is_silent_for_long_is_an_error():
    """Its time limit costs a look before each call, which is in the latencies of all records."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [server.getsockname() for server in servers]
    with ThreadPoolExecutor(2) as pool:
        upper, lower = pool.map(links.connect, servers, [addresses] * 2, range(2))
    assert upper[1].gettimeout() == lower[0].gettimeout() == links.TIMEOUT_S


@pytest.mark.slow
def test_three_ranks_time_their_links(tmp_path):
    program = Program("pair_latency", {"repeats": 2, "messages": 5})
    native, samples = read(*program.start(tmp_path, ranks=3, ranks_per_node=3))
    seconds = samples["link_seconds"]
    assert seconds.shape == (2, 3, 3)
    assert (seconds == seconds.transpose(0, 2, 1)).all()
    pairs = seconds.min(axis=0)[np.triu_indices(3, 1)]
    assert (pairs > 0).all()
    assert value(native, "latency") == pytest.approx(np.median(pairs))
    assert value(native, "slowest_latency") == pytest.approx(pairs.max())


def test_arrays_miss_the_last_level_caches_which_count_once_each(tmp_path, monkeypatch):
    for cpu in range(4):
        for index, size, shared in ((0, "32K", f"{cpu}"), (3, "16M", f"{cpu // 2 * 2}-")):
            place = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            place.mkdir(parents=True)
            (place / "size").write_text(f"{size}\n")
            (place / "shared_cpu_list").write_text(f"{shared}\n")
    sizes = [kernels.last_level_bytes(cpus, tmp_path) for cpus in ({0, 1}, {0, 3}, {7})]
    assert sizes == [16 << 20, 32 << 20, None]
    for cache, asked, expected in ((100, None, 400), (100, 8, 8), (None, None, 64)):
        there = None if cache is None else cache << 20
        monkeypatch.setattr(kernels, "last_level_bytes", lambda _, there=there: there)
        assert kernels.array_bytes(asked) == expected << 20


@pytest.mark.parametrize(
    ("capability", "allowed", "override", "in_force"),
    [
        ((8, 0), True, "1", True), ((8, 0), False, "1", False), ((8, 0), True, "0", False),
        ((7, 5), True, "1", False), (None, True, "1", False),
    ],
)  # fmt: skip
def test_tf32_is_in_force_if_gpu_framework_and_environment_agree(
    monkeypatch, capability, allowed, override, in_force
):
    framework = SimpleNamespace(tf32_state=lambda _: (allowed, [capability] * 2))
    monkeypatch.setattr(tf32.ranks, "implementation", lambda: framework)
    monkeypatch.setenv(tf32.OVERRIDE, override)
    facts = tf32.facts()
    assert (facts["device"], facts["in_force"]) == ("GPU", in_force)
    assert tf32.of_ranks([facts, facts | {"in_force": None}]) == facts | {"in_force": None}
