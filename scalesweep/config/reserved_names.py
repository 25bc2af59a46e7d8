"""Names that tables have for columns of their own, and that parameters and metrics cannot have.

A column of a table is a parameter, a quantity of a run, or what the table says of both; all three
share one name space, in which the names below are taken.
"""

from collections.abc import Collection
from pathlib import Path

from scalesweep.analysis.metrics import QUANTITIES, SCALING_WORDS, split_column
from scalesweep.core.errors import UserError

# What the summary says of a run: no parameter can be called so.
OF_RUNS = frozenset(
    (
        *("run_id", "benchmark", "version", "site", "source", "repeat", "started", "wall_s"),
        *("hosts", "samples", "bytes", "warnings"),
    )
)
# Columns of tables that are not declared: no parameter that varies in an experiment can be called
# so. Declared tables call a parameter ``parameter_<name>`` beside a column of its name.
OF_TABLES = frozenset(
    (
        *("status", "cause", "outlier", "environment", "attempt", "files", "repeats", "planned"),
        *("parameter", "metric", "phase", "unit", "better", "value", "runs", "point_id"),
        *("mean", "median", "std", "low", "high", "cv", "best", "stale", "base_ranks"),
        *("epoch", "reached", "energy_runs", "seconds", "seconds_low", "seconds_high"),
        *("energy", "energy_low", "energy_high", "host", "domain", "counted", "watts"),
        *("threads_per_core", "others_share", "left_out", "stated"),
    )
)


def check_parameter(name: str, where: str) -> None:
    """Raise UserError starting with ``where`` for a name that no parameter can have."""
    parts = split_column(name)  # of a name that tables could take for a quantity, loss_mean_run
    quantity = parts and (
        parts.stat or parts.metric in QUANTITIES or parts.metric.rpartition("_")[2] in SCALING_WORDS
    )
    if name in OF_RUNS or name.startswith("_") or quantity:
        raise UserError(
            f"{where}: {name!r} is reserved by scalesweep (a column of its tables); choose another "
            "name"
        )


def check_varying(names: Collection[str], where: str) -> None:
    """Raise UserError starting with ``where`` if a parameter that varies has the name of a column
    of its experiment's tables."""
    for name in names:
        if name in OF_TABLES:
            raise UserError(
                f"{where}: {name!r} cannot vary: the tables have a column of this name; give the "
                "parameter of the benchmark another name"
            )


def check_metrics(names: Collection[str], path: Path, key: str) -> None:
    """Raise UserError if one metric is called what tables call the scaling of another."""
    for name in names:
        stem, _, word = name.rpartition("_")
        if word in SCALING_WORDS and stem in names:
            raise UserError(
                f"{path}: {key}: {name!r} is what tables call the scaling of {stem!r}; choose "
                "another name"
            )
