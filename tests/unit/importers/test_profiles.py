"""Profiles of other tools: what is special of each format, and what is refused."""

import os
import re
import sqlite3
from pathlib import Path

import pytest

from scalesweep.analysis.profile import NOT_LISTED, Profile, parts_of
from scalesweep.core.errors import UserError
from scalesweep.importers.profiles.detect import Source, read_source
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.which_importer import kind_of
from tests.fakes import profiles as fake
from tests.fakes.mllog import values

FACTORS, FOAM, TREE, MAP, TALP, NSYS, TAU, MPI_0, MPI_2 = (
    (fake.FOLDER / name).read_text()
    for name in ("modelfactors.csv", "scorep.txt", "hpctoolkit.xml", "map.json", "talp.json",
                 "nsys_kernels.csv", "tau.txt", "mpi_profile.7.0", "mpi_profile.7.2")
)  # fmt: skip
KERNELS = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
HEAD = "Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n"
KERNEL = "75.0,3000,3,1000.0,CUDA_KERNEL,ampere_sgemm_128x64_nn\n"
COPY = "25.0,1000,1,1000.0,{},[CUDA memcpy Host-to-Device]\n"
CSV = "Time (%),Total Time (ns),Instances,Name\n60.0,600,3,gemm\n"


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


def seconds(profile: Profile) -> dict[str, float]:
    return {function.name: function.exclusive_s for function in profile.functions}


REFUSED = {
    "contradicts a factor": (
        FACTORS.replace("#Runtime (us);1000000.00;55", "#Runtime (us);1000000.00;56"),
        "the durations give",
    ),
    "cut factors": (FACTORS.partition("#Useful")[0], "cut off?"),
    "talp": (TALP.replace('ncy": 0.71', 'ncy": 0.5'), "the times of the ranks give"),
    "a rank twice": (TALP.replace('"rank": 3', '"rank": 2'), "not ranks 0 to n-1"),
    "cut talp": (TALP[:-40], "not JSON"),
    "mpitrace": (MPI_2.replace("MPI_Bcast", "PMI_Bcast"), "lines are missing"),
    "one of four ranks": (MPI_2, "1 of 4 ranks have a file"),
    "cut tau": (TAU.rpartition("MPI_")[0] + "\n", "cut off?"),
    "a kind of nsys": (HEAD + KERNEL + COPY.format("ELSE"), "'ELSE' is none of"),
    "part of two kinds": (HEAD + KERNEL, "of which kind is the rest?"),
    "a row twice": (CSV + "60.0,600,3,gemm\n", "there twice"),
    "no end": (CSV[:-1], "no end: cut off?"),
    "a row of scorep": (FOAM.replace("289.20", "829.20"), "more than all"),
    "groups of scorep": (FOAM.partition("\n\n")[0] + "\n", "lists groups only"),
    "cut scorep": (FOAM[:-20] + "\n", "a row that cannot be read"),
    "empty hpctoolkit": (re.sub("<M [^>]*/>", "", TREE), "they are in binary files"),
    "cut hpctoolkit": (TREE[:-60], "not whole XML: cut off?"),
    "no time": (TREE.replace("CPUTIME", "PAPI_TOT_CYC"), "no sum of CPUTIME"),
    "sums": (TREE.replace('n="3" v="4.5e+06"', 'n="3" v="9e+09"'), "more than all"),
    "map": (MAP.replace("1.0", "110.0", 1), "add up to 110, not 1 or 100 %"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_cut_or_contradicts_itself_is_refused(tmp_path: Path, name: str) -> None:
    text, why = REFUSED[name]
    assert why in reasons(read(tmp_path, profile=text))


def test_talp_without_mpi_or_processes(tmp_path: Path) -> None:
    # github.com/bsc-pm/dlb, talp-pages/tests/jsons/unit-tests/dlb_2gpu_0mpi.json.
    text = (
        '{"dlbVersion": "3.6.0", "resources": {"numMpiRanks": 0}, "Application": {"Global": '
        '{"numMpiRanks": 0, "elapsedTime": 6268538474, "parallelEfficiency": 0.77}}}'
    )
    assert the_one(read(tmp_path / "a", talp__json=text)).ranks == 1
    assert the_one(read(tmp_path / "b", ranks=4, talp__json=text)).ranks == 4


def test_mpitrace_of_rank_0_and_the_table_of_all(tmp_path: Path) -> None:
    table = (
        "MPI timing summary for all ranks:\n"
        "taskid       hostname     comm(s)  elapsed(s)     user(s)   system(s)    size(MB)\n"
    ) + "".join(
        f"{n:>6}  n1{s:>12.2f}       10.00        9.00\n" for n, s in enumerate((2, 3, 4, 2.5))
    )
    profile = the_one(read(tmp_path, mpi_profile__7__0=MPI_0 + table, mpi_profile__7__2=MPI_2))
    assert values(profile)["parallel_efficiency"] == pytest.approx(0.7125)
    assert "rounded to 0.01 s" in str(profile.notes["times"])


def test_tau_by_node_of_the_mean_alone_and_with_times_as_a_clock(tmp_path: Path) -> None:
    parts = parts_of(the_one(read(tmp_path, pprof__txt=TAU)), {"solver": ["solve"]})
    assert parts["solver"] == pytest.approx([7.0, 6.0, 5.0, 6.5])
    mean = the_one(read(tmp_path / "mean", ranks=4, pprof__txt=TAU[TAU.index("FUNCTION") :]))
    assert (mean.ranks, values(mean)["runtime"]) == (4, 10.0) and "load_balance" not in mean.metrics
    text = (
        TAU[TAU.index("FUNCTION") : TAU.rindex("100.0")]
        + "100.0        0.556     2:11.067           1           1  131067754 .TAU application\n"
        "100.0     1:09.130     2:11.067           1      478495  131067198 main\n"
        " 27.9       14,889       36,577      171820      171820        213 MPI_Allreduce() \n"
    )
    long = the_one(read(tmp_path / "long", ranks=2, pprof__txt=text))
    assert values(long)["runtime"] == pytest.approx(131.067)
    assert seconds(long)["main"] == pytest.approx(69.13)
    assert seconds(long)[NOT_LISTED] == pytest.approx(131.067 - 69.13 - 14.889 - 0.000556)


def test_a_table_of_kernels_and_copies_and_an_excerpt(tmp_path: Path) -> None:
    whole = the_one(read(tmp_path, sum__csv=HEAD + KERNEL + COPY.format("MEMORY_OPER")))
    assert values(whole) == pytest.approx({"kernel_time": 3e-6, "copy_time": 1e-6})
    part = the_one(read(tmp_path / "part", part__csv=CSV))
    assert seconds(part) == pytest.approx({"gemm": 600e-9, NOT_LISTED: 400e-9})


def test_files_of_several_ranks_are_one_run(tmp_path: Path) -> None:
    files = {f"report_rank{rank}__csv": NSYS for rank in range(3)}
    profile = the_one(read(tmp_path, **files))
    assert profile.ranks == 3
    assert parts_of(profile, {"gemm": ["gemm"]})["gemm"] == pytest.approx([0.6] * 3)
    (tmp_path / "source" / "report_rank1.csv").unlink()
    assert "the file of rank 1 is missing" in reasons(read_source(tmp_path / "source"))
    (two := tmp_path / "two").mkdir()
    paths = [fake.database(two / f"rank{rank}.sqlite", "nsys") for rank in range(2)]
    with sqlite3.connect(paths[1]) as database:
        for table in ("KERNEL", "MEMCPY"):
            database.execute(f"DROP TABLE CUPTI_ACTIVITY_KIND_{table}")
    idle = the_one(read_source(tmp_path / "two"))
    # Whether the second rank's GPU was idle or not recorded nobody knows.
    assert idle.ranks == 2 and "gpu_busy" not in idle.metrics
    paths[1].write_bytes(paths[1].read_bytes()[:5000])
    assert "another rank of its run is refused" in reasons(read_source(tmp_path / "two"))


def test_nvprof(tmp_path: Path) -> None:
    path = fake.database(tmp_path / "run.nvvp", "nvprof")
    whole = the_one(read_source(path))
    eigen, gemm = "void Eigen::internal::EigenMetaKernel<float>(float)", "volta_sgemm_128x64_nn"
    assert seconds(whole) == pytest.approx(
        {eigen: 2.0, gemm: 2.0, "[CUDA memcpy HtoD]": 1.0, "[CUDA memcpy DtoH]": 0.5,
         "[CUDA memcpy PtoP]": 0.25, "[CUDA memset]": 0.25}
    )  # fmt: skip
    assert whole.notes["without_times"] == "1 events, left out"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"UPDATE {KERNELS} SET end = start - 1", "ends before it begins"),
        (f"UPDATE {KERNELS} SET end = 9223372036854775807", "not a whole database"),
        ("ALTER TABLE StringTable RENAME COLUMN value TO text", "no such column"),
    ],
)
def test_databases_that_cannot_be(tmp_path: Path, statement: str, words: str) -> None:
    path = fake.database(tmp_path / "odd.nvvp", "nvprof", statement)
    assert words in reasons(read_source(path))
    fake.database(path, "nvprof")
    os.truncate(path, path.stat().st_size - 3000)
    assert "not a whole database" in reasons(read_source(path))


