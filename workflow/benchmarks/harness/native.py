"""Parts of what a program leaves in native.json, as types. Standard library only.

The launcher checks the same when it makes a record of it (docs/architecture.md).
"""

from typing import Literal, TypedDict


class Metric(TypedDict):
    """A number that a run has measured."""

    value: float  # in `unit`; finite
    unit: str
    better: Literal["lower", "higher"]
    scope: Literal["total", "rank"]  # of all ranks together, or the mean over ranks


class Work(TypedDict, total=False):
    """How much was done, over all ranks; what does not apply is left out."""

    samples_per_epoch: int
    bytes_per_epoch: int  # read from files
    samples: int  # handled in `phases`, over all epochs
    phases: list[str]


def metric(
    value: float,
    unit: str,
    better: Literal["lower", "higher"] = "lower",
    scope: Literal["total", "rank"] = "total",
) -> Metric:
    """Return a metric; `value` may be NumPy's."""
    return {"value": float(value), "unit": unit, "better": better, "scope": scope}
