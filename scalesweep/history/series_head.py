"""What a series of the history is of: the same for what sessions and alternate runs show."""

from dataclasses import dataclass

# What distinguishes a point, and a series of its sessions.
POINT = ("site", "source", "benchmark", "version", "device", "identity")
KEY = (*POINT, "metric", "phase")


@dataclass(frozen=True)
class SeriesHead:
    """A point and metric: the fields of ``KEY``, and how they are shown.

    ``identity`` is JSON of the parameters, ``label`` what distinguishes the point in its campaign;
    ``better``: ``higher`` or ``lower``.
    """

    site: str
    source: str
    benchmark: str
    version: int
    device: str
    identity: str
    metric: str
    phase: str
    scaling: str
    label: str
    unit: str
    better: str
