"""Utilisation as the report shows it: a row per point, by one convention."""

from collections.abc import Callable

from scalesweep.analysis.flop_conventions import CONVENTIONS
from scalesweep.aspects.utilisation.findings import chosen, shares_of_points
from scalesweep.aspects.utilisation.table import Utilisation
from scalesweep.core.formatting import percent, scaled_unit, with_interval
from scalesweep.experiment.points_table import Cell, Column, Table, table_of
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import point_key
from scalesweep.table.declared import Estimate, numbers_of

_ROW = "utilisation row"


def utilisation_table(results: ExperimentResults, limit: int) -> Table | None:
    """Points with tokens, FLOP and shares of peaks; None where no tokens are known."""
    shown = chosen(results)
    if not shown:
        return None
    largest = max(row.rank_flops.value if row.rank_flops else 0.0 for row in shown)
    factor, unit = scaled_unit("FLOP/s", largest)
    columns = [
        Column("Tokens/s of a rank", _of("rank_tokens"), "rank_tokens"),
        Column(f"{unit} of a rank", _of("rank_flops", factor), "rank_flops"),
        Column("MFU", _share("mfu"), "mfu"),
        Column("HFU", _share("hfu"), "hfu"),
        Column("Of the measured ceiling", _share("of_ceiling"), "of_ceiling"),
        *([Column("MFU by all conventions", _others(results))] if _known(shown, "mfu") else []),
        Column("Tokens/J", _of("joule_tokens"), "joule_tokens"),
    ]
    kept = [column for column in columns if not column.name or _known(shown, column.name)]
    rows = [{**row.cells, **row.row, _ROW: row} for row in shown]
    return table_of(results, rows, [("", kept)], limit)


def _known(rows: list[Utilisation], name: str) -> bool:
    if name == "mfu" and any(row.fault for row in rows):
        return True
    return any(getattr(row, name) is not None for row in rows)


def _of(name: str, factor: float = 1) -> Callable[[Row], Cell]:
    def make(row: Row) -> Cell:
        estimate: Estimate | None = getattr(row[_ROW], name)
        if estimate is None:
            return Cell("–")
        return Cell(with_interval(*numbers_of(estimate, factor)))

    return make


def _share(name: str) -> Callable[[Row], Cell]:
    def make(row: Row) -> Cell:
        share: Estimate | None = getattr(row[_ROW], name)
        fault = row[_ROW].fault or ""
        if share is None:
            above = fault.startswith(f"{name.upper()} would be")
            return Cell("above 100 %" if above else "–", above)
        return Cell(percent(share.value, share.low, share.high), name == "mfu" and bool(fault))

    return make


def _others(results: ExperimentResults) -> Callable[[Row], Cell]:
    shares_of = shares_of_points(results)

    def make(row: Row) -> Cell:
        shares = shares_of.get(point_key(results, row[_ROW].row), ())
        if not shares:
            return Cell("–")
        return Cell(f"{percent(shares[0])} to {percent(shares[-1])}")

    return make


def _notes(results: ExperimentResults) -> list[str]:
    rows = chosen(results)
    if not rows:
        return []
    convention = CONVENTIONS[rows[0].convention]
    lines = [
        f"FLOP of a token are counted as {convention.formula} ({convention.name}: "
        f"{convention.source}); the table utilisation has all conventions "
        "(docs/methods/utilisation.md)."
    ]
    if any(row.of_ceiling and row.of_ceiling.value > 1 for row in rows):
        lines.append(
            "Above 100 % of the measured ceiling: the convention counts FLOP that are not "
            "computed, such as those of embeddings (row counted of the table has the framework's "
            "count), or the probes ran on another machine."
        )
    if any(row.dtype == "float8" and row.mfu is None for row in rows):
        lines.append(
            "Points in float8 have no MFU: two peaks mix, and which share of the FLOP is in float8 "
            "is not stated (float8_share)."
        )
    elif not any(row.peak for row in rows):
        lines.append(
            "No peak is known, so there is no MFU: name the site's device (peaks: {device: ...}), "
            "or that of the transformer."
        )
    return lines


SECTION = Section("Utilisation", utilisation_table, _notes)
