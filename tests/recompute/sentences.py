"""Sentences of the table of findings, held against numbers that were worked out elsewhere."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

_NUMBER = r"(-?[\d,]*\d(?:\.\d+)?)"


@dataclass
class Sentences:
    """The findings of an experiment; ``right`` are the sentences that came out."""

    folder: Path  # of results
    experiment: str
    right: list[tuple[str, str]] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table, its JSON parts read."""
        path = self.folder / "tables" / self.experiment / "findings.parquet"
        table = pd.read_parquet(path)
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.values.tolist()]
        parts = ("numbers", "row", "runs")
        return [{**row, **{name: json.loads(row[name]) for name in parts}} for row in rows]

    def hold(
        self,
        rule: str,
        template: str,
        printed: Sequence[float],
        stated: Sequence[Sequence[float]] = (),
    ) -> None:
        """Assert that the rule says one sentence of this form, with these numbers in its ``{}``.

        ``printed``: in the units of the sentence; NaN: not worked out. ``stated``: value and bounds
        of the first numbers of the row, in theirs, to nine digits.
        """
        pattern = re.escape(template).replace(r"\{\}", _NUMBER).replace(r"\*", ".*")
        texts = [row["sentence"] for row in self.rows if row["rule"] == rule]
        found = [(text, re.fullmatch(pattern, text)) for text in texts]
        matches = [(text, match) for text, match in found if match]
        assert len(matches) == 1, (template, texts)
        ((text, match),) = matches
        for shown, number in zip(match.groups(), printed, strict=True):
            assert math.isnan(number) or rounds_to(number, shown), (text, shown, number)
        (row,) = [row for row in self.rows if row["sentence"] == text]
        for one, expected in zip(row["numbers"], stated, strict=False):
            check_number(one, expected, text)
        assert len(row["numbers"]) >= len(stated), text
        self.right.append((rule, text))


def check_number(one: dict[str, Any], expected: Sequence[float], text: str) -> None:
    """A number of the table against a value, or a value with its bounds (NaN: none)."""
    for name, number in zip(("value", "low", "high"), expected, strict=False):
        if math.isnan(number):
            assert one[name] is None, (text, one)
        else:
            assert math.isclose(one[name], number, rel_tol=1e-9), (text, one, expected)


def rounds_to(number: float, shown: str) -> bool:
    """Whether a number is the one shown to its last digit."""
    decimals = len(shown.partition(".")[2])
    return bool(abs(float(shown.replace(",", "")) - number) <= 0.5 * 10**-decimals * (1 + 1e-9))


def shows(text: str, number: float) -> bool:
    """Whether a sentence shows a number, rounded."""
    return any(rounds_to(number, shown) for shown in re.findall(_NUMBER, text))
