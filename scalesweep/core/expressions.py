"""Expressions over parameter names in campaign and benchmark files.

Python's own syntax, reduced to arithmetic without powers, comparison, and/or/not, ``in``,
``x if c else y``, lists and indexing: nothing that calls or loops.
"""

import ast
import re
from collections.abc import Collection, Mapping
from typing import Any

from scalesweep.core.errors import UserError, choices

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Is, ast.IsNot, ast.IfExp, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple,
    ast.Subscript,
)  # fmt: skip
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
            raise UserError(f"{where}: '{text}' is not an expression ({what})") from None
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise UserError(
                    f"{where}: '{text}' uses {type(node).__name__}; allowed: names, numbers, "
                    "strings, comparisons, and/or/not, in, + - * / // %, x if c else y"
                )
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.names = frozenset(used - _LITERALS.keys())
        self._code = compile(tree, where, "eval")

    def __call__(self, point: Mapping[str, Any]) -> Any:
        """Value for one point; raises UserError if it cannot be computed."""
        try:
            return eval(self._code, _GLOBALS, point)
        except Exception as error:
            raise UserError(f"{self.where}: '{self.text}' fails: {error}") from None

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
