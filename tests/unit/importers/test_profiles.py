"""Profiles of other tools: each format's numbers, and what is refused."""

import json
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from scalesweep.analysis.pop import PYPOP, Replay, pop_factors
from scalesweep.analysis.profile import Function, Message, Profile, parts_of, union_length
from scalesweep.core.errors import UserError
from scalesweep.importers.profiles.detect import Source, read_source
from scalesweep.importers.profiles.profile_runs import runs_of
from scalesweep.importers.rank_map import RankMap
from tests.fakes import profiles as fake

MEAN = sum(fake.USEFUL) / 4


def read(tmp_path: Path, ranks: int | None = None, **files: str) -> Source:
    """Profiles of files by name; a double underscore stands for a point."""
    folder = tmp_path / "source"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return read_source(folder, RankMap({}, ranks))


def the_one(source: Source) -> Profile:
    assert not source.refusals
    (profile,) = source.profiles
    return profile


def reasons(source: Source) -> str:
    assert not source.profiles
    return "\n".join(refusal.message for refusal in source.refusals)


def test_the_two_variants_of_serialisation_and_transfer() -> None:
    # The 16 processes of numericalalgorithmsgroup/pypop's example.
    times = 2.22611973, 2.24298113, 2.33956072
    replay = Replay(2.31033596, 2.26304022)
    ours = pop_factors(*times, replay)
    assert (round(ours.load_balance, 6), round(ours.communication, 6)) == (0.992483, 0.958719)
    assert (round(ours.serialisation or 0, 6), round(ours.transfer or 0, 6)) == (0.979529, 0.978755)
    assert round(ours.parallel, 6) == 0.951512 and ours.variant == "modelfactors"
    theirs = pop_factors(*times, replay, PYPOP)
    assert (round(theirs.serialisation or 0, 4), round(theirs.transfer or 0, 4)) == (0.9708, 0.9875)
    for wrong in ((2.0, 1.0, 3.0), (1.0, 1.0, 0.0), (float("nan"), 1.0, 1.0)):
        with pytest.raises(ValueError, match=r"useful time|positive"):
            pop_factors(*wrong)


def test_modelfactors_are_computed_from_the_durations(tmp_path: Path) -> None:
    source = read(tmp_path, modelfactors__csv=fake.modelfactors())
    assert [profile.ranks for profile in source.profiles] == [2, 4, 8]
    last = source.profiles[-1]
    values = {name: metric["value"] for name, metric in last.metrics.items()}
    assert values["load_balance"] == pytest.approx(0.24 / 0.26)
    assert values["serialisation_efficiency"] == pytest.approx(0.265 / 0.28)
    assert values["serialisation_efficiency"] * values["transfer_efficiency"] == pytest.approx(
        values["communication_efficiency"]
    )
    assert values["computation_scaling"] == pytest.approx(0.9 * 2 / (0.24 * 8))
    assert values["speedup"] == pytest.approx(1 / 0.3)
    assert "modelfactors: serialisation = max u' / T'" in str(last.notes["communication_split"])


def test_modelfactors_that_contradict_themselves_are_refused(tmp_path: Path) -> None:
    text = fake.modelfactors()
    swapped = text.replace(
        "#Runtime (us);1000000.00;550000.00", "#Runtime (us);1000000.00;560000.00"
    )
    assert "the durations give" in reasons(read(tmp_path, m__csv=swapped))
    assert "cut off?" in reasons(read(tmp_path, m__csv=text[: text.index("#Useful")]))
    assert "a second line" in reasons(read(tmp_path, m__csv=text + "Speedup;1;2;3\n"))
    assert "is not a number" in reasons(read(tmp_path, m__csv=text.replace("550000.00", "5500oo")))


