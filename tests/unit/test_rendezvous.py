"""The place of a rank, from what launchers set; and where ranks meet."""

import re
from pathlib import Path

import pytest

from harness.program import ProgramError
from harness.rank_variables import rank_of
from harness.rendezvous import find_meeting, leave_meeting, place_of, said_meeting

OWN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
STEP = {
    "SLURM_JOB_ID": "41", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_LOCALID": "1",
    # What a task inherits of mpirun's kind of variable.
    "PMI_RANK": "5", "PMI_SIZE": "7",
}  # fmt: skip
HYDRA = {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"}
ALONE = (0, 1, 0)


def places(name: str, *numbers: int) -> dict[str, str]:
    parts = zip(("RANK", "SIZE", "LOCAL_RANK"), map(str, numbers), strict=True)
    return {f"{name}{part}": number for part, number in parts}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({**OWN, **STEP}, (3, 4, 1)),
        (STEP, (5, 7, 1)),
        (places("HOROVOD_", 1, 2, 1), (1, 2, 1)),
        # mpirun starts its daemons with srun, and ranks inherit what these are of the step.
        ({**STEP, **places("OMPI_COMM_WORLD_", 8, 9, 2)}, (8, 9, 2)),
        (places("MV2_COMM_WORLD_", 3, 4, 1), (3, 4, 1)),
        # horovodrun in an allocation of MPI.
        ({**places("OMPI_COMM_WORLD_", 0, 1, 0), **places("HOROVOD_", 1, 2, 1)}, (1, 2, 1)),
        (HYDRA, (1, 4, 1)),  # MPICH and Intel MPI
        ({}, ALONE),
        # A batch script is no step: the program in it is one rank, whatever the job has.
        ({"SLURM_JOB_ID": "41", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, ALONE),
    ],
)
def test_the_place_of_a_rank(environ: dict[str, str], place: tuple[int, int, int]) -> None:
    assert place_of(environ) == place
    # Who numbers ranks before they meet (watch, profiles, doctor) gives them the same numbers.
    if place != ALONE:
        assert rank_of(environ) == place[0]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({**OWN, "RANK": "x"}, "RANK is 'x', not a number"),
        ({**OWN, "RANK": "4"}, "torchrun has set the number of no rank: 4 of 4"),
        ({"MASTER_PORT": "any"}, "MASTER_PORT is 'any', not a number"),
    ],
)
def test_what_is_missing_is_named(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(message)) as error:
        (place_of(environ), said_meeting(environ))
    assert error.value.code == 2


def test_rank_0_is_found_where_it_says_and_missed_by_name(tmp_path: Path) -> None:
    assert said_meeting({"MASTER_ADDR": "n7", "MASTER_PORT": "29500"}) == ("n7", 29500)
    assert said_meeting({}) == ("", 0)
    with pytest.raises(
        ProgramError, match=r"rank 0 has not said within 0 s .*meeting\.json"
    ) as late:
        find_meeting(tmp_path, 0)
    assert late.value.code == 75
    leave_meeting(tmp_path, "n7", 4711)
    assert find_meeting(tmp_path, 0) == ("n7", 4711)
    assert [path.name for path in tmp_path.iterdir()] == ["meeting.json"]


def test_a_number_counts_alone_but_for_the_general_name() -> None:
    assert rank_of({"RANK": "3"}) is None
    assert rank_of({"RANK": "3", "PMIX_RANK": "4"}) == 4
    assert rank_of({"SLURM_PROCID": "x", "FLUX_TASK_RANK": "2"}) == 2
