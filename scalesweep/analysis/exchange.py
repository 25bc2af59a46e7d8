"""What an exchange of gradients takes on a fitted network, in the messages that Horovod makes."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.analysis.network_fit import Estimate, RangeFit, message_seconds


@dataclass(frozen=True)
class Exchange:
    """What a step exchanges: the bytes of each tensor in the order of the variables.

    ``fusion_bytes`` and ``cycle_s`` are Horovod's settings; None where they are not known (they may
    be tuned while the program runs).
    """

    by: str
    tensor_bytes: Sequence[int]
    fusion_bytes: float | None
    cycle_s: float | None

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(self.tensor_bytes)

    @property
    def messages(self) -> list[int]:
        """The fewest messages that the threshold allows: all tensors are ready at the same time.

        As Horovod fuses them (common/controller.cc, FuseResponses): tensors in the order in which
        they become ready, which is that of the backward pass, as long as their sum is within the
        threshold; a larger one goes alone.
        """
        limit = 0.0 if self.fusion_bytes is None else self.fusion_bytes
        messages: list[int] = []
        for size in reversed(self.tensor_bytes):
            if messages and messages[-1] + size <= limit:
                messages[-1] += size
            else:
                messages.append(size)
        return messages


def exchange_seconds(
    fits: Sequence[RangeFit], ranks: int, messages: Sequence[int]
) -> Estimate | None:
    """What ``messages`` take one after the other; None where one is out of the fit's reach.

    Their errors are taken to be the same one: bounds add up.
    """
    by_size = {size: message_seconds(fits, ranks, size) for size in set(messages)}
    times = [time for time in (by_size[size] for size in messages) if time is not None]
    if not messages or len(times) < len(messages):
        return None
    return Estimate(
        sum(time.value for time in times),
        sum(time.low for time in times),
        sum(time.high for time in times),
    )
