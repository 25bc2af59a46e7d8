"""The place of a rank and where ranks meet, from what launchers set; and ports that do not meet."""

import itertools
import re
from pathlib import Path

import pytest

from harness.program import ProgramError
from harness.rank_variables import rank_and_size
from harness.rendezvous import (
    FIRST_PORT,
    PORTS,
    find_meeting,
    first_host,
    leave_meeting,
    rendezvous,
)

OWN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
       "MASTER_ADDR": "n7", "MASTER_PORT": "29500"}  # fmt: skip
STEP = {
    "SLURM_JOB_ID": "41", "SLURM_STEP_ID": "2", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_LOCALID": "1", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    "SLURM_STEP_NODELIST": "localhost,n[2-4]",
    # What a task inherits of mpirun's kind of variable, and of the job.
    "PMI_RANK": "5", "PMI_SIZE": "7", "SLURM_JOB_NODELIST": "n0,localhost,n[2-4]",
}  # fmt: skip
UNKNOWN = {"SLURM_STEP_NODELIST": "no-such.invalid", "SLURM_LAUNCH_NODE_IPADDR": "10.1.1.1"}
ALONE = (0, 1, 0, 1)


def places(name: str, *numbers: int) -> dict[str, str]:
    parts = zip(("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"), map(str, numbers), strict=True)
    return {f"{name}{part}": number for part, number in parts}


@pytest.mark.parametrize(
    ("environ", "place", "address"),
    [
        ({**OWN, **STEP}, (3, 4, 1, 2), "n7"),
        (STEP, (5, 7, 1, 2), "localhost"),
        ({**STEP, "SLURM_NODEID": "3", "SLURM_LOCALID": "0"}, (5, 7, 0, 1), "localhost"),
        # A name that only Slurm knows.
        ({**STEP, **UNKNOWN}, (5, 7, 1, 2), "10.1.1.1"),
        (
            {**places("HOROVOD_", 1, 2, 1, 2), "HOROVOD_GLOO_RENDEZVOUS_PORT": "4711"},
            (1, 2, 1, 2), "127.0.0.1",
        ),
        # mpirun starts its daemons with srun, and ranks inherit what these are of the step.
        (
            {**STEP, **places("OMPI_COMM_WORLD_", 8, 9, 2, 3), "PMIX_NAMESPACE": "1172176897"},
            (8, 9, 2, 3), "n0",
        ),
        # MVAPICH2; and horovodrun in an allocation of MPI.
        (
            {**places("MV2_COMM_WORLD_", 3, 4, 1, 2), "MASTER_ADDR": "n5", "MASTER_PORT": "29500"},
            (3, 4, 1, 2), "n5",
        ),
        (
            {**places("OMPI_COMM_WORLD_", 0, 1, 0, 1), **places("HOROVOD_", 1, 2, 1, 2),
             "HOROVOD_GLOO_RENDEZVOUS_PORT": "4711"},
            (1, 2, 1, 2), "127.0.0.1",
        ),
        ({}, ALONE, "127.0.0.1"),
        # A batch script is no step: the program in it is one rank, whatever the job has.
        ({"SLURM_JOB_ID": "41", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, ALONE, "127.0.0.1"),
    ],
)  # fmt: skip
def test_the_six_values_of_a_rank(
    environ: dict[str, str], place: tuple[int, ...], address: str
) -> None:
    meeting = rendezvous(environ)
    assert (*meeting[:4], meeting.address) == (*place, address)
    assert meeting.variables().keys() == OWN.keys()
    # Who numbers ranks before they meet (watch, profiles, doctor) gives them the same numbers.
    if len(environ) > 3:
        assert rank_and_size(environ) == meeting[:2]
    if "MASTER_PORT" in environ:
        assert meeting.port == 29500
    elif meeting.size > 1:  # the same for every rank, and no port that connections are given
        assert meeting.port == rendezvous(environ).port in range(FIRST_PORT, FIRST_PORT + PORTS)


def test_steps_and_starts_at_the_same_time_have_ports_of_their_own() -> None:
    steps = itertools.product(range(88_000, 88_090), range(100))
    ports = [
        rendezvous({**STEP, "SLURM_JOB_ID": str(job), "SLURM_STEP_ID": str(step)}).port
        for job, step in steps
    ]
    assert len(set(ports)) == len(ports) == 9000
    starts = {
        rendezvous({**places("OMPI_COMM_WORLD_", 0, 2, 0, 2), "PMIX_NAMESPACE": name}).port
        for name in ("1172176897", "1172176898", "prterun-n1-311@1")
    }
    assert len(starts) == 3
    assert rendezvous({**STEP, "SLURM_STEP_RESV_PORTS": "12000-12002"}).port == 12000


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "started by torchrun, but LOCAL_RANK is not set"),
        ({**OWN, "RANK": "x"}, "RANK is 'x', not a number"),
        ({**OWN, "RANK": "4"}, "numbers of no rank: RANK 4, WORLD_SIZE 4"),
        ({**OWN, "MASTER_PORT": "70000"}, "MASTER_PORT is 70000, not 1 to 65535"),
        ({**STEP, "SLURM_STEP_TASKS_PER_NODE": ""}, "SLURM_STEP_TASKS_PER_NODE is ''"),
        (places("OMPI_COMM_WORLD_", 2, 4, 0, 2), "set MASTER_ADDR to its name"),
        (places("OMPI_COMM_WORLD_", 1, 2, 1, 2), "set MASTER_PORT"),
    ],
)
def test_what_is_missing_is_named(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(message)) as error:
        rendezvous(environ)
    assert error.value.code == 2


HYDRA = {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.mark.parametrize(
    ("environ", "meeting"),
    [
        (HYDRA, ("", 0)),  # MPICH and Intel MPI outside of Slurm
        ({**HYDRA, "SLURM_JOB_NODELIST": "localhost,n2"}, ("localhost", 0)),
        ({**HYDRA, "PMI_SIZE": "2"}, ("127.0.0.1", 0)),
        ({**HYDRA, "MASTER_PORT": "29500"}, ("", 29500)),
        ({**HYDRA, "MASTER_PORT": "29500", "MASTER_ADDR": "n1"}, ("n1", 29500)),
    ],
)
def test_what_no_launcher_says_is_left_to_rank_0(
    environ: dict[str, str], meeting: tuple[str, int]
) -> None:
    place = rendezvous(environ, by_file=True)
    assert (place.address, place.port, place.launcher) == (*meeting, "mpiexec")
    if "" in meeting or 0 in meeting:
        with pytest.raises(ProgramError, match=r"set MASTER_(ADDR|PORT)"):
            rendezvous(environ)


def test_rank_0_is_found_where_it_says_and_missed_by_name(tmp_path: Path) -> None:
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


def test_the_first_host_of_a_list() -> None:
    lists = {"n1": "n1", "n[004-007,9],m1": "n004", "r[0-1]n[3-5]": "r0n3", "a-1,b": "a-1"}
    assert {nodes: first_host(nodes) for nodes in lists} == lists