def test_talp_gives_the_factors_of_its_ranks(tmp_path: Path) -> None:
    profile = the_one(read(tmp_path, talp__json=fake.talp()))
    assert profile.ranks == 4 and profile.factors and profile.rank_times
    assert profile.factors.load_balance == pytest.approx(MEAN / 8)
    assert profile.factors.communication == pytest.approx(0.8)
    assert profile.metrics["parallel_efficiency"]["value"] == pytest.approx(MEAN / 10)
    assert profile.rank_times.mpi == pytest.approx([2.0, 3.0, 4.0, 2.5])
    # Older: regions in a list, without processes; what TALP states is taken as it is.
    old = {"popMetrics": [{"name": "Global", "elapsedTime": 10**10, "parallelEfficiency": 0.71,
                           "communicationEfficiency": 0.8, "loadBalance": 0.89}]}  # fmt: skip
    stated = the_one(read(tmp_path / "old", ranks=4, talp__json=json.dumps(old)))
    assert stated.metrics["load_balance"]["value"] == 0.89 and stated.factors is None


def test_talp_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    assert "the times of the ranks give" in reasons(read(tmp_path, t__json=fake.talp(stated=0.5)))
    twice = fake.talp().replace('"rank": 3', '"rank": 2')
    assert "not ranks 0 to n-1" in reasons(read(tmp_path, t__json=twice))
    assert "not JSON" in reasons(read(tmp_path, t__json=fake.talp()[:-40]))


def test_talp_of_a_program_without_mpi_is_one_process(tmp_path: Path) -> None:
    # github.com/bsc-pm/dlb, talp-pages/tests/jsons/unit-tests/dlb_2gpu_0mpi.json.
    text = json.dumps({"dlbVersion": "3.6.0", "resources": {"numCpus": 2, "numMpiRanks": 0},
                       "Application": {"Global": {"numMpiRanks": 0, "elapsedTime": 6268538474,
                                                  "parallelEfficiency": 0.77}}})  # fmt: skip
    assert the_one(read(tmp_path / "a", talp__json=text)).ranks == 1
    assert the_one(read(tmp_path / "b", ranks=4, talp__json=text)).ranks == 4


def test_mpitrace_of_every_rank(tmp_path: Path) -> None:
    files = {f"mpi_profile__7__{rank}": fake.mpitrace(rank) for rank in range(4)}
    profile = the_one(read(tmp_path, **files))
    assert profile.ranks == 4 and profile.factors
    assert profile.factors.load_balance == pytest.approx(MEAN / 8)
    assert profile.factors.communication == pytest.approx(0.8)
    assert profile.factors.parallel == pytest.approx(MEAN / 10)
    small, large = profile.messages
    assert (small.size, large.size, large.mean_s) == (8.0, 4194304.0, pytest.approx(0.005))
    assert large.bus_bandwidth(4) == pytest.approx(large.algorithm_bandwidth * 1.5)


def test_mpitrace_of_rank_0_and_the_table_of_all(tmp_path: Path) -> None:
    some = {
        "mpi_profile__7__0": fake.mpitrace(0, table=True),
        "mpi_profile__7__2": fake.mpitrace(2),
    }
    profile = the_one(read(tmp_path, **some))
    assert profile.factors and profile.factors.parallel == pytest.approx(MEAN / 10)
    assert "rounded to 0.01 s" in str(profile.notes["times"])
    alone = read(tmp_path / "other", mpi_profile__7__2=fake.mpitrace(2))
    assert "1 of 4 ranks have a file" in reasons(alone)
    less = fake.mpitrace(2).replace("MPI_Bcast", "PMI_Bcast")
    assert "lines are missing" in reasons(read(tmp_path / "less", mpi_profile__7__2=less))


def test_tau_by_node_and_of_the_mean_alone(tmp_path: Path) -> None:
    profile = the_one(read(tmp_path, pprof__txt=fake.tau()))
    assert profile.ranks == 4 and profile.factors
    assert profile.factors.parallel == pytest.approx(MEAN / 10)
    parts = parts_of(profile, {"mpi": ["^MPI_"], "solver": ["solve"]})
    assert parts["mpi"] == pytest.approx([2.0, 3.0, 4.0, 2.5])
    assert parts["solver"] == pytest.approx([7.0, 6.0, 5.0, 6.5])
    assert parts["other"] == pytest.approx([1.0] * 4)
    mean = the_one(read(tmp_path / "mean", ranks=4, pprof__txt=fake.tau(nodes=False)))
    assert mean.ranks == 4 and mean.factors is None and mean.elapsed_s == 10.0


