"""The transformer that a benchmark trains: expressions for its shape, and the shape at a point."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES, RECOMPUTE, ModelShape
from scalesweep.config.mesh import value_at
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import text_of

_NEEDED = "sequence"  # without it there are no tokens
_COUNTS = (
    _NEEDED, "layers", "width", "heads", "kv_heads", "ffn_width", "vocabulary", "micro_batch",
    "accumulation", "global_batch",
)  # fmt: skip
_FLAGS = ("gated", "tied", "learned_positions")
_WORDS = {"recompute": RECOMPUTE, "dtype": DTYPES, "device": tuple(DEVICES)}
_WHEN = "when"


@dataclass(frozen=True)
class Transformer:
    """Expressions by the field of ``ModelShape`` that they give, and when there is such a model."""

    fields: Mapping[str, Expression]
    when: Expression | None

    @property
    def texts(self) -> dict[str, str]:
        """The expressions as they are written, ``when`` among them."""
        texts = {name: expression.text for name, expression in self.fields.items()}
        return texts | ({_WHEN: self.when.text} if self.when else {})

    def at(self, point: Mapping[str, Any], where: str) -> ModelShape | None:
        """The shape at a point; None where the model is none, or its sequence is not known.

        Raises UserError, starting with ``where``, for a value that a field cannot have.
        """
        if self.when and not value_at(self.when, point):
            return None
        values = {name: value_at(of, point) for name, of in self.fields.items()}
        if values[_NEEDED] is None:
            return None
        checked = {
            name: _checked(name, value, where)
            for name, value in values.items()
            if value is not None
        }
        return ModelShape(**checked)


def _checked(name: str, value: Any, where: str) -> Any:
    """A value as ``ModelShape`` has it. Raises UserError."""
    key = f"{where}: transformer.{name}"
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise UserError(f"{key}: must be true or false, not {text_of(value)}")
        return value
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise UserError(f"{key}: {choices(str(value), _WORDS[name])}, not {text_of(value)}")
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise UserError(f"{key}: must be a number, not {text_of(value)}")
    if name == "float8_share":
        if not 0 <= value <= 1:
            raise UserError(f"{key}: must be 0 to 1, not {text_of(value)}")
        return float(value)
    if value <= 0 or (name in _COUNTS and not float(value).is_integer()):
        kind = "a whole number above 0" if name in _COUNTS else "above 0"
        raise UserError(f"{key}: must be {kind}, not {text_of(value)}")
    return int(value) if name in _COUNTS else float(value)


def load_transformer(
    content: Mapping[str, str], known: Mapping[str, Any], where: str
) -> Transformer:
    """The transformer that a file declares; ``where``: file and key. Raises UserError."""
    expressions = {
        name: Expression(str(text), f"{where}.{name}").check_names(set(known))
        for name, text in content.items()
    }
    when = expressions.pop(_WHEN, None)
    return Transformer(expressions, when)


@lru_cache(maxsize=256)
def _written(fields: tuple[tuple[str, str], ...]) -> Transformer:
    expressions = {name: Expression(text, f"transformer.{name}") for name, text in fields}
    when = expressions.pop(_WHEN, None)
    return Transformer(expressions, when)


def transformer_of_texts(texts: Mapping[str, str]) -> Transformer:
    """The transformer of ``Transformer.texts``, as a plan has it."""
    return _written(tuple(texts.items()))
