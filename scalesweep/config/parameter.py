"""Parameters of a benchmark: what values they take, and the one form that each value has."""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scalesweep.config.benchmark_keys import ParameterKeys
from scalesweep.config.command_template import FOR_THE_LAUNCHER
from scalesweep.config.models import short
from scalesweep.config.reserved_names import check_parameter
from scalesweep.core.errors import UserError, choices, did_you_mean

VARIABLE_PREFIX = "env."  # of parameters that are environment variables: no other has a dot

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "null": (type(None),),
}

_WORDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "null": "null",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a benchmark: what values it takes, and its default."""

    name: str
    types: tuple[str, ...]
    default: Any
    doc: str
    unit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[Any, ...] | None = None
    items: str | None = None
    length: int | None = None
    # Says what is computed rather than how: throughputs of two values are not ranked.
    workload: bool = False

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.enum is not None:
            return "one of " + ", ".join(str(value) for value in self.enum)
        text = " or ".join(_WORDS[kind] for kind in self.types)
        if self.items:
            text += f" of {self.length or 'any number of'} {self.items}s"
        if self.minimum is not None and self.maximum is not None:
            text += f" from {self.minimum:g} to {self.maximum:g}"
        elif self.minimum is not None:
            text += f" of {self.minimum:g} or more"
        elif self.maximum is not None:
            text += f" of {self.maximum:g} or less"
        return text

    def normalise(self, value: Any, where: str) -> Any:
        """The value in its one canonical form (4.0 -> 4 for an integer, 4 -> 4.0 for a number).

        Raises UserError starting with ``where`` if the value is not allowed.
        """
        result = self._typed(value)
        if result is _WRONG or (self.enum is not None and result not in self.enum):
            near = did_you_mean(value, [str(allowed) for allowed in self.enum or ()])
            if self.enum is None and "string" in self.types and isinstance(value, int | float):
                near = f'write "{value}" in quotes'
            hint = f"; {near}".rstrip("; ")
            raise UserError(f"{where}: {self.name} = {short(value)} is not {self.allowed}{hint}")
        numbers = result if isinstance(result, list) else [result]
        for number in numbers:
            if isinstance(number, str) and (place := _PLACES.search(number)):
                raise UserError(
                    f"{where}: {self.name} = {short(value)}: a value must not contain {place[0]}"
                )
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            low = self.minimum is not None and number < self.minimum
            if low or (self.maximum is not None and number > self.maximum):
                raise UserError(f"{where}: {self.name} = {short(value)} is not {self.allowed}")
        return result

    def _typed(self, value: Any) -> Any:
        for kind in self.types:
            result = _as_type(value, kind)
            if result is _WRONG:
                continue
            if kind == "array":
                result = [_as_type(item, self.items) if self.items else item for item in result]
                if _WRONG in result or (self.length and len(result) != self.length):
                    continue
            return result
        return _WRONG


# What the launcher fills in, which it would do in a value too.
_PLACES = re.compile("|".join(f"{{{name}}}" for name in FOR_THE_LAUNCHER))


class _Wrong:
    pass


_WRONG: Any = _Wrong()


def _as_type(value: Any, kind: str) -> Any:
    if isinstance(value, bool) and kind != "boolean":
        return _WRONG
    if isinstance(value, float) and not math.isfinite(value):
        return _WRONG
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "number" and isinstance(value, int):
        return float(value)
    return value if isinstance(value, _TYPES[kind]) else _WRONG


def load_parameter(name: str, keys: ParameterKeys, path: Path) -> Parameter:
    """A parameter as benchmark.yaml has it; raises UserError naming file and key."""
    where = f"{path}: parameters.{name}"
    check_parameter(name, f"{path}: parameters")
    unknown = [kind for kind in keys.types if kind not in _TYPES]
    if unknown:
        raise UserError(f"{where}: type {unknown[0]!r}; {choices(unknown[0], _TYPES)}")
    draft = Parameter(
        name=name,
        types=keys.types,
        default=None,
        doc=keys.doc,
        unit=keys.unit,
        minimum=keys.minimum,
        maximum=keys.maximum,
        enum=None if keys.enum is None else tuple(keys.enum),
        items=keys.items,
        length=keys.length,
        workload=keys.workload,
    )
    return replace(draft, default=draft.normalise(keys.default, f"{where}: default"))
