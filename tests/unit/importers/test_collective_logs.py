"""Importing tables of collectives: OSU Micro-Benchmarks and nccl-tests, as text and JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.core.errors import UserError
from scalesweep.importers.collective_logs import check_test
from scalesweep.importers.imported_run import ImportedRun, Refusal
from scalesweep.importers.launch_words import UNKNOWN, launched
from tests.conftest import ROOT
from tests.fakes.imported_runs import read_source

Read = Callable[..., tuple[list[ImportedRun], list[Refusal]]]

OSU = """\
$ mpirun -np 4 --map-by core ./osu_allreduce -f
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       2.00              1.50              2.50        1000
1024                    4.00              3.00              5.00        1000
1048576               800.00            700.00            900.00         100
"""
NCCL = (ROOT / "tests/acceptance/imports/logs/nccl.txt").read_text()


def report(**changes: Any) -> dict[str, Any]:
    """What nccl-tests' ``-J`` writes: two processes with two GPUs each."""
    device = {
        "rank": 0, "group": 0, "pid": 1, "hostname": "node-1", "device": 0,
        "device_hex": "0000:04:00", "device_info": "NVIDIA Made-up 80GB",
    }  # fmt: skip
    timed = {"alg_bw": 0.07, "bus_bw": 0.11, "nwrong": 0.0}
    shared = {"count": 1, "type": "float", "redop": "sum", "root": "    -1"}
    return {
        "version": 2, "start_time": "2026-01-02 03:04:05",
        "args": ["./build/all_reduce_perf", "-g", "2"], "env": [], "nccl_version": 22705,
        "config": {
            "nthreads": 1, "ngpus": 2, "validation": 1,
            "devices": [device, {**device, "rank": 2, "hostname": "node-2"}],
        },
        "results": [
            {"size": size, **shared, "out_of_place": {"time": time, **timed},
             "in_place": {"time": time - 1, **timed}, "actual_iterations": 20}
            for size, time in ((8, 12.5), (1024, 14.0), (1048576, 50.0))
        ],
        "out_of_bounds": {"count": 0, "okay": "true"},
        **changes,
    }  # fmt: skip


