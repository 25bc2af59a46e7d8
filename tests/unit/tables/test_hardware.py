"""Facts of runs: kinds of hosts, ranks with unlike hardware, environments and what steers them."""

from typing import Any

from scalesweep.core.rank_columns import by_column
from scalesweep.tables.hardware import Hardware, hosts_of, machines, mismatches
from scalesweep.tables.provenance import RunFacts, differences, group, run_facts
from tests.fakes.records import make_record

CLOCK = "GPU memory clock, MHz"


def rank(host: str, clocks: tuple[float, ...] = (715.0, 715.0), **changes: Any) -> dict[str, Any]:
    gpus = [
        {"name": "P100", "max_memory_clock_mhz": 715.0, "application_memory_clock_mhz": clock,
         "max_sm_clock_mhz": 1328.0, "memory_clock_mhz": 405.0}
        for clock in clocks
    ]  # fmt: skip
    hardware = {
        "cpu_model": "E5-2690 v3", "cpus": 24, "governor": "performance", "numa_nodes": 2,
        "memory_bytes": 64 << 30, "gpus": gpus, "gpu_links": {"GPU0-GPU1": "PIX"}, **changes,
    }  # fmt: skip
    return {"host": host, "slurm_node": None, "hardware": hardware}


def hosts_of_ranks(*ranks: dict[str, Any]) -> Hardware:
    """As they are read from a record of a program that wrote these rows."""
    rows = {"environment": {"ranks": list(ranks)}, "resources": {}}
    record = by_column({**rows, "point": {"ranks": len(ranks)}})
    return hosts_of(record["environment"])


def test_hosts_alike_are_one_machine() -> None:
    run = hosts_of_ranks(rank("a"), {"host": "a", "hardware": None}, rank("b"))
    (machine,) = machines([run, run])
    assert list(machine.hosts) == ["a", "b"] and machine.runs == 2
    assert machine.facts["GPUs"] == "2 x P100" and machine.facts["memory"] == "64 GiB"
    assert machine.facts["GPU memory clock, MHz"] == "2 x 715"
    assert machine.facts["GPU links"] == "1 x PIX"
    assert mismatches({"r": run}) == []


def test_ranks_on_unlike_hosts_are_told() -> None:
    slow = hosts_of_ranks(rank("a"), rank("b", (679.0, 679.0), governor="powersave"))
    fine = hosts_of_ranks(rank("a"), rank("c"))
    found = mismatches({"one": slow, "two": fine, "three": slow})
    assert [(m.fact, m.runs) for m in found] == [
        ("governor", ["one", "three"]),
        ("GPU memory clock, MHz", ["one", "three"]),
    ]
    assert found[1].values == {"2 x 715": ["a"], "2 x 679": ["b"]}
    (alone,) = mismatches({"r": hosts_of_ranks(rank("a", (715.0, 679.0)))})
    assert alone.values == {"1 x 679 and 1 x 715": ["a"]}


def test_gpus_that_a_run_could_not_see_are_not_its_own() -> None:
    links = {"GPU0-GPU1": "PIX", "GPU0-GPU2": "PHB", "GPU1-GPU2": "PHB"}

    def facts(visible: str | None, order: str | None = None, **changes: Any) -> dict[str, str]:
        row = rank("a", (715.0, 679.0, 715.0), gpu_links=links, **changes)
        record = by_column({
            "environment": {"ranks": [{**row, "visible_gpus": visible}],
                            "variables": {"CUDA_DEVICE_ORDER": order}},
            "resources": {"hosts": ["a"]}, "point": {"ranks": 1},
        })  # fmt: skip
        return dict(hosts_of(record["environment"])[0][0])

    whole = facts(None)
    assert whole[CLOCK] == "1 x 679 and 2 x 715" and whole["GPU links"] == "2 x PHB and 1 x PIX"
    alone = facts("1")
    assert alone[CLOCK] == "1 x 679" and alone["GPUs"] == "1 x P100" and "GPU links" not in alone
    assert facts("2, 0")["GPU links"] == "1 x PHB" and facts("2,-1,1")[CLOCK] == "1 x 715"
    # What numbers do not tell is left as it is: names, numbers of another count, unlike GPUs.
    assert facts("GPU-8932f937")[CLOCK] == facts("5")[CLOCK] == whole[CLOCK]
    unlike = [{"name": name, "max_memory_clock_mhz": n} for n, name in enumerate(("A", "B"))]
    assert facts("1", gpus=unlike)["GPUs"] == "1 x A and 1 x B"
    assert facts("1", "PCI_BUS_ID", gpus=unlike)["GPUs"] == "1 x B"


def test_what_a_foreign_program_leaves_is_the_launchers_host() -> None:
    node = {"host": "n1", "cpu_model": "EPYC", "cores": 64, "governor": None, "memory_bytes": None}
    ((facts, hosts),) = hosts_of({"ranks": {}, "node": node})
    assert hosts == ("n1",) and dict(facts) == {"CPU": "EPYC", "CPUs": "64"}
    assert hosts_of({}) == () and hosts_of({"node": {}}) == ()


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
