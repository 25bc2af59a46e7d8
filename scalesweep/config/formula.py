"""Formulas over numbers: columns of a table that is imported, metrics and parameters of a run."""

import ast
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression

Number = int | float
# What takes or makes more than a number.
_NOT_OF_NUMBERS = ast.List | ast.Tuple | ast.Subscript | ast.In | ast.NotIn


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
        """Check a text, whose names are ``aliases`` of ``what`` there is.

        Raises UserError that starts with ``where``.
        """
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
        """The value for ``numbers`` by the names in its text.

        Raises ValueError where there is none: a division by zero, or no finite number.
        """
        try:
            result = super().__call__(numbers)
        except UserError as error:
            raise ValueError(str(error).removeprefix(f"{self.where}: ")) from None
        if not isinstance(result, int | float) or not abs(result) < math.inf:
            raise ValueError(f"formula '{self.text}' gives {result!s:.30}, no finite number")
        return result