# What nsys stats prints in one go: argonne-lcf/ALCFBeginnersGuide, polaris, BabelStream under
# nsys --stats=true (two of the kernels).
BABEL_STREAM = """\
[6/8] Executing 'cuda_gpu_kern_sum' stats report

 Time (%)  Total Time (ns)  Instances  Avg (ns)   Med (ns)   Min (ns)  Max (ns)  StdDev (ns)                     Name
 --------  ---------------  ---------  ---------  ---------  --------  --------  -----------  -----------------------------------------
     50.3       38,722,376        100  387,223.8  387,005.5   382,910   391,837      1,786.4  void dot_kernel<double>(const T1 *, int)
     49.7       38,259,881        100  382,598.8  382,462.0   381,501   395,134      1,376.8  void copy_kernel<double>(const T1 *, T1 *)

[7/8] Executing 'cuda_gpu_mem_time_sum' stats report

 Time (%)  Total Time (ns)  Count  Avg (ns)   Med (ns)  Min (ns)   Max (ns)   StdDev (ns)           Operation
 --------  ---------------  -----  ---------  --------  --------  ----------  -----------  ----------------------------
    100.0       66,303,506    103  643,723.4   2,432.0     2,400  22,998,241  3,722,456.6  [CUDA memcpy Device-to-Host]

[8/8] Executing 'cuda_gpu_mem_size_sum' stats report

 Total (MB)  Count  Avg (MB)  Med (MB)  Min (MB)  Max (MB)  StdDev (MB)           Operation
 ----------  -----  --------  --------  --------  --------  -----------  ----------------------------
    805.652    103     7.822     0.003     0.003   268.435       45.360  [CUDA memcpy Device-to-Host]

Generated:
    /home/jkwack/ALCFBeginnersGuide/polaris/examples/BabelStream/build_polaris/nsys-BableStream.nsys-rep
"""  # noqa: E501  (as it is printed)


@pytest.mark.parametrize("blank", [True, False])
def test_several_tables_of_nsys_stats(tmp_path: Path, blank: bool) -> None:
    """Times of kernels and copies count; the table of the copies' sizes is of something else."""
    text = BABEL_STREAM if blank else BABEL_STREAM.replace("\n\n", "\n")
    profile = the_one(read(tmp_path, stats__txt=text))
    assert profile.metrics["kernel_time"]["value"] == pytest.approx((38_722_376 + 38_259_881) / 1e9)
    assert profile.metrics["copy_time"]["value"] == pytest.approx(66_303_506e-9)
    assert len(profile.functions) == 3


def test_tau_writes_long_times_as_a_clock(tmp_path: Path) -> None:
    rows = (
        "100.0        0.556     2:11.067           1           1  131067754 .TAU application\n"
        "100.0     1:09.130     2:11.067           1      478495  131067198 main\n"
        " 27.9       14,889       36,577      171820      171820        213 MPI_Allreduce() \n"
        "  0.0            1            1           4           0        250 tiny\n"
    )
    text = f"FUNCTION SUMMARY (mean):\n{fake.TAU_HEAD}{rows}"
    profile = the_one(read(tmp_path, ranks=2, pprof__txt=text))
    assert profile.elapsed_s == pytest.approx(131.067)
    assert {one.name: one.exclusive_s for one in profile.functions}["main"] == pytest.approx(69.13)
    lines = text.splitlines(keepends=True)
    lines[-4], lines[-2] = lines[-2], lines[-4]
    assert "lines are missing or swapped" in reasons(read(tmp_path, pprof__txt="".join(lines)))


