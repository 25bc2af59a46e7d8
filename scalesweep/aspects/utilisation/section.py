"""Utilisation as the report shows it: a row per point, by one convention."""

from scalesweep.analysis.flop_conventions import CONVENTIONS
from scalesweep.aspects.utilisation.findings import chosen, shares_of_points
from scalesweep.aspects.utilisation.table import Utilisation
from scalesweep.core.formatting import percent, scaled_unit, with_interval
from scalesweep.experiment.points_table import Cell, Shown, Table, declared_table, share_text
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.table.declared import numbers_of


def utilisation_table(results: ExperimentResults, limit: int) -> Table | None:
    """Points with tokens, FLOP and shares of peaks; None where no tokens are known."""
    shown, shares_of = chosen(results), shares_of_points(results)
    factor, unit = scaled_unit(
        "FLOP/s", max((row.rank_flops.value for row in shown if row.rank_flops), default=0.0)
    )

    def others(row: Utilisation) -> str:
        shares = shares_of.get(results.point_key(row.row))
        return f"{percent(shares[0])} to {percent(shares[-1])}" if shares else "–"

    columns: list[Shown] = [
        ("Tokens/s of a rank", "rank_tokens", lambda row: _text(row, "rank_tokens")),
        (f"{unit} of a rank", "rank_flops", lambda row: _text(row, "rank_flops", factor)),
        ("MFU", "mfu", lambda row: _share(row, "mfu")),
        ("HFU", "hfu", lambda row: _share(row, "hfu")),
        ("Of the measured ceiling", "of_ceiling", lambda row: share_text(row.of_ceiling)),
        ("MFU by all conventions", "mfu", others),
        ("Tokens/J", "joule_tokens", lambda row: _text(row, "joule_tokens")),
    ]
    known = {name for _, name, _ in columns for row in shown if getattr(row, name) is not None}
    known |= {"mfu", "hfu"} if any(row.fault for row in shown) else set()
    kept = [(heading, name, words) for heading, name, words in columns if name in known]
    return declared_table(results, shown, kept, limit)


def _text(row: Utilisation, name: str, factor: float = 1.0) -> str:
    return with_interval(*numbers_of(getattr(row, name), factor))


def _share(row: Utilisation, name: str) -> Cell:
    share, fault = getattr(row, name), row.fault or ""
    if share is None and fault.startswith(f"{name.upper()} would be"):
        return Cell("above 100 %", True)
    return Cell(share_text(share), name == "mfu" and share is not None and bool(fault))


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
            "Above 100 % of the measured ceiling: the convention counts FLOP that nothing computes "
            "(row counted of the table has the framework's), or another machine was probed."
        )
    if any(row.dtype == "float8" and row.mfu is None for row in rows):
        lines.append("Points in float8 have no MFU without float8_share: two peaks mix.")
    elif not any(row.peak for row in rows):
        lines.append("No MFU without a peak: name the site's device (peaks: {device: ...}).")
    return lines


SECTION = Section("Utilisation", utilisation_table, _notes)
