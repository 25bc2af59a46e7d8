"""The probes of a machine's ceilings: what they count, time and leave out; each started once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from allreduce.messages import bus_factor, split
from compute_peak.work import flop, least_bytes
from file_read import dataset, reading
from harness import cuda
from harness.sweep import Case, Chain, Clock, Sweep, ceiling_metrics, rates, run_sweep
from memory_bandwidth import caches, kernels
from pair_latency import links
from tests.benchmarks.programs import Program, read, warm


class Ticks:
    """A clock on which each call of a case takes its own time."""

    def __init__(self):
        self.now, self.barriers = 0.0, 0

    def clock(self):
        return Clock(lambda: self.now, self.barrier, lambda value: value)

    def barrier(self):
        self.barriers += 1

    def case(self, value, amount, seconds, before=None):
        def call():
            self.now += seconds

        return Case(value, amount, lambda: call, before)


def swept(ticks, cases, repeats=3, least=0.0, most=10.0):
    sweep = Sweep("size", None, "B")
    run_sweep(sweep, cases, repeats, least, most, ticks.clock())
    return sweep


def test_a_sweep_times_each_value_in_repeats_of_enough_calls():
    ticks = Ticks()
    sweep = swept(ticks, [ticks.case(1, 10.0, 0.01), ticks.case(2, 20.0, 0.5)], least=0.1)
    assert sweep.values == [1, 2]
    assert sweep.calls == [10, 1]
    np.testing.assert_allclose(sweep.seconds, [[0.01] * 3, [0.5] * 3])
    rate = rates(sweep, np.array(sweep.seconds)[:, :, None])
    np.testing.assert_allclose(rate, [[1000] * 3, [40] * 3])


def test_a_chain_counts_as_so_many_works():
    ticks = Ticks()
    (_, amount, prepare, _) = ticks.case(1, 10.0, 0.04)
    sweep = swept(ticks, [Case(1, amount, lambda: Chain(prepare(), 4))], least=0.1)
    assert sweep.calls == [12]
    np.testing.assert_allclose(sweep.seconds, [[0.01] * 3])


def test_a_sweep_leaves_out_what_would_take_too_long():
    ticks, made = Ticks(), []

    def prepare():
        made.append(1)
        return lambda: None

    # 3 repeats of 4 s are known after the first calls, those of 40 s by the two cases before. What
    # a small case costs says little of larger ones.
    cases = [ticks.case(0, 1e-3, 0.1), ticks.case(1, 1.0, 0.1), ticks.case(2, 5.0, 4.0)]
    sweep = swept(ticks, [*cases, Case(3, 50.0, prepare)])
    assert sweep.values == [0, 1]
    assert set(sweep.left_out) == {"2", "3"}
    assert not made
    assert "12 s, more than seconds_per_value 10" in sweep.left_out["2"]


def test_what_is_done_before_a_repeat_is_not_timed():
    ticks = Ticks()

    def forget():
        ticks.now += 100.0

    sweep = swept(ticks, [ticks.case(1, 1.0, 0.01, forget)], least=0.1)
    assert sweep.calls == [1]
    np.testing.assert_allclose(sweep.seconds, [[0.01] * 3], rtol=1e-6)


def test_a_ceiling_is_the_best_of_values_and_repeats_by_the_slowest_rank():
    sweep = Sweep("size", None, "B", values=[1, 2], amounts=[10.0, 20.0])
    seconds = np.array([[[1.0, 2.0], [1.0, 1.0], [1.0, 4.0]], [[4.0, 1.0]] * 3])
    found = ceiling_metrics("speed", "B/s", rates(sweep, seconds))
    assert {name: each["value"] for name, each in found.items()} == {"speed": 10, "speed_median": 5}


def test_flop_and_bytes_by_hand():
    defaults = Program("compute_peak", {}).defaults
    assert flop(defaults, 2) == 16  # 4 results of 2 products and 2 additions
    assert least_bytes(defaults, 2) == 3 * 4 * 4
    # 8 images, 28 x 28 outputs, 9 positions, 16 to 16 channels, 2 FLOP.
    convolution = defaults | {"operation": "convolution"}
    assert flop(convolution, 16) == 8 * 784 * 9 * 256 * 2
    more = convolution | {"images": 2, "height": 4, "width": 5, "kernel": 5, "channels_in": 3}
    assert flop(more, 8) == 2 * (2 * 20 * 25 * 3 * 8)
    assert least_bytes(more | {"dtype": "float16"}, 8) == 2 * (2 * 20 * (3 + 8) + 25 * 3 * 8)


def test_the_convolutions_of_the_course_on_performance():
    """S. Kesselheim, Is my code fast?, Helmholtz AI at JSC, 2021: 72 MFLOP (2^20) and, without the
    weights, n k k / 4 FLOP/byte."""
    convolution = Program("compute_peak", {}).defaults | {"operation": "convolution", "images": 1}
    single = convolution | {"height": 128, "width": 128}
    assert flop(single, 16) == 72 * 2**20
    assert flop(single, 16) / (least_bytes(single, 16) - 4 * 9 * 16 * 16) == 36
    assert flop(single, 16) / least_bytes(single, 16) == pytest.approx(36, rel=0.005)
    for edge, channels, printed in ((128, 64, 144), (64, 128, 288), (32, 256, 576)):
        layer = convolution | {"height": edge, "width": edge, "images": 64}
        found = flop(layer, channels) / least_bytes(layer, channels)
        assert found == pytest.approx(printed, rel=0.02)


def test_bus_bandwidths_are_those_of_nccl_tests():
    # doc/PERFORMANCE.md of nccl-tests.
    assert bus_factor("allreduce", 4) == 1.5
    assert bus_factor("allgather", 4) == 0.75
    assert bus_factor("broadcast", 4) == 1


def test_messages_are_split_into_tensors():
    assert split(64, 1, "allreduce", 2) == ([16], 64)
    assert split(40, 4, "allreduce", 2) == ([3, 3, 2, 2], 40)
    assert split(4, 4, "broadcast", 2) == ([1], 4)
    # The size of an allgather is that of its result; a rank has at least one value.
    assert split(64, 2, "allgather", 4) == ([2, 2], 64)
    assert split(4, 1, "allgather", 4) == ([1], 16)


class Driver:
    """NVIDIA's driver as far as it is asked: one GPU, and memory that is pinned from 1 << 20 on."""

    attribute = 50 << 20

    def __getattr__(self, name):
        return lambda *arguments: 0

    def cuDeviceGet(self, device, number):
        return 0 if number == 0 else 101

    def cuDeviceGetAttribute(self, value, code, device):
        value._obj.value = self.attribute if code == 38 else 7
        return 0

    def cuDeviceTotalMem_v2(self, value, device):
        value._obj.value = 80 << 30
        return 0

    def cuPointerGetAttribute(self, kind, code, place):
        kind._obj.value = 1
        return 0 if place.value >= 1 << 20 else 1