def test_horovod_sums_and_unions(tmp_path: Path) -> None:
    profile = the_one(read(tmp_path, timeline__json=fake.timeline()))
    phases = {phase.name: phase for phase in profile.phases}
    assert profile.ranks == 4
    negotiate, call = phases["NEGOTIATE_ALLREDUCE"], phases["MPI_ALLREDUCE"]
    assert (negotiate.count, negotiate.sum_s) == (9, pytest.approx(900e-6))
    assert negotiate.union_s == pytest.approx(3 * (150 + 100) * 1e-6)
    assert call.sum_s == pytest.approx(3 * 800e-6)
    assert call.union_s == pytest.approx(3 * (310 + 200) * 1e-6)  # fused tensors count once
    small, fused = profile.messages
    assert (small.size, small.count, fused.size, fused.count) == (8, 3, 4096, 3)
    assert fused.mean_s == pytest.approx(310e-6) and fused.std_s == pytest.approx(0, abs=1e-12)
    assert fused.bus_bandwidth(4) == pytest.approx(4096 / 310e-6 * 1.5)


@pytest.mark.parametrize("call", ["NCCL_ALLREDUCE", "GLOO_ALLREDUCE", "CCL_ALLREDUCE"])
def test_horovod_calls_of_any_library(tmp_path: Path, call: str) -> None:
    """Names of calls: horovod/horovod, horovod/common/common.h."""
    text = fake.timeline(ranks=8).replace("MPI_ALLREDUCE", call)
    profile = the_one(read(tmp_path, timeline__json=text))
    _, fused = profile.messages
    assert fused.operation == call
    assert fused.bus_bandwidth(8) == pytest.approx(4096 / 310e-6 * 1.75)


def test_horovods_hierarchical_calls_have_no_bus_bandwidth(tmp_path: Path) -> None:
    """NCCL within each node, MPI between them (horovod/common/ops/nccl_operations.cc,
    NCCLHierarchicalAllreduce): how many ranks take part in each is not known."""
    own = '"name": "MPI_ALLREDUCE"'
    lines = []
    for line in fake.timeline(ranks=8).splitlines():
        if own in line:
            event = json.loads(line.rstrip(","))
            inside = {**event, "name": "NCCL_REDUCESCATTER", "ts": event["ts"] - 4}
            end = {"ph": "E", "ts": event["ts"] - 2, "pid": event["pid"]}
            lines += [json.dumps(inside) + ",", json.dumps(end) + ","]
        lines.append(line)
    profile = the_one(read(tmp_path, timeline__json="\n".join(lines)))
    assert {one.operation for one in profile.messages} == {"NCCL_REDUCESCATTER", "MPI_ALLREDUCE"}
    assert {one.bus_bandwidth(8) for one in profile.messages} == {None}
    made = runs_of([profile], tmp_path)
    calls = [run for run in made.runs if run.benchmark.startswith("messages_")]
    assert len(calls) == len(profile.messages)
    assert all("bus_bandwidth" not in run.metrics for run in calls)
    assert all(run.metrics["algorithm_bandwidth"]["value"] > 0 for run in calls)


def test_a_timeline_that_was_never_closed(tmp_path: Path) -> None:
    whole = the_one(read(tmp_path, timeline__json=fake.timeline()))
    text = fake.timeline(closed=False)
    for end in (len(text), len(text) - 20):
        cut = the_one(read(tmp_path / str(end), timeline__json=text[:end]))
        assert "unclosed" in cut.notes
        assert cut.phases[0] == whole.phases[0]
    # The last event is lost: what it would have ended is not counted.
    assert cut.notes["unfinished"] == "1 phases had begun and not ended: not counted"
    lines = fake.timeline().splitlines()
    begins = [place for place, line in enumerate(lines) if '"ph": "B"' in line]
    swapped = list(lines)
    swapped[begins[0]], swapped[begins[0] + 5] = lines[begins[0] + 5], lines[begins[0]]
    assert "ends what has not begun" in reasons(
        read(tmp_path / "s", timeline__json="\n".join(swapped))
    )
    del lines[begins[0] + 5]
    assert "lines are missing" in reasons(read(tmp_path / "s", timeline__json="\n".join(lines)))


