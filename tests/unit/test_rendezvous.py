"""The place of a rank, from what launchers set; and where ranks meet."""

import re
from pathlib import Path

import pytest

from harness.program import ProgramError
from harness.rank_variables import rank_and_size
from harness.rendezvous import find_meeting, leave_meeting, place_of, said_meeting

OWN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
STEP = {
    "SLURM_JOB_ID": "41", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_LOCALID": "1", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    # What a task inherits of mpirun's kind of variable.
    "PMI_RANK": "5", "PMI_SIZE": "7",
}  # fmt: skip
HYDRA = {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
ALONE = (0, 1, 0, 1, "")


def places(name: str, *numbers: int) -> dict[str, str]:
    parts = zip(("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"), map(str, numbers), strict=True)
    return {f"{name}{part}": number for part, number in parts}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({**OWN, **STEP}, (3, 4, 1, 2, "torchrun")),
        (STEP, (5, 7, 1, 2, "srun")),
        ({**STEP, "SLURM_NODEID": "3", "SLURM_LOCALID": "0"}, (5, 7, 0, 1, "srun")),
        (places("HOROVOD_", 1, 2, 1, 2), (1, 2, 1, 2, "horovodrun")),
        # mpirun starts its daemons with srun, and ranks inherit what these are of the step.
        ({**STEP, **places("OMPI_COMM_WORLD_", 8, 9, 2, 3)}, (8, 9, 2, 3, "mpirun")),
        (places("MV2_COMM_WORLD_", 3, 4, 1, 2), (3, 4, 1, 2, "mpirun")),
        # horovodrun in an allocation of MPI.
        (
            {**places("OMPI_COMM_WORLD_", 0, 1, 0, 1), **places("HOROVOD_", 1, 2, 1, 2)},
            (1, 2, 1, 2, "horovodrun"),
        ),
        (HYDRA, (1, 4, 1, 2, "mpiexec")),  # MPICH and Intel MPI
        ({}, ALONE),
        # A batch script is no step: the program in it is one rank, whatever the job has.
        ({"SLURM_JOB_ID": "41", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, ALONE),
    ],
)
def test_the_place_of_a_rank(
    environ: dict[str, str], place: tuple[int, int, int, int, str]
) -> None:
    assert place_of(environ) == place
    # Who numbers ranks before they meet (watch, profiles, doctor) gives them the same numbers.
    if len(environ) > 3:
        assert rank_and_size(environ) == place[:2]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "started by torchrun, but LOCAL_RANK is not set"),
        ({**OWN, "RANK": "x"}, "RANK is 'x', not a number"),
        ({**OWN, "RANK": "4"}, "torchrun has set numbers of no rank: rank 4 of 4"),
        ({**STEP, "SLURM_STEP_TASKS_PER_NODE": ""}, "SLURM_STEP_TASKS_PER_NODE is ''"),
        ({"MASTER_PORT": "70000"}, "MASTER_PORT is 70000, not 1 to 65535"),
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
    assert rank_and_size({"RANK": "3"}) == (None, None)
    assert rank_and_size({"RANK": "3", "PMIX_RANK": "4"}) == (4, None)
    assert rank_and_size({"SLURM_PROCID": "x", "FLUX_TASK_RANK": "2"}) == (2, None)
