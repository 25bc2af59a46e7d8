"""The metrics that stamps give, and the digest of how they are read: what a plan needs."""

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.native_format import Meaning
from scalesweep.core.files import digest_of
from scalesweep.core.record import STEP_TIMES

MEMORY = {
    "allocated": "peak_memory_allocated",
    "reserved": "peak_memory_reserved",
    "rss": "peak_rss",
}
MEANINGS: dict[str, Meaning] = {
    STEP_TIMES: {"unit": "s", "better": "lower", "scope": "rank"},
    **{
        f"{name}_per_second": {"unit": f"{name}/s", "better": "higher", "scope": "total"}
        for name in ("samples", "tokens")
    },
    **{name: {"unit": "bytes", "better": "lower", "scope": "rank"} for name in MEMORY.values()},
}

# Raised when the same lines would give other numbers: logs are read again.
_READER = 4


def digest_of_stamps(order: StampsOrder, metrics: str) -> str:
    """What the metrics of a record were read with, if there are stamps beside the ``metrics`` of
    this digest."""
    return digest_of([_READER, dict(order), metrics], 8)
