"""All aspects, in the order in which the report shows their figures and sections."""

from collections.abc import Iterator
from types import ModuleType

from scalesweep.aspects import reading
from scalesweep.aspects.aspect import Aspect, Part

ASPECTS: tuple[Aspect, ...] = (reading.ASPECT,)
# Tables that people read and that lie in no folder of an aspect.
_OTHER_TABLES = (
    *("findings", "points", "scaling", "threads", "comparisons", "best", "sites", "accuracy"),
    *("phases", "score", "efficiency", "causes", "steps", "timeline", "parts", "roofline"),
    *("ceilings", "network", "canary", "prediction", "forecasts"),
)


def parts(name: Part) -> Iterator[ModuleType]:
    """The modules of this name of all aspects that have one."""
    return (module for aspect in ASPECTS if (module := aspect.part(name)) is not None)


def shown_tables() -> tuple[str, ...]:
    """Names of the tables that people read; the others have a row per run, rank or sample."""
    return (*_OTHER_TABLES, *(name for aspect in ASPECTS for name in aspect.tables))