def as_json(**changes: Any) -> str:
    return json.dumps(report(**changes), separators=(",", ":"))


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write texts into a log each and read them."""

    def reader(*texts: str, ranks: int | None = None, name: str = "log") -> Any:
        for number, text in enumerate(texts):
            (tmp_path / f"{name}_{number}.txt").write_text(text)
        return read_source(tmp_path, ranks)[:2]

    return reader


def test_iterations_of_nccl_tests_are_repeats(read: Read) -> None:
    """With per-iteration timing the JSON has the times of each, that of the slowest process."""
    content = report()
    for result, times in zip(
        content["results"], ([12.0, 13.0, 12.5], [14.0, 15.0], [49.0, 51.0]), strict=True
    ):
        result["out_of_place_per_iter"] = {"min_us": min(times), "times_us": times}
    ((run,), refusals) = read(json.dumps(content, separators=(",", ":")))
    assert refusals == []
    assert run.samples["sweep_seconds"][:, :, 0] == pytest.approx(
        1e-6 * np.array([[12, 13], [14, 15], [49, 51]])
    )
    metrics = {name: metric["value"] for name, metric in run.metrics.items()}
    assert metrics["algorithm_bandwidth"] == pytest.approx(1048576 / 49e-6)
    assert metrics["bus_bandwidth_median"] == pytest.approx(
        1.5 * 1048576 * (1 / 49e-6 + 1 / 51e-6) / 2
    )
    assert metrics["latency"] == pytest.approx(12.5e-6)


def test_osu_tables_of_checked_results(read: Read) -> None:
    """With -c each row says whether its results were right; with -z quantiles follow."""
    checked = (
        "mpirun -n 2 osu_allreduce -c\n# OSU MPI Allreduce Latency Test v7.4\n"
        "# Size       Avg Latency(us)        Validation\n"
        "4                       2.00              Pass\n"
        "8                       2.10              Pass        2.00      2.50     3.00\n"
    )
    ((run,), refusals) = read(checked)
    assert refusals == []
    assert run.samples["sweep_seconds"][:, 0, 0] == pytest.approx([2e-6, 2.1e-6])
    runs, (refusal,) = read(checked.replace("2.10              Pass", "2.10              Fail"))
    assert runs == []
    assert "size 8: wrong results" in refusal.message


def test_short_tables_several_in_a_log_and_labels_of_srun(read: Read) -> None:
    short = "\n# OSU MPI Broadcast Latency Test v5.8\n# Size       Avg Latency(us)\n"
    rows = "1                       1.34\n8                       1.17\n64      2.00\n"
    gather = short.replace("Broadcast", "Allgather")
    second = f"srun --ntasks=2 osu_allgather{gather}{rows}"
    ((bcast, allgather), refusals) = read(
        f"srun -n 8 osu_bcast\n{short}{rows}\nreal 0m1s\n{second}"
    )
    assert refusals == []
    assert (bcast.point["ranks"], bcast.point["operation"]) == (8, "broadcast")
    assert (allgather.point["ranks"], allgather.point["operation"]) == (2, "allgather")
    # The size of an allgather is that of its result.
    assert allgather.notes["sweep"]["values"] == [2, 16, 128]
    labelled = "".join(f"0: {line}\n" for line in NCCL.splitlines())
    runs, refusals = read(labelled, name="zz")
    assert (runs[-1].point["ranks"], refusals) == (4, [])


REFUSED = {
    "without ranks": (OSU.partition("\n")[2], "does not state the number of ranks"),
    "one rank": (OSU.replace("-np 4", "-np 1"), "a single rank"),
    "overlap": (OSU.replace("Allreduce", "Non-blocking Allreduce"), "only latencies"),
    "another heading": (
        OSU.replace("Allreduce", "Alltoall").replace("Avg Latency(us)", "Overall(us)"),
        "columns other than a latency",
    ),
    "bandwidths": (OSU.replace("Allreduce Latency", "Bandwidth"), "OSU MPI Bandwidth Test: only"),
    "no row": (OSU.partition("4   ")[0], "a header without a row"),
    "mixed rows": (OSU + OSU.splitlines()[4] + "\n", "size 4 follows size 1048576"),
    "nccl, which test": (NCCL.replace("all_reduce_perf", "?"), "says which test"),
    "nccl, another test": (NCCL.replace("all_reduce", "alltoall"), "alltoall_perf: only"),
    "nccl, wrong": (NCCL.replace("0.11      0", "0.11      7"), "7 wrong results"),
    "json, cut": (as_json()[:-40], "cut or damaged"),
    "json, of the CPU": (as_json().replace('"time":', '"cpu_time":'), "times of the CPU"),
    "json, no iteration": (
        as_json().replace('"actual_', '"out_of_place_per_iter":{"times_us":[0.0]},"actual_'),
        "size 8: 0 us is no time",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_trusted_is_refused(read: Read, kind: str) -> None:
    text, reason = REFUSED[kind]
    runs, refusals = read(text)
    assert runs == []
    assert len(refusals) == 1
    assert reason in refusals[0].message
    assert refusals[0].line is not None


# github.com/converged-computing/flux-usernetes (aws/experiment/final/results-osu/bare-metal),
# without its later rows; NASA's and Archer2's pages print the same heading.
POINT_TO_POINT = """\
# OSU MPI Latency Test v5.8
# Size          Latency (us)
0                       7.46
1                       7.48
4194304               239.43
"""
BARRIER = """\
# OSU MPI Barrier Latency Test v5.8
# Avg Latency(us)
           100.29
"""
# An All-to-Allv of github.com/gvallee/alltoall_profiling's examples; a one-sided one and one of
# buffers on a GPU as OSU's README prints them.
OTHERS = {
    "All-to-Allv": """\
# OSU MPI All-to-Allv Personalized Exchange Latency Test v5.6.3
# Size       Avg Latency(us)
1                     159.35
2                     118.59
""",
    "one-sided": """\
