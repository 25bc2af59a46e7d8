"""Sizes and bandwidths of collectives, as nccl-tests defines them. No TensorFlow.

github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md: the algorithm bandwidth is size / time, the bus
bandwidth that times a factor of the operation, so that it can be compared with the speed of a link
whatever the number of ranks. The size of an allgather is that of its result.
"""

# In steps of 16 where latency rules, then of 4: 4 B to 256 MiB.
SIZES = (4, 64, 1024, 2**14, 2**16, 2**18, 2**20, 2**22, 2**24, 2**26, 2**28)


def bus_factor(operation: str, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth."""
    if operation == "allreduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation == "allgather" else 1.0


def split(size: int, tensors: int, operation: str, ranks: int) -> tuple[list[int], int]:
    """Return how many float32 each tensor of a rank has, and the bytes of the message in fact.

    A message of fewer values than tensors has one for each value. A rank hands over all of a
    message, or of an allgather its share: at least one value, by which small messages grow.
    """
    values = max(1, size // 4)
    if operation == "allgather":
        values = max(1, values // ranks)
    pieces = min(tensors, values)
    counts = [values // pieces + (number < values % pieces) for number in range(pieces)]
    return counts, 4 * values * (ranks if operation == "allgather" else 1)
