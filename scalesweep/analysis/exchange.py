"""What an exchange of gradients takes on a fitted network, in the messages that a program sends."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.analysis.network_fit import RangeFit, message_seconds
from scalesweep.analysis.stats import Estimate


@dataclass(frozen=True)
class Exchange:
    """What a step exchanges: the bytes of each tensor in the order of the variables.

    ``bucket_bytes``: up to which size tensors are sent together; ``first_bucket_bytes``: that of
    the first message, where it is another one. None where a value is not known (it may be tuned
    while the program runs), or there is no such thing. ``sent``: the bytes of each message, where
    the program knows them.
    """

    tensor_bytes: Sequence[int]
    bucket_bytes: float | None
    first_bucket_bytes: float | None = None
    sent: Sequence[int] | None = None

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(self.tensor_bytes)

    @property
    def reduces(self) -> bool:
        """Whether every tensor is sent once, as an all-reduce does: shards of weights that are
        gathered and scattered are not."""
        return self.sent is None or sum(self.sent) == self.total

    @property
    def messages(self) -> list[int]:
        """The messages of a step, as the program has sent them, else the fewest that are allowed.

        Tensors go in the order in which they become ready, that of the backward pass. Without a
        first message of its own size they go together as long as their sum is within the limit, and
        a larger one goes alone: all are ready at the same time (Horovod, common/controller.cc,
        FuseResponses). With one, a message is sent once it has reached its limit (PyTorch,
        reducer.cpp, compute_bucket_assignment_by_size).
        """
        if self.sent is not None:
            return list(self.sent)
        limit = 0.0 if self.bucket_bytes is None else self.bucket_bytes
        filled = self.first_bucket_bytes
        messages: list[int] = []
        for size in reversed(self.tensor_bytes):
            if filled is None:
                joins = bool(messages) and messages[-1] + size <= limit
            else:
                joins = bool(messages) and messages[-1] < (filled if len(messages) == 1 else limit)
            if joins:
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
    lows, highs = ([getattr(time, end) for time in times] for end in ("low", "high"))
    ends = (None, None) if None in (*lows, *highs) else (sum(lows), sum(highs))
    return Estimate(sum(time.value for time in times), *ends)