# OSU MPI_Get_accumulate latency Test v5.8
# Window creation: MPI_Win_create
# Synchronization: MPI_Win_lock/unlock
# Size          Latency (us)
1                       2.78
2                       1.65
""",
}


def test_latencies_between_two_ranks_and_of_a_barrier(read: Read) -> None:
    (two, barrier), refusals = read(POINT_TO_POINT, "mpirun -np 64 ./osu_barrier\n" + BARRIER)
    assert refusals == []
    assert two.benchmark == barrier.benchmark == "osu_latency"
    assert two.point == {"ranks": 2, "test": "MPI Latency"}
    assert barrier.point == {"ranks": 64, "test": "MPI Barrier Latency"}
    values = {name: one["value"] for name, one in two.metrics.items()}
    assert values == pytest.approx({"latency": 7.48e-6, "largest_time": 239.43e-6})
    assert two.notes["sweep"]["values"] == [1, 4194304]
    assert {n: one["value"] for n, one in barrier.metrics.items()} == pytest.approx(
        {"latency": 100.29e-6}
    )
    assert barrier.samples == {}
    _, refusals = read(BARRIER, name="zz")
    assert "does not state the number of ranks" in refusals[-1].message


@pytest.mark.parametrize("kind", OTHERS)
def test_other_latencies(read: Read, kind: str) -> None:
    (run,), refusals = read(OTHERS[kind], ranks=8)
    assert refusals == []
    assert run.point["ranks"] == (8 if kind == "All-to-Allv" else 2)
    # What else the heading states sets runs apart.
    assert ("stated" in run.variant) == (kind != "All-to-Allv")
    assert run.metrics["latency"]["value"] == pytest.approx(1e-6 * float(
        OTHERS[kind].splitlines()[-2].split()[1]
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("command", "ranks", "each"),
    [
        # converged-computing/metrics-operator-experiments: google/kubecon/hpc/lassen-run1,
        # lassen_osu_8_nodes.out; google/kubecon/osu-benchmarks.
        ("jsrun -n 8 -a 1 -c 1 -r 1 -l cpu-cpu osu-micro-benchmarks-5.8/osu_allreduce", 8, 1),
        ("mpirun --hostfile ./hostfile.txt -np 2 -map-by ppr:1:node /opt/osu_allreduce", 2, 1),
        # OSU Micro-Benchmarks on Oracle's cloud, four nodes of 36 ranks.
        ("mpirun -n 144 -N 36 -hostfile ~/hostlist.txt omb/osu_allreduce -x 10 -i 10", 144, 36),
        ("time flux run -N4 --tasks-per-node=96 -o cpu-affinity=per-task osu_allreduce", 384, 96),
        ("mpirun --mca coll_base_verbose 1 -np 4 -pernode -hostfile h osu/bin/osu_allreduce", 4, 1),
        ("srun -N 2 -n 16 --cpu-bind=cores ./osu_allreduce -m 8", 16, 8),
        ("srun --nodes=2 --ntasks-per-node=4 ./osu_allreduce", 8, 4),
        ("$ mpiexec -n 32 --ppn 8 ./osu_bcast", 32, 8),
        ("aprun -n 64 -N 32 ./osu_allreduce", 64, 32),
        # Two numbers for a node: neither is taken.
        ("mpirun -N 2 -np 2 -map-by ppr:1:node osu_allreduce", 2, None),
        ("mpirun -np 4 ./osu_allreduce", 4, None),
        ("./osu_allreduce", None, None),
    ],
)
def test_what_a_command_starts(command: str, ranks: int | None, each: int | None) -> None:
    assert (launched(command) or UNKNOWN)[:2] == (ranks, each)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("$ srun -N4 --ntasks-per-node=2 --mem-bind=local ./osu_bcast", "--mem-bind=local"),
        ("UCX_TLS=rc mpirun -hostfile h.txt -np 2 -map-by ppr:1:node /opt/osu_bcast -x 10",
         "UCX_TLS=rc -x 10"),
        ("mpirun --mca coll_base_verbose 1 -np 4 osu_bcast", "--mca coll_base_verbose 1"),
        ("mpirun -np 4 ./osu_allreduce", None),
    ],
)  # fmt: skip
def test_other_words_of_a_command(command: str, options: str | None) -> None:
    found = launched(command)
    assert found and found.options == options


def test_a_command_in_a_loop_is_of_all_its_tables(read: Read) -> None:
    """One command, five tables, as of a shell's loop; the next command is of the next ones."""
    table = OSU.partition("\n")[2]
    loop = "".join(table.replace("800.00", f"{800 + n}.00") for n in range(5))
    runs, refusals = read("$ mpirun -np 4 ./osu_allreduce\n" + loop + "$ mpirun -np 8 x\n" + OSU)
    assert refusals == [] and [run.point["ranks"] for run in runs] == [4] * 6
    runs, refusals = read("$ mpirun -np 4 ./osu_latency\n" + OSU.replace("-np 4", "-np 8"))
    assert [run.point["ranks"] for run in runs[:1]] == [8]


