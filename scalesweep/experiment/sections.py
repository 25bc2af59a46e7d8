"""What an aspect shows of an experiment on the page: a heading, sentences, figures and a table."""

from collections.abc import Callable
from typing import NamedTuple

from scalesweep.experiment.points_table import Table
from scalesweep.experiment.results import ExperimentResults


class Section(NamedTuple):
    """A section; it is shown where it has a figure or a table.

    ``figures``: how the names begin of those that it shows. ``table`` takes the results and how
    many rows the page has room for, and returns None where there is none.
    """

    title: str
    figures: tuple[str, ...]
    table: Callable[[ExperimentResults, int], Table | None]
    notes: Callable[[ExperimentResults], list[str]]
