"""Facts of a run: what steered it, and nothing that only says where it was."""

from scalesweep.core.rank_columns import by_column
from scalesweep.tables.provenance import RunFacts, differences, group, run_facts
from tests.fakes.records import make_record


def test_where_a_run_was_is_no_fact_of_its_environment() -> None:
    """Launchers give each run another port: its environment is the same."""
    places = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "32091", "WORLD_SIZE": "2", "RANK": "0",
        "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "ROLE_WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": "none", "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "ib0",
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/x", "HOROVOD_RANK": "0", "SLURM_PROCID": "0",
    }  # fmt: skip
    steering = {"NCCL_ALGO": "Ring", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    versions = {"torch": "2.13.0", "nccl": None}
    environment = {"versions": versions, "variables": {**places, **steering}}
    facts = dict(run_facts(make_record(environment=environment, git=None)).environment)
    assert facts == {"torch": "2.13.0", **steering}


def test_environments_differ_by_what_steers_runs() -> None:
    def facts(version: str, hosts: list[str], **variables: str) -> RunFacts:
        own = {"versions": {"tensorflow": version}, "variables": variables}
        resources = {"hosts": hosts * 2, "slurm_nodes": [None] * 2}  # of two ranks
        return run_facts(by_column(make_record(environment=own, resources=resources, git=None)))

    same = group([facts("2.18.1", ["a"]), facts("2.18.1", ["b"], SLURM_JOB_ID="2")])
    assert len(same) == 1 and list(same[0].hosts) == ["a", "b"] and differences(same) == {}
    apart = group([facts("2.18.1", ["a"])] * 2 + [facts("2.17.0", ["a"])])
    assert differences(apart) == {"tensorflow": {"2.18.1": 2, "2.17.0": 1}}
    # MPI and Gloo are two ways to communicate, not two places.
    mpi = group([facts("2.18.1", ["a"]), facts("2.18.1", ["a"], HOROVOD_CONTROLLER="mpi")])
    assert list(differences(mpi)) == ["HOROVOD_CONTROLLER"]
