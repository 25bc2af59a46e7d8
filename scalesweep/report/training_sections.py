"""The sections of an experiment as the report shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scalesweep.aspects.order import SECTIONS
from scalesweep.aspects.registry import parts
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.tables.provenance import RunFacts


@dataclass(frozen=True)
class ShownSection:
    """A heading within an experiment: sentences, figures and a table (None: there is none)."""

    title: str
    notes: list[str]
    figures: list[dict[str, Any]]
    table: Table | None


@cache
def _sections() -> Mapping[str, Section]:
    """All sections by title, in their order."""
    places = {title: place for place, title in enumerate(SECTIONS)}
    sections = sorted(
        (module.SECTION for module in parts("section")),
        key=lambda section: places.get(section.title, len(places)),
    )
    return {section.title: section for section in sections}


def section_of(figure: str) -> str | None:
    """The section that shows a figure of this name; None if it comes before them."""
    sections = _sections().values()
    return next((section.title for section in sections if figure.startswith(section.figures)), None)


def training_sections(
    results: ExperimentResults,
    facts: Mapping[str, RunFacts],
    figures: Sequence[dict[str, Any]],
    limit: int,
) -> list[ShownSection]:
    """The sections that have anything to show; their tables have at most ``limit`` rows."""
    shown = []
    for title, section in _sections().items():
        drawn = [figure for figure in figures if section_of(figure["name"]) == title]
        table = section.table(results, limit)
        of_runs = section.of_runs(results, facts) if section.of_runs else []
        if drawn or table is not None or of_runs:
            notes = [*section.notes(results), *of_runs]
            shown.append(ShownSection(title, notes, drawn, table))
    return shown
