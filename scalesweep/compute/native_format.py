"""What a program leaves of a run in native.json, and what its metrics are.

``workflow/benchmarks/harness/native.py`` has the whole as types; ``program_output`` checks it.
Standard library only, for the launcher.
"""

from typing import Any, TypedDict

NATIVE = "native.json"
# phases, metrics, work, resources, environment, notes and phase_spans, as parts of a record.
NativeParts = dict[str, Any]


class Meaning(TypedDict):
    """What a metric's number means."""

    unit: str
    better: str
    scope: str


class MetricValue(Meaning):
    """A number that a run has measured."""

    value: float
