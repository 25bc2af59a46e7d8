"""All aspects; ``order.py`` has the order of what the report shows of them."""

from collections.abc import Iterator, Mapping
from types import ModuleType

from scalesweep.aspects import (
    comparisons,
    energy,
    headroom,
    layouts,
    links,
    memory,
    phases,
    prediction,
    probes,
    profiles,
    roofline,
    scaling,
    steps,
    training,
    utilisation,
    warm_up,
)
from scalesweep.aspects.aspect import Aspect, Part

ASPECTS: tuple[Aspect, ...] = (
    comparisons.ASPECT,
    energy.ASPECT,
    headroom.ASPECT,
    layouts.ASPECT,
    links.ASPECT,
    memory.ASPECT,
    phases.ASPECT,
    prediction.ASPECT,
    probes.ASPECT,
    profiles.ASPECT,
    roofline.ASPECT,
    scaling.ASPECT,
    steps.ASPECT,
    training.ASPECT,
    utilisation.ASPECT,
    warm_up.ASPECT,
)
# Captions of the tables that people read and that lie in no folder of an aspect.
_OTHER_TABLES: Mapping[str, str] = {
    "findings": "The sentences of the report: state, numbers with units, and the rows and runs "
    "that carry them.",
    "points": "One row per point: means over its runs, standard deviation, 95 % interval.",
    "scaling": "Points by series and scale: speedup, efficiency and ideal, with 95 % intervals.",
}


def parts(name: Part) -> Iterator[ModuleType]:
    """The modules of this name of all aspects that have one."""
    return (module for aspect in ASPECTS if (module := aspect.part(name)) is not None)


def shown_tables() -> dict[str, str]:
    """Captions of the tables that people read; the others have a row per run, rank or sample."""
    return {**_OTHER_TABLES, **{k: v for aspect in ASPECTS for k, v in aspect.tables.items()}}