def test_score_p_and_hpctoolkit_are_sums_over_all_threads(tmp_path: Path) -> None:
    foam = the_one(read(tmp_path, ranks=72, a=FOAM))
    assert seconds(foam)["MPI_Allreduce"] == pytest.approx(289.20 / 72)
    assert foam.notes["not_listed"] == "14.8 % of the time is in no row"
    # Of an excerpt the groups say how much is MPI.
    assert parts_of(foam)["mpi"].sum() == pytest.approx(1003.25 / 72)
    tree = the_one(read(tmp_path / "tree", ranks=2, a=TREE))
    times = {it.name: (it.exclusive_s, it.inclusive_s) for it in tree.functions}
    assert times == {"main": (0.5, 5.0), "solve": (2.0, 4.5), "MPI_Allreduce": (2.5, 2.5)}
    less = the_one(read(tmp_path / "map", a=MAP.replace("0.5", "0.25", 1)))
    assert seconds(less)[NOT_LISTED] == pytest.approx(20 * 0.25 / 4)


def test_files_that_are_no_text_say_what_is_read_instead(tmp_path: Path) -> None:
    expected = {
        "profile.cubex": "scorep-score -r profile.cubex", "a.nsys-rep": "nsys stats a.nsys-rep",
        "b.map": "map --export=FILE.json b.map", "cct.db": "experiment.xml", "c.ncu-rep": "`nsys`",
    }  # fmt: skip
    for name in expected:
        (tmp_path / name).write_bytes(b"\0\1binary")
    for refusal in read_source(tmp_path).refusals:
        assert expected.pop(refusal.file.name) in refusal.reason
    assert not expected
    with pytest.raises(UserError, match=r"profile.cubex: Score-P's CUBE files are not read"):
        kind_of(tmp_path / "profile.cubex")
