"""The messages of an exchange: as a program has sent them, or as its settings allow."""

import numpy as np

from scalesweep.analysis.exchange import Exchange, exchange_seconds
from scalesweep.analysis.network_fit import RING, fit_network, message_seconds, predicted_seconds
from scalesweep.tables.bookkeeping import exchange_of, exchanged_by
from tests.fakes.campaigns import SIZES

MIB = 1 << 20
LATENCY, BANDWIDTH = 1e-3, 2e9  # s, bytes/s


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
    made = exchange_of({"notes": {"exchange": exchange}})
    assert made is not None
    return made


def test_what_was_sent_counts_more_than_what_settings_allow() -> None:
    sent = noted(by="ddp", tensor_bytes=[4, 8], bucket_bytes=100, messages=[8, 4])
    assert sent.messages == [8, 4] and sent.reduces
    # Weights in shards are gathered twice and their gradients scattered: no all-reduce.
    shards = noted(by="fsdp2", tensor_bytes=[4, 8], bucket_bytes=None, messages=[12, 12, 6])
    assert not shards.reduces and shards.total == 12
    assert exchange_of({"notes": {"exchange": {"by": "torch.distributed"}}}) is None


def test_a_message_takes_what_the_formula_says_and_bounds_hold_it() -> None:
    """40 fits of 2 and 4 ranks at 5 % noise: messages within and between the measured sizes."""
    sizes = np.array(SIZES, float)
    inside = wide = total = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        ranks = np.repeat([2.0, 4.0], len(sizes) * 3)
        every = np.tile(sizes, 6)
        ideal = np.concatenate(
            [predicted_seconds(RING, n, np.tile(sizes, 3), LATENCY, BANDWIDTH) for n in (2, 4)]
        )
        fits = fit_network(ranks, every, ideal * (1 + 0.05 * draw.standard_normal(len(ideal))))
        for size in (3e3, 1e6, 9e6):
            planted = float(predicted_seconds(RING, 4, np.array([size]), LATENCY, BANDWIDTH)[0])
            found = message_seconds(fits, 4, size)
            assert found is not None
            total += 1
            inside += found.low <= planted <= found.high
            wide += found.high > 1.3 * found.low
    assert inside >= 0.9 * total
    assert wide <= 0.1 * total
    assert message_seconds(fits, 4, 100 * sizes[-1]) is None
    assert message_seconds(fits, 1, 100) is None
    assert exchange_seconds(fits, 4, []) is None
    assert exchange_seconds([], 4, [100]) is None


def test_what_carries_messages_is_noted() -> None:
    exchanged = {"by": "ddp", "library": "torch.distributed", "backend": "gloo"}
    assert exchanged_by({"notes": {"exchange": exchanged}}) == "torch.distributed over gloo"
    horovod = {"by": "horovod", "backend": "gloo"}
    assert exchanged_by({"notes": {"exchange": horovod}}) == "horovod over gloo"
    for unknown in ({}, None, [], {"by": "horovod", "backend": None}, {"backend": "gloo"}):
        assert exchanged_by({"notes": {"exchange": unknown}}) is None
