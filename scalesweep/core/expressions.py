"""Expressions over parameter names in campaign and benchmark files, and formulas over numbers:
columns of a table that is imported, metrics and parameters of a run.

Python's own syntax, reduced to arithmetic without powers, comparison, and/or/not, ``in``,
``x if c else y``, lists and indexing: nothing that calls or loops.
"""

import ast
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from scalesweep.core.errors import UserError, choices

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Is, ast.IsNot, ast.IfExp, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple,
    ast.Subscript,
)  # fmt: skip
Number = int | float
# What takes or makes more than a number.
_NOT_OF_NUMBERS = ast.List | ast.Tuple | ast.Subscript | ast.In | ast.NotIn
_LITERALS = {"true": True, "false": False, "null": None}
_GLOBALS: dict[str, Any] = {"__builtins__": {}, **_LITERALS}


class Expression:
    """A checked expression: ``names`` it reads, and its value for a point."""

    def __init__(self, text: str, where: str) -> None:
        """Parse ``text``; raises UserError starting with ``where`` if it is not allowed."""
        self.text = text
        self.where = where  # starts messages
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            what = getattr(error, "msg", error)
            if re.search(r"[^=!<>]=[^=]", text):
                what = "write == to compare"
            elif re.search(r"&&|\|\||!(?!=)", text):
                what = "write and, or, not"
            raise UserError(f"{where}: '{text}' is not an expression ({what})") from None
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise UserError(
                    f"{where}: '{text}' uses {ast.unparse(node) or type(node).__name__}; allowed: "
                    "names, numbers, strings, comparisons, and/or/not, in, + - * / // %, "
                    "x if c else y"
                )
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.names = frozenset(used - _LITERALS.keys())
        self._code = compile(tree, where, "eval")

    def __call__(self, point: Mapping[str, Any]) -> Any:
        """Value for one point; raises UserError if it cannot be computed."""
        try:
            return eval(self._code, _GLOBALS, point)
        except Exception as error:
            empty = ", ".join(name for name in sorted(self.names) if point.get(name, 0) is None)
            why = f"{empty} has no value" if empty and isinstance(error, TypeError) else error
            raise UserError(f"{self.where}: '{self.text}' fails: {why}") from None

    def number(self, point: Mapping[str, Any]) -> Number:
        """The value for one point; raises UserError if it is no number."""
        value = self(point)
        if isinstance(value, int | float) and math.isfinite(value):
            return value
        raise UserError(f"{self.where}: '{self.text}' is {value!r}, which is no number")

    def check_names(self, known: Collection[str]) -> "Expression":
        """Raise UserError if it reads a name that is not in ``known``; returns itself."""
        unknown = sorted(self.names - set(known))
        if unknown:
            allowed = choices(unknown[0], sorted(known))
            if allowed.startswith("allowed"):  # it is like none of them
                allowed += f"; a text has quotes: '{unknown[0]}'"
            names = ", ".join(map(repr, unknown))
            raise UserError(f"{self.where}: '{self.text}': unknown parameter {names}; {allowed}")
        return self


def alias(name: str) -> str:
    """A name in formulas: what is no letter, digit or _ becomes _."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return f"_{plain}" if plain[:1].isdigit() or not plain else plain


def by_alias(names: Iterable[str]) -> dict[str, list[str]]:
    """The names that each alias may mean."""
    aliases: dict[str, list[str]] = {}
    for name in names:
        aliases.setdefault(alias(name), []).append(name)
    return aliases


class Formula(Expression):
    """Arithmetic and comparisons of numbers; ``reads``: what it reads, by the names in its text."""

    def __init__(self, text: str, where: str, aliases: Mapping[str, list[str]], what: str) -> None:
        """Check a text, whose names are ``aliases`` of ``what`` there is. Raises UserError that
        starts with ``where``."""
        super().__init__(text, where)
        if any(isinstance(node, _NOT_OF_NUMBERS) for node in ast.walk(ast.parse(text.strip()))):
            raise UserError(f"{where}: '{text}': only numbers can be worked with")
        self.reads: dict[str, str] = {}
        for name in sorted(self.names):
            meant = aliases.get(name, [])
            if len(meant) != 1:
                no = f"is no {what}; {choices(name, sorted(aliases))}"
                problem = f"means {' and '.join(meant)}" if meant else no
                raise UserError(f"{where}: '{text}': {name!r} {problem}")
            self.reads[name] = meant[0]

    def __call__(self, numbers: Mapping[str, Any]) -> bool | Number:
        """The value for ``numbers`` by the names in its text. Raises ValueError where there is
        none: a division by zero, or no finite number."""
        try:
            result = super().__call__(numbers)
        except UserError as error:
            raise ValueError(str(error).removeprefix(f"{self.where}: ")) from None
        if not isinstance(result, int | float) or not abs(result) < math.inf:
            raise ValueError(f"formula '{self.text}' gives {result!s:.30}, no finite number")
        return result