def test_what_the_driver_says_of_gpus_and_of_memory(monkeypatch):
    monkeypatch.setattr(cuda, "_driver", Driver)
    assert (cuda.cache_bytes(0), cuda.memory_bytes(0)) == (50 << 20, 80 << 30)
    assert (cuda.is_pinned(1 << 20, 0), cuda.is_pinned(5, 0)) == (True, False)
    assert cuda.cache_bytes(1) is cuda.memory_bytes(1) is cuda.is_pinned(1 << 20, 1) is None
    monkeypatch.setattr(cuda, "_driver", lambda: None)
    assert cuda.cache_bytes(0) is cuda.memory_bytes(0) is cuda.is_pinned(1 << 20, 0) is None


@pytest.mark.slow
def test_copies_within_the_host_and_without_a_gpu(tmp_path):
    program = Program("copy_bandwidth", {"sizes": [4, 1 << 20], "repeats": 3})
    native, samples = read(*program.start(tmp_path / "host", direction="host_to_host"))
    assert native["notes"]["sweep"]["amounts"] == [4, 1 << 20]
    best = (np.array([[4], [1 << 20]]) / samples["sweep_seconds"][:, :, 0]).max()
    assert native["metrics"]["copy_bandwidth"]["value"] == pytest.approx(best)
    median = np.median(samples["sweep_seconds"][0])
    assert native["metrics"]["latency"]["value"] == pytest.approx(median)
    if native["notes"]["tf32"]["device"] == "CPU":
        done, _ = program.start(tmp_path / "devices", direction="device_to_device")
        assert done.returncode == 69
        assert "device_to_device: TensorFlow sees no GPU here, needs 2" in done.stderr


def cache(folder, cpu, index, level, size, shared, kind="Unified"):
    place = folder / f"cpu{cpu}" / "cache" / f"index{index}"
    place.mkdir(parents=True)
    for name, value in (("level", level), ("size", size), ("type", kind)):
        (place / name).write_text(f"{value}\n")
    (place / "shared_cpu_list").write_text(f"{shared}\n")


def test_last_level_caches_count_once_each(tmp_path):
    for cpu in range(4):
        cache(tmp_path, cpu, 0, 1, "32K", cpu, "Data")
        cache(tmp_path, cpu, 3, 3, "16M", "0-1" if cpu < 2 else "2-3")
    assert caches.last_level_bytes({0, 1}, tmp_path) == 16 << 20
    assert caches.last_level_bytes({0, 3}, tmp_path) == 32 << 20
    assert caches.last_level_bytes({7}, tmp_path) is None
    (tmp_path / "cpu0" / "cache" / "index3" / "size").write_text("odd")
    assert caches.last_level_bytes({0}, tmp_path) == 32 << 10


