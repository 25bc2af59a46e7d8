"""Importing tables of collectives: OSU Micro-Benchmarks and nccl-tests, as text and JSON."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.core.errors import UserError
from scalesweep.importers.collective_logs import check_test
from scalesweep.importers.launch_words import UNKNOWN, launched
from tests.conftest import ROOT
from tests.fakes.imported_runs import Read, read_source

LOGS = ROOT / "tests/acceptance/imports/logs"
OSU, NCCL, JSON, OLD_NCCL = (
    (LOGS / name).read_text()
    for name in ("osu.txt", "nccl.txt", "nccl.json", "all_reduce_perf.txt")
)


# With -c each row says whether its results were right; with -z quantiles follow.
CHECKED = """\
mpirun -n 2 osu_allreduce -c
# OSU MPI Allreduce Latency Test v7.4
# Size       Avg Latency(us)        Validation
4                       2.00              Pass
8                       2.10              Pass        2.00      2.50     3.00
"""


def test_checked_and_short_tables_several_in_a_log_and_labels_of_srun(read: Read) -> None:
    ((run,), _) = read(CHECKED)
    assert run.samples["sweep_seconds"][:, 0, 0] == pytest.approx([2e-6, 2.1e-6])
    short = "\n# OSU MPI Broadcast Latency Test v5.8\n# Size       Avg Latency(us)\n"
    rows = "1                       1.34\n8                       1.17\n64      2.00\n"
    gather = short.replace("Broadcast", "Allgather")
    second = f"srun --ntasks=2 osu_allgather{gather}{rows}"
    ((bcast, allgather), _) = read(f"srun -n 8 osu_bcast\n{short}{rows}\nreal 0m1s\n{second}")
    assert (bcast.point["ranks"], bcast.point["operation"]) == (8, "broadcast")
    assert (allgather.point["ranks"], allgather.point["operation"]) == (2, "allgather")
    # The size of an allgather is that of its result.
    assert allgather.notes["sweep"]["values"] == [2, 16, 128]
    labelled = "".join(f"0: {line}\n" for line in NCCL.splitlines())
    runs, refusals = read(labelled)
    assert (runs[0].point["ranks"], refusals) == (4, [])


REFUSED = {
    "without ranks": (OSU.partition("\n")[2], "does not state the number of ranks"),
    "one rank": (OSU.replace("-np 4", "-np 1"), "a single rank"),
    "overlap": (OSU.replace("Allreduce", "Non-blocking Allreduce"), "only latencies"),
    "another heading": (
        OSU.replace("Allreduce", "Alltoall").replace("Avg Latency(us)", "Overall(us)"),
        "columns other than a latency",
    ),
    "bandwidths": (OSU.replace("Allreduce Latency", "Bandwidth"), "OSU MPI Bandwidth Test: only"),
    "wrong results": (CHECKED.replace("2.10              Pass", "2.10  Fail"), "size 8: wrong re"),
    "no row": (OSU.partition("4   ")[0], "a header without a row"),
    "mixed rows": (OSU + OSU.splitlines()[4] + "\n", "size 4 follows size 1048576"),
    "nccl, which test": (NCCL.replace("all_reduce_perf", "?"), "says which test"),
    "nccl, another test": (NCCL.replace("all_reduce", "alltoall"), "alltoall_perf: only"),
    "nccl, wrong": (NCCL.replace("0.11      0", "0.11      7"), "7 wrong results"),
    "json, cut": (JSON[:-40], "no whole JSON"),
    "json, of the CPU": (JSON.replace('"time":', '"cpu_time":'), "times of the CPU"),
    "json, no iteration": (JSON.replace("12.0", "0.0"), "size 8: 0 us is no time"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_trusted_is_refused(read: Read, kind: str) -> None:
    text, reason = REFUSED[kind]
    runs, (refusal,) = read(text)
    assert runs == [] and reason in refusal.message and refusal.line


COMMANDS = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row["command"][:40])
def test_what_a_command_starts(row: dict[str, Any]) -> None:
    found = launched(row["command"]) or UNKNOWN
    assert found[:2] == (row["ranks"], row["each"])
    assert "UCX_TLS" not in row["command"] or found[2] == "UCX_TLS=rc --mca a 1 -x 10"


def test_a_command_in_a_loop_is_of_all_its_tables(read: Read) -> None:
    """One command, five tables, as of a shell's loop; the next command is of the next ones."""
    table = OSU.partition("\n")[2]
    loop = "".join(table.replace("800.00", f"{800 + n}.00") for n in range(5))
    runs, refusals = read("$ mpirun -np 4 ./osu_allreduce\n" + loop + "$ mpirun -np 8 x\n" + OSU)
    assert refusals == [] and [run.point["ranks"] for run in runs] == [4] * 6
    runs, _ = read("$ mpirun -np 4 ./osu_latency\n" + OSU.replace("-np 4", "-np 8"))
    assert runs[0].point["ranks"] == 8


def test_old_tables_of_nccl_tests(read: Read) -> None:
    """Whole microseconds are no root."""
    whole = OLD_NCCL.replace("374.7   11.19", "  375   11.19").replace("20.99", "11.19")
    runs, _ = read(whole, ranks=16, name="broadcast_perf")
    (run,) = (run for run in runs if run.point["operation"] == "broadcast")
    assert run.samples["sweep_seconds"][-1, 0, 0] == pytest.approx(375e-6)
    failed = OLD_NCCL + "# Out of bounds values : 3 FAILED\n"
    _, (refusal,) = read(failed, ranks=16, name="all_gather_perf")
    assert "3 values out of bounds" in refusal.reason


def test_a_list_of_devices_that_was_cut_is_not_believed(read: Read) -> None:
    """The bus bandwidth of 4 ranks is 1.5 times the algorithm's, that of 72 ranks 1.972 times."""
    cut = NCCL.replace("20.97   31.46", "20.97   41.36")
    runs, (refusal,) = read(cut)
    assert not runs and refusal.reason.startswith("the bus bandwidth is 1.972 times the algorithm'")
    assert refusal.reason.endswith(": was the list of devices cut? add --ranks N")
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
