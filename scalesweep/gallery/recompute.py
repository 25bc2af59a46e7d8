"""Published numbers beside those that scalesweep's tables give after the import."""

import csv
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from scalesweep.analysis.stats import olympic_mean
from scalesweep.config.formula import Formula, by_alias
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.csv_cells import text_of_cell
from scalesweep.core.errors import UserError
from scalesweep.gallery.published_numbers import PublishedNumber, published_numbers, same
from scalesweep.gallery.study import Check, Recomputed, Study
from scalesweep.importers.cli import CAMPAIGN

AGREES, KNOWN, DIFFERS, MISSING = "agrees", "known", "differs", "missing"
# A number whose last digit is rounded the other way, and no more, agrees.
_ROUNDING = 1e-9
OLYMPIC = "olympic"
_COMBINE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median, "mean": statistics.fmean, "sum": sum, "max": max, "min": min,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """A published number, what comes out (None: nothing), the verdict, and why."""

    check: Check
    published: PublishedNumber
    recomputed: float | None
    verdict: str
    reason: str

    @property
    def difference(self) -> float | None:
        """Recomputed over published, less 1; None where there is none."""
        if self.recomputed is None or not self.published.value:
            return None
        return self.recomputed / self.published.value - 1


class NoRowError(ValueError):
    """Why nothing comes out for a published number."""


class Tables:
    """The tables of a results folder, of all its experiments."""

    def __init__(self, results: Path) -> None:
        """Read below ``results/tables``, when asked."""
        self._folder = results / "tables"
        self._constants = _constants(results / CAMPAIGN)
        self.rows = cache(self._rows)

    def _rows(self, table: str, experiment: str) -> list[dict[str, str]]:
        """The rows of a table, of the experiments that match the pattern, with the parameters that
        an experiment holds constant, which are no columns of its tables."""
        rows = []
        for path in sorted(self._folder.glob(f"*/{table}.csv")):
            if fnmatch(path.parent.name, experiment):
                constants = self._constants.get(path.parent.name, {})
                with path.open(newline="") as file:
                    rows += [
                        constants | {name: text_of_cell(text or "") for name, text in row.items()}
                        for row in csv.DictReader(file)
                    ]
        return rows


def _constants(campaign: Path) -> dict[str, dict[str, str]]:
    """By experiment of an imported campaign: the parameters that have one value in it."""
    if not campaign.is_file():
        return {}
    return {
        name: {
            key: str(values[0])
            for key, values in _values(spec).items()
            if all(value == values[0] for value in values)
        }
        for name, spec in load_yaml(campaign)["experiments"].items()
    }


def _values(spec: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each parameter of an experiment, as an import writes it."""
    values = {key: [value] for key, value in spec.get("fixed", {}).items()}
    for group in spec.get("linked", ()), spec.get("points", ()):
        for entry in group:
            for key, value in entry.items():
                values.setdefault(key, []).append(value)
    return values | {key: [*each] for key, each in spec.get("axes", {}).items()}


def compare(study: Study, results: Path, imported: Mapping[str, Path]) -> list[Comparison]:
    """Every published number of a study beside the one that comes out.

    ``results``: the folder of the import, with its tables; ``imported``: what was imported, by the
    name of its import. Raises UserError where published numbers cannot be read.
    """
    tables = Tables(results)
    return [
        _compared(check, number, tables, study)
        for check in study.checks
        for number in published_numbers(study, check, imported)
    ]


def _compared(check: Check, number: PublishedNumber, tables: Tables, study: Study) -> Comparison:
    try:
        made = _recomputed(check.recomputed, number, tables, f"{study.name}: {check.name}")
    except NoRowError as error:
        return Comparison(check, number, None, MISSING, str(error))
    # A number whose digits are cut stands for the values from it up to a whole last digit more.
    middle = number.value + (math.copysign(number.half_digit, number.value) if check.cut else 0)
    allowed = number.half_digit + (check.within + _ROUNDING) * abs(number.value)
    if abs(made - middle) <= allowed:
        return Comparison(check, number, made, AGREES, "")
    for known in check.known:
        small = abs(made - number.value) <= known.up_to * abs(number.value)
        if small and all(same(number.row.get(name), value) for name, value in known.rows.items()):
            return Comparison(check, number, made, KNOWN, known.because)
    reason = (
        "an error of the source or of its copy: its own values give another number"
        if check.own_values
        else ""
    )
    return Comparison(check, number, made, DIFFERS, reason)


def _recomputed(made: Recomputed, number: PublishedNumber, tables: Tables, where: str) -> float:
    value = _value(made, made.rows, made.value, number, tables, where)
    if made.over is None:
        return value
    base = _value(made, made.over, made.over_value, number, tables, where)
    if not base:
        raise NoRowError("the value that it is divided by is 0")
    return value / base


def _value(
    made: Recomputed, match: Mapping[str, object], formula: str, number: PublishedNumber,
    tables: Tables, where: str,
) -> float:  # fmt: skip
    rows = tables.rows(made.table, made.experiment)
    if not rows:
        raise NoRowError(f"the import made no table {made.table}")
    wanted = {name: _constant(value, number, where) for name, value in match.items()}
    if absent := [name for name in wanted if all(name not in row for row in rows)]:
        raise NoRowError(f"table {made.table} has no column {absent[0]}")
    fitting = [
        row
        for row in rows
        if all(_fits(row.get(name, ""), value) for name, value in wanted.items())
    ]
    said = ", ".join(f"{name} {value}" for name, value in wanted.items()) or "all"
    values = [v for row in fitting if (v := _of_row(formula, row, where)) is not None]
    if not values:
        which = "a number" if fitting else "these"
        raise NoRowError(f"table {made.table} has no row with {which}: {said}")
    if made.combine == OLYMPIC:
        return olympic_mean(values, len(fitting) - len(values))
    if made.combine:
        return float(_COMBINE[made.combine](values))
    if max(values) - min(values) > 1e-12 * abs(max(values)):
        raise NoRowError(f"table {made.table} has {len(values)} rows that differ: {said}")
    return values[0]


def _fits(cell: str, wanted: object) -> bool:
    if isinstance(wanted, list):
        return any(same(cell, value) for value in wanted)
    return same(cell, wanted)


def _constant(value: object, number: PublishedNumber, where: str) -> object:
    if not isinstance(value, Mapping):
        return value
    column = value["column"]
    if column not in number.row:
        raise UserError(f"{where}: published rows have no column {column!r}")
    value = number.row[column]
    return "" if value is None else value


def _of_row(text: str, row: Mapping[str, str], where: str) -> float | None:
    """The formula's value of a row; None where a number that it needs is not there."""
    names = by_alias(row)
    formula = Formula(text, f"{where}: recomputed", names, "column of the table")
    numbers = {}
    for name, column in formula.reads.items():
        try:
            numbers[name] = float(row[column])
        except ValueError:
            return None
    try:
        return float(formula(numbers))
    except ValueError:
        return None