def test_nsys_tables(tmp_path: Path) -> None:
    for name, text in (("kernels__csv", fake.nsys_csv()), ("kernels__txt", fake.nsys_text())):
        profile = the_one(read(tmp_path / name, **{name: text}))
        assert profile.metrics["kernel_time"]["value"] == pytest.approx(1.0)
        patterns = {"gemm": ["gemm"], "nccl": ["nccl"]}
        parts = {k: float(v[0]) for k, v in parts_of(profile, patterns).items()}
        assert parts == pytest.approx({"gemm": 0.6, "nccl": 0.1, "other": 0.3})


def test_nsys_tables_of_several_ranks_are_one_run(tmp_path: Path) -> None:
    files = {f"report_rank{rank}__csv": fake.nsys_csv(1 + rank) for rank in range(3)}
    profile = the_one(read(tmp_path, **files))
    assert profile.ranks == 3
    assert parts_of(profile, {"gemm": ["gemm"]})["gemm"] == pytest.approx([0.6, 1.2, 1.8])
    (tmp_path / "source" / "report_rank1.csv").unlink()
    assert "the file of rank 1 is missing" in reasons(read_source(tmp_path / "source"))


def test_an_exported_database(tmp_path: Path) -> None:
    path = fake.nsys_sqlite(tmp_path / "report.sqlite")
    profile = the_one(read_source(path))
    (gpu,) = profile.phases
    assert (gpu.sum_s, gpu.union_s) == (pytest.approx(7.0), pytest.approx(6.0))
    assert profile.metrics["gpu_busy"]["value"] == pytest.approx(0.6)
    assert profile.notes["diagnostics"] == "No OpenMP data was collected"
    path.write_bytes(path.read_bytes()[:5000])
    assert "not a whole database" in reasons(read_source(path))


def test_launches_of_cuda_graphs_are_work_of_the_gpu(tmp_path: Path) -> None:
    path = fake.nsys_sqlite(tmp_path / "report.sqlite")
    with sqlite3.connect(path) as database:
        database.executescript(
            """
            CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, graphId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (5000000000, 8000000000, 7);
            """
        )
    profile = the_one(read_source(path))
    assert profile.metrics["gpu_busy"]["value"] == pytest.approx(0.9)
    assert profile.metrics["kernel_time"]["value"] == pytest.approx(9.0)
    graphs = [function for function in profile.functions if "graph" in function.name]
    assert [(graph.name, graph.exclusive_s) for graph in graphs] == [("[CUDA graph 7]", 3.0)]
    assert "--cuda-graph-trace=node" in str(profile.notes["graphs"])


def test_a_table_of_kernels_and_copies_says_what_each_is(tmp_path: Path) -> None:
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n"
    text = f"{head}75.0,3000,3,1000.0,CUDA_KERNEL,ampere_sgemm_128x64_nn\n"
    copy = "25.0,1000,1,1000.0,{},[CUDA memcpy Host-to-Device]\n"
    profile = the_one(read(tmp_path, **{"sum.csv": text + copy.format("MEMORY_OPER")}))
    assert profile.metrics["kernel_time"]["value"] == pytest.approx(3e-6)
    assert profile.metrics["copy_time"]["value"] == pytest.approx(1e-6)
    for folder in ("part", "other"):
        (tmp_path / folder).mkdir()
    assert "of which kind the rest is" in reasons(read(tmp_path / "part", **{"sum.csv": text}))
    other = read(tmp_path / "other", **{"sum.csv": text + copy.format("ELSE")})
    assert "'ELSE' is no category" in reasons(other)


