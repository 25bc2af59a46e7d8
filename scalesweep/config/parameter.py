"""Parameters of a benchmark: what values they take, and the one form that each value has."""

import math
from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import Field

from scalesweep.analysis.metrics import QUANTITIES, SCALING_WORDS, split_column
from scalesweep.config.models import LISTED, Count, Flag, Model, Real, short
from scalesweep.core.errors import UserError, did_you_mean

VARIABLE_PREFIX = "env."  # of parameters that are environment variables: no other has a dot
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "integer": ((int,), "an integer"),
    "number": ((int, float), "a number"),
    "string": ((str,), "text"),
    "boolean": ((bool,), "true or false"),
    "array": ((list,), "a list"),
    "null": ((type(None),), "null"),
}
_WRONG: Any = object()

# A column of a table is a parameter, a quantity of a run, or what the table says of both; all three
# share one name space, in which these names are taken.
# What the summary says of a run: no parameter can be called so.
OF_RUNS = {
    *("run_id", "benchmark", "version", "site", "source", "repeat", "started", "wall_s"),
    *("hosts", "samples", "bytes", "warnings"),
}
# Names that tables, figures and the page have beside parameters: none that varies can be called so.
# Declared tables call a parameter ``parameter_<name>`` beside a column of its name, not all else.
OF_TABLES = {
    *("status", "cause", "outlier", "environment", "attempt", "files", "repeats", "planned"),
    *("parameter", "metric", "phase", "unit", "better", "value", "runs", "point_id"),
    *("mean", "median", "std", "low", "high", "cv", "best", "stale", "base_ranks"),
    *("epoch", "reached", "energy_runs", "seconds", "seconds_low", "seconds_high"),
    *("energy", "energy_low", "energy_high", "host", "domain", "counted", "watts"),
    *("threads_per_core", "others_share", "left_out", "stated"),
}


class Parameter(Model):
    """A parameter."""

    types: Annotated[
        tuple[Literal["integer", "number", "string", "boolean", "array", "null"], ...], LISTED
    ] = Field(alias="type")
    """`integer`, `number`, `string`, `boolean`, `array` or `null`, or a list of these"""
    default: Any
    """part of what a run means: a changed default needs a new `version`"""
    minimum: Real = None
    """least allowed value"""
    maximum: Real = None
    """largest allowed value"""
    enum: list[Any] | None = None
    """allowed values"""
    items: Literal["integer", "number", "string"] | None = None
    """of an array"""
    length: Count | None = None
    """of an array"""
    unit: str | None = None
    """shown with every value"""
    workload: Flag = False
    """it says what is computed (a model): its values are never ranked against each other"""
    doc: str
    """the meaning"""

    @classmethod
    def of(cls, types: tuple[str, ...], doc: str, unit: str | None = None) -> "Parameter":
        """One that is in no file."""
        return cls.model_validate({"type": types, "default": None, "doc": doc, "unit": unit})

    def settle(self, where: str) -> None:
        """Take the default in its one form. Raises UserError."""
        self.__dict__["default"] = self.normalise(self.default, f"{where}: default")

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.enum is not None:
            return "one of " + ", ".join(str(value) for value in self.enum)
        text = " or ".join(_TYPES[kind][1] for kind in self.types)
        if self.items:
            text += f" of {self.length or 'any number of'} {self.items}s"
        low, high = (None if it is None else f"{it:.15g}" for it in (self.minimum, self.maximum))
        if high is None:
            return text if low is None else f"{text} of {low} or more"
        return f"{text} of {high} or less" if low is None else f"{text} from {low} to {high}"

    def normalise(self, value: Any, where: str) -> Any:
        """The value in its one canonical form (4.0 -> 4 for an integer, 4 -> 4.0 for a number).
        Raises UserError starting with ``where``, which names it, if the value is not allowed."""
        result = self._typed(value)
        low = -math.inf if self.minimum is None else self.minimum
        high = math.inf if self.maximum is None else self.maximum
        parts = result if isinstance(result, list) else [result]
        numbers = [n for n in parts if isinstance(n, int | float) and not isinstance(n, bool)]
        outside = any(not low <= number <= high for number in numbers)
        if result is _WRONG or outside or (self.enum is not None and result not in self.enum):
            near = did_you_mean(value, [str(allowed) for allowed in self.enum or ()])
            if self.enum is None and "string" in self.types and isinstance(value, int | float):
                near = f'write "{value}" in quotes'
            if isinstance(value, list):
                near = "several values belong under axes"
            elif isinstance(value, str) and "," in value:
                near = f"a list has brackets: [{value}]"
            hint = f"; {near}".rstrip("; ")
            raise UserError(f"{where} = {short(value)} is not {self.allowed}{hint}")
        return result

    def _typed(self, value: Any) -> Any:
        made = (_as_type(value, kind) for kind in self.types)
        first = next((result for result in made if result is not _WRONG), _WRONG)
        if isinstance(first, list):
            first = [_as_type(item, self.items) if self.items else item for item in first]
            wrong = _WRONG in first or (self.length and len(first) != self.length)
            return _WRONG if wrong else first
        return first


def _as_type(value: Any, kind: str) -> Any:
    if isinstance(value, bool) and kind != "boolean":
        return _WRONG
    if isinstance(value, float) and not math.isfinite(value):
        return _WRONG
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "number" and isinstance(value, int):
        return float(value)
    return value if isinstance(value, _TYPES[kind][0]) else _WRONG


def check_parameter(name: str, where: str) -> None:
    """Raise UserError starting with ``where`` for a name that no parameter can have."""
    parts = split_column(name)  # of a name that tables could take for a quantity, loss_mean_run
    quantity = parts and (
        parts.stat or parts.metric in QUANTITIES or parts.metric.rpartition("_")[2] in SCALING_WORDS
    )
    if name in OF_RUNS or name.startswith("_") or quantity:
        raise UserError(f"{where}: {name!r} is reserved by scalesweep (a column of its tables)")


def check_varying(names: Collection[str], where: str) -> None:
    """Raise UserError if a parameter that varies has the name of a column of its tables."""
    if taken := [name for name in names if name in OF_TABLES]:
        raise UserError(
            f"{where}: {taken[0]!r} cannot vary: the tables have a column of this name; give the "
            "parameter of the benchmark another name"
        )


def check_metrics(names: Collection[str], where: str) -> None:
    """Raise UserError if one metric is called what tables call the scaling of another."""
    for name in names:
        stem, _, word = name.rpartition("_")
        if word in SCALING_WORDS and stem in names:
            raise UserError(f"{where}: {name!r} is what tables call the scaling of {stem!r}")
