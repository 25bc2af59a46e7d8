"""Profiles of Score-P, HPCToolkit and MAP: their numbers, and what is refused."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.analysis.profile import NOT_LISTED, Profile, parts_of
from scalesweep.core.errors import UserError
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.which_importer import kind_of
from tests.fakes import hpc_profiles as fake


@pytest.fixture
def profile_of(tmp_path: Path) -> Callable[..., Profile]:
    def read(text: str, ranks: int | None = None) -> Profile:
        path = tmp_path / "profile"
        path.write_text(text)
        source = read_source(path, RankMap({}, ranks))
        assert not source.refusals and not source.others
        (profile,) = source.profiles
        return profile

    return read


@pytest.fixture
def reason_of(tmp_path: Path) -> Callable[..., str]:
    def read(text: str, ranks: int | None = None) -> str:
        path = tmp_path / "profile"
        path.write_text(text)
        source = read_source(path, RankMap({}, ranks))
        assert not source.profiles
        (refusal,) = source.refusals
        return refusal.message

    return read


def shares(profile: Profile) -> dict[str, float]:
    parts = parts_of(profile)
    total = sum(float(seconds.sum()) for seconds in parts.values())
    return {part: float(seconds.sum()) / total for part, seconds in parts.items()}


def test_score_p_prints_sums_over_all_threads(profile_of: Callable[..., Profile]) -> None:
    profile = profile_of(fake.SCOREP_FOAM, 72)
    reduce = next(it for it in profile.functions if it.name == "MPI_Allreduce")
    assert reduce.calls == pytest.approx(11_935_368 / 72) and reduce.inclusive_s is None
    assert reduce.exclusive_s == pytest.approx(289.20 / 72)
    assert profile.metrics["profiled_time"]["value"] == pytest.approx(1916.23 / 72)
    # Of an excerpt the groups say how much is MPI.
    assert profile.metrics["mpi_time"]["value"] == pytest.approx(1003.25 / 72)
    assert shares(profile)["mpi"] == pytest.approx(1003.25 / 1916.23)
    assert profile.notes["not_listed"] == "14.8 % of the time is in no row"
    bt = profile_of(fake.SCOREP_BT, 8)
    assert [it.name for it in bt.functions[:2]] == ["matmul_sub", "matvec_sub"]
    assert shares(bt) == pytest.approx({"mpi": 1.9 / 1081.3, "other": 1 - 1.9 / 1081.3})
    assert profile_of(fake.SCOREP_FOAM).ranks is None  # asked for by --ranks


def test_hpctoolkit_counts_recursion_once_and_what_is_below_mpi(
    profile_of: Callable[..., Profile],
) -> None:
    for unit in ("usec", "sec"):
        profile = profile_of(fake.hpctoolkit(unit), 2)
        times = {it.name: (it.exclusive_s, it.inclusive_s) for it in profile.functions}
        assert times == {"main": (0.5, 5.0), "solve": (2.0, 4.5), "MPI_Allreduce": (2.5, 2.5)}
        assert profile.metrics["mpi_time"]["value"] == pytest.approx(2.5)
        assert shares(profile) == pytest.approx({"mpi": 0.5, "other": 0.5})


def test_the_activities_of_map(profile_of: Callable[..., Profile]) -> None:
    for scale in (1.0, 100.0):
        profile = profile_of(fake.map_json(scale))
        assert profile.ranks == 4 and profile.elapsed_s == 20.0
        assert {it.name: it.exclusive_s for it in profile.functions} == pytest.approx(
            {"normal_compute": 10.0, "point_to_point_mpi": 5.0, "collective_mpi": 3.75,
             "io_reads": 1.25}
        )  # fmt: skip
        assert shares(profile)["mpi"] == pytest.approx(8.75 / 20)
    less = profile_of(fake.map_json(0.5))
    assert less.functions[-1].name == NOT_LISTED and less.functions[-1].exclusive_s == 10.0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (fake.SCOREP_FOAM.replace("289.20", "829.20"), "states 15.1 % of all"),
        (fake.SCOREP_FOAM.replace(" 15.1 ", " 51.1 "), "states 51.1 % of all"),
        (fake.SCOREP_FOAM + fake.SCOREP_FOAM, "a second table"),
        (fake.SCOREP_FOAM.partition("\n\n")[0] + "\n", "lists groups only"),
        (fake.SCOREP_FOAM + fake.SCOREP_FOAM.splitlines()[6] + "\n", "more than all"),
        (fake.SCOREP_FOAM[:-20] + "\n", "a row that cannot be read"),
        (fake.SCOREP_FOAM[:-20], "no line end"),
        ("\n".join(fake.SCOREP_FOAM.splitlines()[:1]) + "\n", "no row of ALL"),
        (fake.hpctoolkit(numbers=False), "they are in binary files"),
        (fake.hpctoolkit()[:-60], "not whole XML: cut off?"),
        (fake.hpctoolkit().replace("CPUTIME", "PAPI_TOT_CYC"), "no sum of CPUTIME"),
        (fake.hpctoolkit().replace('n="3" v="4.5e+06"', 'n="3" v="9e+09"'), "more than all"),
        (fake.hpctoolkit().replace('v="1e+07"', 'v="nan"', 1), "a value of 'nan'"),
        (
            fake.hpctoolkit().replace("]>", '<!ENTITY a "b"><!ENTITY c "&a;&a;">]>', 1),
            "defines entities",
        ),
        (fake.map_json()[:-9] + "\n", "not JSON"),
        (fake.map_json(number_of_processes=0), "no samples, no processes"),
        (fake.map_json(runtime="x"), "damaged"),
        (fake.map_json(110.0), "add up to 110, not 1 or 100 %"),
        (fake.map_json(-1.0), "not 1 or 100 %"),
        (fake.map_json().replace("0.25", "NaN", 1), "not 1 or 100 %"),
        (fake.map_json().replace('"main_thread"', '"others"'), "samples.activity.main_thread"),
    ],
)
def test_what_contradicts_itself_is_refused(
    reason_of: Callable[..., str], text: str, why: str
) -> None:
    assert why in reason_of(text)


def test_ranks_that_disagree(reason_of: Callable[..., str]) -> None:
    assert "has 4 processes, but --ranks 8" in reason_of(fake.map_json(), 8)


def test_damaged_files_are_read_or_refused_and_never_end_the_import(tmp_path: Path) -> None:
    draw = random.Random(1)
    for text in (fake.SCOREP_BT, fake.hpctoolkit(), fake.map_json()):
        for place in range(60):
            cut = list(text)
            for _ in range(place % 4):
                cut[draw.randrange(len(cut))] = draw.choice('0 9,.-\\<>"{}[]\n\0\u2028e')
            end = len(cut) if place % 3 else draw.randrange(len(cut))
            path = tmp_path / f"{place}"
            path.write_text("".join(cut[:end]))
        source = read_source(tmp_path)
        assert len(source.profiles) + len(source.refusals) + len(source.others) == 60


def test_files_that_are_no_text_say_what_is_read_instead(tmp_path: Path) -> None:
    expected = {
        "profile.cubex": "scorep-score -r profile.cubex", "a.nsys-rep": "nsys stats a.nsys-rep",
        "b.map": "map --export=FILE.json b.map", "cct.db": "experiment.xml", "c.ncu-rep": "`nsys`",
    }  # fmt: skip
    for name in expected:
        (tmp_path / name).write_bytes(b"\0\1binary")
    source = read_source(tmp_path)
    assert not source.others and not source.profiles
    reasons = {refusal.file.name: refusal.reason for refusal in source.refusals}
    assert all(words in reasons[name] for name, words in expected.items())
    with pytest.raises(UserError, match=r"profile.cubex: Score-P's CUBE files are not read"):
        kind_of(tmp_path / "profile.cubex")
