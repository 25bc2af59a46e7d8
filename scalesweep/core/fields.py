"""What is to be said of a field of a file beyond its type, for annotations of TypedDicts.

In ``Annotated[TYPE, ...]`` text is the field's description and a ``rule`` its bounds, in words of
JSON Schema; nothing reads them at run time. Standard library only, for the launcher.
"""

from typing import Annotated, Any

from scalesweep.core.profilers import KINDS
from scalesweep.core.status import Status


def rule(**keywords: Any) -> frozenset[tuple[str, Any]]:
    """Keywords of JSON Schema that hold for a value, as annotations can have them (hashable)."""
    return frozenset(keywords.items())


def one_of(*values: str) -> frozenset[tuple[str, Any]]:
    """The only values there are."""
    return rule(enum=values)


# Of a field that is added to what the file has, when it is read or by the next program.
NOT_IN_FILE = rule(not_in_file=True)
Count = Annotated[int, rule(minimum=0)]
Positive = Annotated[int, rule(minimum=1)]
Several = Annotated[int, rule(minimum=2)]
Amount = Annotated[float, rule(minimum=0)]
AboveZero = Annotated[float, rule(exclusiveMinimum=0)]
RunId = Annotated[str, rule(pattern="^[a-z][a-z0-9_]*-r[0-9]+-[0-9a-f]{12}$")]
RunStatus = Annotated[str, one_of(*(str(status) for status in Status if status != Status.EXCLUDED))]
ProfileKind = Annotated[str, one_of(*KINDS)]
Better = Annotated[str, one_of("higher", "lower")]
Scope = Annotated[str, one_of("rank", "total")]
PhaseSpan = tuple[str, float, float]
