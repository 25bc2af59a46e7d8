"""The sections of an experiment as the report shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scalesweep.aspects.order import SECTIONS
from scalesweep.aspects.registry import parts
from scalesweep.core.formatting import (
    percent,
)
from scalesweep.experiment.by_kind import table_by_kind
from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.tables.provenance import RunFacts

_OF_PARTS = (
    "Share of the time of a rank by part of the program, from profiles of other tools; "
    "means over ranks and repeats with 95 % intervals."
)


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
    listed_ = [*(module.SECTION for module in parts("section")), *_others()]
    places = {title: place for place, title in enumerate(SECTIONS)}
    listed_.sort(key=lambda section: places.get(section.title, len(places)))
    return {section.title: section for section in listed_}


def _others() -> list[Section]:
    """Those that lie in no folder of an aspect."""
    return [
        Section("Parts", ("parts-",), part_table, lambda _: [_OF_PARTS]),
    ]


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


def part_table(results: ExperimentResults, limit: int) -> Table | None:
    """Share of every part of every point; None without profiles."""
    return table_by_kind(results, limit, "part", "share", "", percent)
