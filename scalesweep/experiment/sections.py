"""What an aspect shows of an experiment on the page: a heading, sentences, figures and a table."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.provenance import RunFacts


class Section(NamedTuple):
    """A section; it is shown where it has a figure or a table.

    ``figures``: how the names begin of those that it shows. ``table`` takes the results and how
    many rows the page has room for, and returns None where there is none. ``of_runs``: sentences
    on how runs were measured, by facts of them; they are shown without figure and table too.
    ``leads``: it answers what such an experiment is for, and stands before its general figures.
    """

    title: str
    figures: tuple[str, ...]
    table: Callable[[ExperimentResults, int], Table | None]
    notes: Callable[[ExperimentResults], list[str]]
    of_runs: Callable[[ExperimentResults, Mapping[str, RunFacts]], list[str]] | None = None
    leads: bool = False