# NVIDIA/deepops, docs of slurm-perf-cluster.yml (nccl-tests on two DGX); the deviation is no count.
OLD_NCCL = """\
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
    1048576        262144   float     sum    192.4    5.45   10.22  5e-07    193.6    5.42   10.16  5e-07
    2097152        524288   float     sum    271.3    7.73   14.50  5e-07    271.3    7.73   14.49  5e-07
    4194304       1048576   float     sum    374.7   11.19   20.99  5e-07    374.1   11.21   21.02  5e-07
"""  # noqa: E501  (as it is printed)


def test_old_tables_of_nccl_tests(read: Read) -> None:
    ((run,), refusals) = read(OLD_NCCL, ranks=16, name="all_reduce_perf")
    assert refusals == []
    assert run.samples["sweep_seconds"][:, 0, 0] == pytest.approx([192.4e-6, 271.3e-6, 374.7e-6])
    assert run.metrics["bus_bandwidth"]["value"] == pytest.approx(20.99e9, rel=1e-3)
    # Whole microseconds are no root.
    whole = OLD_NCCL.replace("374.7   11.19", "  375   11.19").replace("20.99", "11.19")
    runs, refusals = read(whole, ranks=16, name="broadcast")
    (run,) = (run for run in runs if run.point["operation"] == "broadcast")
    assert run.samples["sweep_seconds"][-1, 0, 0] == pytest.approx(375e-6)
    failed = OLD_NCCL + "# Out of bounds values : 3 FAILED\n"
    _, (refusal,) = read(failed, ranks=16, name="all_gather_perf")
    assert "3 values out of bounds" in refusal.reason


def test_a_list_of_devices_that_was_cut_is_not_believed(read: Read) -> None:
    """The bus bandwidth of 4 ranks is 1.5 times the algorithm's, that of 72 ranks 1.972 times."""
    cut = NCCL.replace("20.97   31.46", "20.97   41.36")
    runs, refusals = read(cut)
    assert not runs
    assert refusals[0].reason == (
        "the bus bandwidth is 1.972 times the algorithm's, which is not that of allreduce on 4 "
        "ranks: was the list of devices cut? add --ranks N"
    )
    (run,), _ = read(cut, ranks=72)
    assert run.point["ranks"] == 72 and "ranks_per_node" not in run.point
    assert run.metrics["bus_bandwidth"]["value"] == pytest.approx(41.36e9, rel=1e-3)
    (run,), _ = read(NCCL, ranks=72)  # a list that fits is believed
    assert run.point["ranks"] == 4
    assert read(cut, ranks=8)[1]


def test_the_test_that_only_a_user_can_name(tmp_path: Path) -> None:
    (tmp_path / "output.dat").write_text(OLD_NCCL)
    _, (refusal,), _ = read_source(tmp_path, 16)
    assert "add --test, one of all_reduce_perf, broadcast_perf, all_gather_perf" in refusal.reason
    runs, (refusal,), _ = read_source(tmp_path, 16, check_test("all_gather_perf"))
    assert not runs and "times the algorithm's, which is not that of allgather" in refusal.reason
    (tmp_path / "output.dat").write_text(OLD_NCCL.replace("20.99", "10.49"))
    (run,), _, _ = read_source(tmp_path, 16, check_test("all_gather_perf"))
    assert run.point["operation"] == "allgather"
    assert check_test("") is None and check_test("broadcast") == "broadcast"
    with pytest.raises(UserError, match="--test alltoall: must be one of all_reduce_perf"):
        check_test("alltoall")
