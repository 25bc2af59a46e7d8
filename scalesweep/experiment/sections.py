"""What an aspect shows of an experiment on the page: a heading, sentences and a table."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.provenance import RunFacts


class Section(NamedTuple):
    """A section; it is shown if it has a table.

    ``table`` takes the results and how many rows the page has room for, and returns None if there
    is none. ``of_runs``: sentences on how runs were measured, by facts of them; they are shown
    without a table too.
    """

    title: str
    table: Callable[[ExperimentResults, int], Table | None]
    notes: Callable[[ExperimentResults], list[str]]
    of_runs: Callable[[ExperimentResults, Mapping[str, RunFacts]], list[str]] | None = None
