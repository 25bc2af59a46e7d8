"""Which mode high-bandwidth memory is in, from trees as sysfs has them."""

import pytest

from nt3 import memory

KNL = "Intel(R) Xeon Phi(TM) CPU 7230 @ 1.30GHz"
DDR = (197_921_792, "0-255")  # kB, CPUs
MCDRAM = (16_513_536, "")


def tree(folder, *nodes, cache=False):
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
    (folder / "has_cpu").write_text("0\n")  # as there are beside the nodes
    return folder


@pytest.mark.parametrize(
    ("nodes", "cache", "model", "expected"),
    [
        ([DDR, MCDRAM], False, KNL, "flat"),
        ([DDR], False, KNL, "cache"),
        ([DDR, (8_257_536, "")], False, KNL, "hybrid"),
        ([DDR, MCDRAM], True, "other", "hybrid"),
        ([DDR, (197_921_792, "256-511")], False, "other", None),
    ],
)
def test_modes(tmp_path, nodes, cache, model, expected):
    found = memory.mode(model, tree(tmp_path / "node", *nodes, cache=cache))
    assert found == expected
    for mode in ("cache", "flat"):
        problem = memory.mismatch(mode, found, "nid00012")
        assert (problem is None) == (mode == expected)
        assert problem is None or problem.startswith(f"memory_mode {mode}: host nid00012 ")
    assert memory.mismatch("any", found, "nid00012") is None
