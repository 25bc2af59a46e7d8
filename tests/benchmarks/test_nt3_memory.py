"""Which mode high-bandwidth memory is in, from trees as sysfs has them."""

import pytest

from nt3 import memory

KNL = "Intel(R) Xeon Phi(TM) CPU 7230 @ 1.30GHz"
DDR = (197_921_792, "0-255")  # kB, CPUs
MCDRAM = (16_513_536, "")


def tree(folder, *nodes, cache=None):
    """Write nodes (memory in kB, CPUs), and a memory-side cache of the first; return the folder."""
    folder.mkdir()
    for number, (memory_kb, cpus) in enumerate(nodes):
        node = folder / f"node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{cpus}\n")
        (node / "meminfo").write_text(
            f"Node {number} MemTotal:       {memory_kb} kB\nNode {number} MemFree: 1 kB\n"
        )
    if cache:
        (folder / "node0" / "memory_side_cache" / "index1").mkdir(parents=True)
        (folder / "node0" / "memory_side_cache" / "index1" / "size").write_text(f"{cache}\n")
    (folder / "has_cpu").write_text("0\n")  # as there are beside the nodes
    return folder


@pytest.mark.parametrize(
    ("nodes", "cache", "model", "expected"),
    [
        ([DDR, MCDRAM], None, KNL, "flat"),
        ([DDR], None, KNL, "cache"),
        ([DDR, (8_257_536, "")], None, KNL, "hybrid"),
        ([DDR], "16777216K", "other", "cache"),
        ([DDR, MCDRAM], "8388608K", "other", "hybrid"),
        ([DDR, MCDRAM], None, "other", "flat"),
        ([DDR, (197_921_792, "256-511")], None, "other", None),
        ([], None, KNL, None),
    ],
)
def test_modes(tmp_path, nodes, cache, model, expected):
    found = memory.facts(model, tree(tmp_path / "node", *nodes, cache=cache))
    assert found["mode"] == expected
    assert [each["node"] for each in found["nodes"]] == list(range(len(nodes)))
    for mode in ("cache", "flat"):
        problem = memory.mismatch(mode, found, "nid00012")
        assert (problem is None) == (mode == expected)
        if problem:
            assert problem.startswith(f"memory_mode {mode}: host nid00012 ")
    assert memory.mismatch("any", found, "nid00012") is None


def test_sizes_and_what_cannot_be_read(tmp_path):
    folder = tree(tmp_path / "node", DDR, MCDRAM, *[(1024, "1")] * 9, cache="16M")
    nodes = memory.numa_nodes(folder)
    assert [each["node"] for each in nodes] == list(range(11))  # by number, not by name
    assert nodes[0] == {
        "node": 0,
        "cpus": "0-255",
        "memory_bytes": 197_921_792 << 10,
        "cache_bytes": 16 << 20,
    }
    (folder / "node1" / "meminfo").unlink()
    assert memory.numa_nodes(folder)[1]["memory_bytes"] is None
    assert memory.numa_nodes(tmp_path / "none") == []


def test_policy(tmp_path):
    (tmp_path / "numa_maps").write_text(
        "00400000 bind:1 file=/usr/bin/python3 mapped=2\n7f00 bind:1 heap anon=4\n7fff default\n"
    )
    (tmp_path / "status").write_text("Name:\tpython\nMems_allowed_list:\t0-1\n")
    assert memory.policy(tmp_path) == {"policies": ["bind:1", "default"], "allowed_nodes": "0-1"}
    assert memory.policy(tmp_path / "none") == {"policies": [], "allowed_nodes": None}
