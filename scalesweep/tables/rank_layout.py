"""How the ranks of a point lie on nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """How ranks lie on nodes."""

    ranks: int
    per_node: int

    @staticmethod
    def of(point: Mapping[str, Any]) -> "Layout":
        """That of a point with all its parameters."""
        return Layout(ranks_of(point), int(point.get("ranks_per_node") or 1))

    @property
    def nodes(self) -> int:
        """Nodes that the ranks take."""
        return -(-self.ranks // self.per_node)

    @property
    def on_node(self) -> int:
        """Ranks of the fullest node."""
        return min(self.ranks, self.per_node)

    def like(self, other: "Layout") -> bool:
        """Whether messages take the same ways: within a node, or between nodes as full."""
        if self.nodes == 1 or other.nodes == 1:
            return self.nodes == other.nodes
        return self.per_node == other.per_node


def ranks_of(point: Mapping[str, Any]) -> int:
    """Ranks of a point with all its parameters; 1 without that parameter."""
    return int(point.get("ranks") or 1)


def splits_the_network(point: Mapping[str, Any]) -> bool:
    """Whether ranks hold parts of the network (tensor or pipeline parallelism): each computes and
    exchanges something else then than a rank that holds all of it."""
    return any(int(point.get(name) or 1) > 1 for name in ("tp", "pp"))


def samples_of_a_step(point: Mapping[str, Any]) -> float | None:
    """Samples that a device handles in a step, ``accumulation`` batches; None where it is not
    known."""
    size = point.get("batch_size")
    if not isinstance(size, int | float) or isinstance(size, bool) or size <= 0:
        return None
    return float(size) * int(point.get("accumulation") or 1)
