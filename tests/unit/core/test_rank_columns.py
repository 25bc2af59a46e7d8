"""Facts of ranks by column: small, and nothing of the rows is lost."""

from scalesweep.core.rank_columns import by_column, by_rank, column, machine_column


def test_what_is_stored_and_comes_back() -> None:
    for values in ([], ["a", "a", "a"], ["a", "b", "c"], [1, True, 1.0, 1]):
        made = column(values, len(values))
        assert made == {"values": ["a"] if values == ["a"] * 3 else values}
        assert repr(by_rank(made, len(values))) == repr(values)  # 1 is not 1.0, nor true


def test_nothing_of_the_rows_is_lost() -> None:
    """Of 32 ranks on four hosts, as a program of our own writes them."""
    hosts = [f"c{rank // 8:06}-node.cluster.example.org" for rank in range(32)]
    own = [
        {"visible_gpus": str(rank % 8), "pid": 4000 + 7 * rank, "omp_num_threads": "8"}
        for rank in range(32)
    ]
    machines = [
        {"cpu_model": "EPYC", "memory_bytes": 2**39 + rank, "gpus": []} if rank % 8 == 0 else None
        for rank in range(32)
    ]
    told = [
        {**facts, "hardware": hardware, "host": host, "slurm_node": host}
        for facts, hardware, host in zip(own, machines, hosts, strict=True)
    ]
    record = by_column({
        "point": {"ranks": 32}, "resources": {"hosts": hosts, "slurm_nodes": hosts},
        "environment": {"ranks": told, "versions": {}, "variables": {}, "node": {}},
    })  # fmt: skip
    resources, environment = record["resources"], record["environment"]
    kept = {name: by_rank(values, 32) for name, values in environment["ranks"].items()}
    assert kept == {name: [facts[name] for facts in own] for name in own[0]}
    assert by_rank(machine_column(resources), 32) == hosts
    memory = environment["hardware"]["facts"]["memory_bytes"]
    assert by_rank(memory, 4) == [2**39 + rank for rank in (0, 8, 16, 24)]
    assert by_column(record) == record
