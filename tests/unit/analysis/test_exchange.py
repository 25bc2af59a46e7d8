"""The messages of an exchange: as a program has sent them, or as its settings allow."""

from scalesweep.analysis.exchange import Exchange
from scalesweep.tables.bookkeeping import exchange_of, exchanged_by

MIB = 1 << 20


def test_tensors_go_together_as_long_as_they_fit() -> None:
    """From the last one, whose gradient is ready first; one that is too large goes alone."""
    sizes = [3, 50, 4, 4, 2]
    assert Exchange(sizes, 10).messages == [10, 50, 3]
    assert Exchange(sizes, None).messages == [2, 4, 4, 50, 3]


def test_a_message_with_a_first_size_of_its_own_is_sent_once_it_has_reached_its_limit() -> None:
    """As DDP's reducer makes its buckets: 1 MiB first, then those of bucket_cap_mb."""
    sizes = [5 * MIB, 20 * MIB, 10 * MIB, 16 * MIB, MIB // 2, MIB // 4]
    messages = Exchange(sizes, 25 * MIB, first_bucket_bytes=MIB).messages
    # 0.25, 0.5 and 16 reach 1 MiB; 10 and 20 reach 25; the rest is sent at the end.
    assert messages == [16 * MIB + MIB // 2 + MIB // 4, 30 * MIB, 5 * MIB]


def noted(**exchange: object) -> Exchange:
    return exchange_of({"notes": {"exchange": exchange}})


def test_what_was_sent_counts_more_than_what_settings_allow() -> None:
    sent = noted(by="ddp", tensor_bytes=[4, 8], bucket_bytes=100, messages=[8, 4])
    assert sent.messages == [8, 4] and sent.reduces
    # Weights in shards are gathered twice and their gradients scattered: no all-reduce.
    shards = noted(by="fsdp2", tensor_bytes=[4, 8], bucket_bytes=None, messages=[12, 12, 6])
    assert not shards.reduces and shards.total == 12
    assert exchange_of({"notes": {"exchange": {"by": "torch.distributed"}}}) is None


def test_what_carries_messages_is_noted() -> None:
    exchanged = {"by": "ddp", "library": "torch.distributed", "backend": "gloo"}
    assert exchanged_by({"notes": {"exchange": exchanged}}) == "torch.distributed over gloo"
    horovod = {"by": "horovod", "backend": "gloo"}
    assert exchanged_by({"notes": {"exchange": horovod}}) == "horovod over gloo"
    for unknown in ({}, None, [], {"by": "horovod", "backend": None}, {"backend": "gloo"}):
        assert exchanged_by({"notes": {"exchange": unknown}}) is None