def test_no_rank_of_a_run_is_left_out_of_it(tmp_path: Path) -> None:
    files = [fake.nsys_sqlite(tmp_path / f"rank{rank}.sqlite") for rank in range(2)]
    assert the_one(read_source(tmp_path)).metrics["gpu_busy"]["value"] == pytest.approx(0.6)
    with sqlite3.connect(files[1]) as database:
        for table in ("KERNEL", "MEMCPY"):
            database.execute(f"DROP TABLE CUPTI_ACTIVITY_KIND_{table}")
    idle = the_one(read_source(tmp_path))
    # Whether the second rank's GPU was idle or not recorded nobody knows.
    assert idle.ranks == 2 and "gpu_busy" not in idle.metrics
    files[1].write_bytes(files[1].read_bytes()[:5000])
    source = read_source(tmp_path)
    assert not source.profiles and "another rank of its run is refused" in reasons(source)


def test_a_database_runs_no_view_of_a_stranger(tmp_path: Path) -> None:
    path = tmp_path / "evil.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS "
            "(SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end FROM n"
        )
    assert "has a row" in reasons(read_source(path))


def test_profiles_become_runs_and_messages_points_by_size(tmp_path: Path) -> None:
    source = read(tmp_path, timeline__json=fake.timeline(), talp__json=fake.talp())
    made = runs_of(source.profiles, tmp_path / "source")
    names = [run.benchmark for run in made.runs]
    assert sorted(names) == [
        "messages_horovod_timeline", "messages_horovod_timeline", "profile_horovod_timeline",
        "profile_talp",
    ]  # fmt: skip
    sizes = [run.point["message_bytes"] for run in made.runs if "message_bytes" in run.point]
    assert sizes == [8.0, 4096.0]
    run = made.runs[names.index("profile_horovod_timeline")]
    assert run.metrics["mpi_allreduce_union"]["value"] == pytest.approx(1530e-6)
    assert run.metrics["reduction_share"]["value"] == pytest.approx(0.051)
    assert [one.benchmark for one in made.runs if "timeline" in one.notes] == [run.benchmark]
    assert made.runs[names.index("profile_talp")].samples["profile_useful"] == pytest.approx(
        list(fake.USEFUL)
    )
    nothing = read(tmp_path / "none", pprof__txt=fake.tau(nodes=False))
    assert "add --ranks N" in runs_of(nothing.profiles, tmp_path).refusals[0].message


def test_union_of_intervals_and_parts() -> None:
    assert union_length([(0, 2), (1, 3), (3, 4), (10, 11)]) == 5
    assert union_length([]) == 0
    functions = tuple(
        Function(name, rank, kind, 1, seconds, seconds)
        for name, rank, kind, seconds in (
            ("MPI_Wait", 0, "cpu", 1.0), ("MPI_Wait", 1, "cpu", 2.0), ("f", 1, "cpu", 3.0),
            ("cudaLaunch", 0, "api", 9.0), ("f", None, "cpu", 5.0),
        )
    )  # fmt: skip
    parts = parts_of(Profile("x", Path("x"), functions=functions))
    assert {name: list(values) for name, values in parts.items()} == {
        "mpi": [1.0, 2.0], "other": [0.0, 3.0],
    }  # fmt: skip
    assert np.isclose(Message("NCCL_ALLGATHER", 800, 1, 1e-3).algorithm_bandwidth, 8e5)


def test_what_is_no_profile(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    assert read_source(tmp_path) == Source([], [], [tmp_path / "notes.txt"])
    with pytest.raises(UserError, match="no such file"):
        read_source(tmp_path / "nothing")


def test_files_without_an_end_and_absurd_numbers_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "{\x1b[31m"
    folder.mkdir()
    (folder / "good\n.json").write_text(fake.talp())
    os.mkfifo(folder / "pipe.json")
    (folder / "zero.csv").symlink_to("/dev/zero")
    digits = fake.timeline().replace('"ts": 100', '"ts": ' + "9" * 5000, 1)
    (folder / "digits.json").write_text(digits)
    source = read_source(folder)
    assert [one.file.name for one in source.profiles] == ["good\n.json"]
    assert {one.file.name: str(one.message).split(": ", 1)[1] for one in source.refusals} == {
        **dict.fromkeys(("pipe.json", "zero.csv"), "not a regular file"),
        "digits.json": "not a JSON array of events: damaged",
    }