def test_arrays_miss_every_cache(monkeypatch):
    monkeypatch.setattr(caches, "last_level_bytes", lambda cpus: 100 << 20)
    assert caches.array_bytes(None) == 400 << 20
    assert caches.array_bytes(8) == 8 << 20
    monkeypatch.setattr(caches, "last_level_bytes", lambda cpus: None)
    assert caches.array_bytes(None) == 64 << 20


def test_arrays_on_a_gpu_miss_its_cache_and_fit_its_memory():
    assert caches.gpu_array_bytes(None, 50 << 20, 80 << 30) == 256 << 20
    assert caches.gpu_array_bytes(None, 126 << 20, 180 << 30) == 504 << 20
    assert caches.gpu_array_bytes(None, 50 << 20, 1 << 30) == 128 << 20
    assert caches.gpu_array_bytes(None, None, None) == 256 << 20
    assert caches.gpu_array_bytes(16, 50 << 20, 80 << 30) == 16 << 20


@pytest.mark.parametrize("threads", [1, 3])
def test_numpy_kernels_are_those_of_stream(threads, monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK", 7)
    made = kernels.numpy_kernels(100, threads)
    assert list(made) == list(kernels.ARRAYS)
    seen = {}
    monkeypatch.setattr(np, "empty", lambda size: seen.setdefault(len(seen), np.zeros(size)))
    made = kernels.numpy_kernels(100, threads)
    a, b, c = seen.values()
    expected = {"copy": (c, 1.0), "scale": (b, 3.0), "add": (c, 4.0), "triad": (a, 15.0)}
    for name, call in made.items():
        call()
        array, value = expected[name]
        assert (array == value).all(), name


def test_blocks_in_order_and_at_random():
    assert reading.offsets(10, 3, None, [0]) == [0, 3, 6]
    chosen = reading.offsets(1000, 10, 20, [0, 1])
    assert len(set(chosen)) == 20
    assert chosen == reading.offsets(1000, 10, 20, [0, 1]) != sorted(chosen)
    assert set(chosen) <= set(range(0, 1000, 10))


@pytest.mark.parametrize("readers", [1, 2])
def test_reading_a_file_that_ends_before(tmp_path, readers):
    paths = [str(tmp_path / f"{number}") for number in range(readers)]
    for path in paths:
        Path(path).write_bytes(bytes(100))
    reading.make_call(paths, [[0, 50]] * readers, 50)()
    with pytest.raises(OSError, match="shorter than it must be"):
        reading.make_call(paths, [[0, 60]] * readers, 50)()


def test_raw_files_are_staged_once_and_cannot_be_packed(tmp_path):
    data = dataset.RawFiles.from_params({"file_mib": 1})
    (tmp_path / "read").mkdir()
    paths = [data.path(tmp_path, "read", number) for number in range(2)]
    for number, path in enumerate(paths):
        data.write(path, "read", number)
        assert data.is_complete(path)
    first, second = (Path(path).read_bytes() for path in paths)
    assert len(first) == data.file_bytes == 1 << 20
    assert first != second
    assert not data.is_complete(data.path(tmp_path, "read", 2))


@pytest.mark.slow
def test_compute_and_memory_start_and_leave_ceilings(tmp_path):
    program = Program("compute_peak", {"sizes": [32, 64], "repeats": 3, "seconds_per_repeat": 0})
    native, samples = read(*program.start(tmp_path / "one", dtype="bfloat16"))
    assert samples["sweep_seconds"].shape == (2, 3, 1)
    assert native["notes"]["sweep"]["amounts"] == [2 * 32**3, 2 * 64**3]
    best = (np.array([[2 * 32**3], [2 * 64**3]]) / samples["sweep_seconds"][:, :, 0]).max()
    assert native["metrics"]["flops"]["value"] == pytest.approx(best)
    assert native["work"] == {}

    assert native["notes"]["sweep"]["moved"] == [3 * 2 * 32**2, 3 * 2 * 64**2]
    facts = native["notes"]["tf32"]
    if facts["device"] == "CPU":
        assert facts["allowed"] and not facts["supported"] and not facts["in_force"]
        done, _ = program.start(tmp_path / "tf32", tf32=True)
        assert done.returncode == 69
        assert "tf32 true: no GPU of compute capability 8.0 or more here" in done.stderr

    program = Program("memory_bandwidth", {"array_mib": 2, "repeats": 3})
    native, samples = read(*program.start(tmp_path / "two", threads=2))
    assert native["notes"]["memory"]["devices"] == ["CPU"]
    kinds = [
        f"{library} {kernel}" for library in ("tensorflow", "numpy") for kernel in kernels.ARRAYS
    ]
    assert native["notes"]["sweep"]["values"] == kinds
    assert native["notes"]["sweep"]["amounts"] == [2 * 2**21, 2 * 2**21, 3 * 2**21, 3 * 2**21] * 2
    best = native["metrics"]["bandwidth"]["value"]
    assert best == max(native["metrics"][f"{name}_bandwidth"]["value"] for name in kernels.ARRAYS)


@pytest.mark.slow
def test_two_ranks_exchange_messages(tmp_path):
    small = {"sizes": [4, 4096], "repeats": 3, "seconds_per_repeat": 0, "cycle_time_ms": 0.5}
    program = Program("allreduce", small)
    native, samples = read(*program.start(tmp_path, ranks=2, ranks_per_node=2, tensors=2))
    assert samples["sweep_seconds"].shape == (2, 3, 2)
    sweep = native["notes"]["sweep"]
    assert (sweep["collective"], sweep["values"], sweep["amounts"]) == (
        "allreduce",
        [4, 4096],
        [4, 4096],
    )
    slowest = samples["sweep_seconds"].max(axis=2)
    metrics = {name: each["value"] for name, each in native["metrics"].items()}
    assert metrics["algorithm_bandwidth"] == pytest.approx(
        (np.array([[4], [4096]]) / slowest).max()
    )
    assert metrics["bus_bandwidth"] == pytest.approx(metrics["algorithm_bandwidth"])  # of two ranks
    assert metrics["latency"] == pytest.approx(np.median(slowest[0]))


@pytest.mark.slow
def test_files_are_read_cold(tmp_path):
    small = {"file_mib": 1, "readers": [1, 2], "repeats": 2, "block_kib": 64}
    program = Program("file_read", small)
    assert program.stage(tmp_path / "data", {"read": 2}, how=warm).returncode == 0
    native, samples = read(*program.start(tmp_path / "run", tmp_path / "data"))
    assert samples["sweep_seconds"].shape == (2, 2, 1)
    assert native["notes"]["sweep"]["amounts"] == [1 << 20, 2 << 20]
    assert native["notes"]["page_cache"]["dropped"]
    value = native["metrics"]["read_bandwidth"]["value"]
    assert native["metrics"]["reads_per_second"]["value"] == pytest.approx(value / 65536)
    done, _ = program.start(tmp_path / "more", tmp_path / "data", readers=[1, 4])
    assert done.returncode == 66
    assert "2 of 4 read files" in done.stderr


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_every_two_ranks_meet_once_and_none_in_two_pairs_of_a_round(count):
    rounds = links.rounds(count)
    met = [pair for pairs in rounds for pair in pairs]
    assert sorted(met) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    for pairs in rounds:
        assert len({rank for pair in pairs for rank in pair}) == 2 * len(pairs)


def test_links_join_three_ranks_and_name_who_cannot_be_reached():
    """Three ranks, as threads."""
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        servers = [stack.enter_context(links.listen(3, True)) for _ in range(3)]
        addresses = [("127.0.0.1", server.getsockname()[1]) for server in servers]
        calls = [pool.submit(links.connect, servers[n], addresses, n) for n in range(3)]
        ends = [call.result(20) for call in calls]
        assert [sorted(each) for each in ends] == [[1, 2], [0, 2], [0, 1]]
        answering = pool.submit(links.answer, ends[2][0], 64, 3)
        assert 0 < links.ask(ends[0][2], 64, 3) < 20
        answering.result(20)
        for each in ends:
            for link in each.values():
                link.close()
    with links.listen(1, True) as gone:
        address = ("127.0.0.1", gone.getsockname()[1])
    with links.listen(1, True) as server, pytest.raises(OSError, match=f"port {address[1]}"):
        links.connect(server, [address, address], 1)


@pytest.mark.slow
def test_three_ranks_time_their_links(tmp_path):
    program = Program("pair_latency", {"repeats": 2, "messages": 5})
    native, samples = read(*program.start(tmp_path, ranks=3, ranks_per_node=3))
    seconds = samples["link_seconds"]
    assert seconds.shape == (2, 3, 3)
    assert (seconds == seconds.transpose(0, 2, 1)).all()
    pairs = seconds.min(axis=0)[np.triu_indices(3, 1)]
    assert (pairs > 0).all()
    assert native["metrics"]["latency"]["value"] == pytest.approx(np.median(pairs))
    assert native["metrics"]["slowest_latency"]["value"] == pytest.approx(pairs.max())
