"""A training's tokens/s beside comparable published ones, of ``resources/published_rates.csv``.

Of each source that table has the fastest layout of a model, device, type of numbers, scale and
length: a sweep has many that nobody would use.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.aspects.utilisation.table import Utilisation
from scalesweep.config.shapes import planned_shape
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, number
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PLAN, read_plan
from scalesweep.experiment.load import load_results
from scalesweep.table.declared import Estimate, numbers_of

# How much sizes (parameters), scales (ranks) and lengths (tokens of a sample) may differ.
SIZE, SCALE, LENGTH = 1.05, 2.0, 2.0
# Of fewer nothing is said: with n alike, a further one is the lowest of all with 1 / (n + 1).
FEWEST = 3
WITHIN, BELOW, ABOVE, UNCLEAR = "within", "below", "above", "unclear"
COLUMNS = (
    "point", "source", "ranks", "parameters", "dtype", "device", "sequence",
    "tokens", "tokens_low", "tokens_high", "published", "published_by", "least", "median", "most",
    "ratio", "verdict", "reason", "left_out",
)  # fmt: skip


@dataclass(frozen=True)
class Training:
    """A finished point; ``tokens`` are tokens/s of a rank, None unless known."""

    label: str
    source: str
    ranks: int
    shape: ModelShape | None
    tokens: Estimate | None


def trainings(results: Path, device: str = "", dtype: str = "") -> Iterator[Training]:
    """The finished points of a results folder.

    ``device`` and ``dtype`` count where the benchmark does not say what ranks compute on, or the
    type of the numbers in products. Raises UserError for a folder without a plan and tables.
    """
    if not (results / PLAN).is_file():
        raise UserError(f"{results}: no results folder: it has no {PLAN}")
    for entry in read_plan(results / PLAN)["experiments"]:
        loaded = load_results(entry, results / "tables")
        planned = {loaded.key(run["point"]): run["point"] for run in entry["runs"]}
        rates = {
            (loaded.key(row.point), row.source): row.rank_tokens for row in loaded.of(Utilisation)
        }
        for row in loaded.points:
            key, source = loaded.key(row), row.get("source")
            every = parameters_at(entry, planned[key])
            if (shape := planned_shape(entry, every)) is not None:
                known = shape.device or device or None, shape.dtype or dtype or None
                shape = replace(shape, device=known[0], dtype=known[1])
            label, tokens = f"{entry['name']}: {loaded.describe(row)}", rates.get((key, source))
            yield Training(label, str(source or ""), int(every["ranks"]), shape, tokens)


def place(training: Training, published: pd.DataFrame) -> dict[str, Any]:
    """A point beside the comparable published rates: the row of ``normal.csv``.

    ``verdict`` is missing where nothing can be said; ``reason`` says why, and ``left_out`` how many
    published rates are not comparable, by what differs first.
    """
    shape, rate = training.shape, training.tokens
    model = {
        name: getattr(shape, name, None) for name in ("parameters", "dtype", "device", "sequence")
    }
    tokens, low, high = numbers_of(rate)
    row: dict[str, Any] = {
        "point": training.label, "source": training.source, "ranks": training.ranks, **model,
        "tokens": tokens, "tokens_low": low, "tokens_high": high, "published": 0,
    }  # fmt: skip
    unfit = {
        "it declares no transformer, or states too little of it": shape is None,
        f"it is {training.source}": training.source not in ("measured", "imported"),
        "its tokens/s are not known": rate is None,
        "its number of parameters is not stated (transformer.parameters)": not model["parameters"],
        "the type of its numbers is not stated (transformer.dtype, or --dtype)": not model["dtype"],
        "its device is not stated (transformer.device, or --device)": not model["device"],
    }
    if reason := next((why for why, holds in unfit.items() if holds), ""):
        return {**row, "reason": reason}
    assert rate is not None  # else unfit
    differs = _differences({**model, "ranks": training.ranks}, published)
    near = published[differs == ""]
    counts = differs[differs != ""].value_counts(sort=False)
    left_out = ", ".join(f"{what} ({count})" for what, count in counts.items())
    row |= {"published": len(near), "left_out": left_out}
    if len(near):
        rates = near["tokens_per_second_of_a_rank"]
        row |= {
            "least": rates.min(), "median": rates.median(), "most": rates.max(),
            "ratio": rate.value / rates.median(),
            "published_by": ", ".join(near["source"].unique()),
        }  # fmt: skip
    if len(near) < FEWEST:
        there = counted(len(near), "comparable published rate")
        few = f"{there}, fewer than {FEWEST}; others differ in {left_out or 'nothing'}"
        return {**row, "reason": few}
    return {**row, "verdict": _verdict(rate, row["least"], row["most"])}


def _differences(mine: dict[str, Any], published: pd.DataFrame) -> "pd.Series[str]":
    """What of a published rate differs first from a point; empty for a comparable one."""
    first = pd.Series("", published.index)
    for name, words in (("device", "device"), ("dtype", "type of numbers")):
        first = first.mask((first == "") & (published[name] != mine[name]), words)
    for name, words, most in (
        ("parameters", "parameters", SIZE), ("ranks", "ranks", SCALE),
        ("sequence", "tokens of a sample", LENGTH),
    ):  # fmt: skip
        far = np.abs(np.log(published[name] / mine[name])) > math.log(most) * (1 + 1e-9)
        first = first.mask((first == "") & far, words)
    return first


def _verdict(mine: Estimate, least: float, most: float) -> str:
    """Where a rate lies; unclear if its interval crosses the end that it lies beyond."""
    if least <= mine.value <= most:
        return WITHIN
    if mine.value < least:
        return UNCLEAR if mine.high is not None and mine.high >= least else BELOW
    return UNCLEAR if mine.low is not None and mine.low <= most else ABOVE


def sentence(row: dict[str, Any]) -> str:
    """What is said of a point that has comparable published rates."""
    count = row["published"]
    ends = " to ".join(dict.fromkeys(number(row[end], 4) for end in ("least", "most")))
    chance = f"if all {count + 1} were alike, in {100 / (count + 1):.0f} % of cases"
    verdict = {
        WITHIN: "within what is published",
        BELOW: f"lower than all of them ({chance})",
        ABOVE: f"higher than all of them ({chance})",
        UNCLEAR: "at their edge, within its interval",
        None: f"not judged: {FEWEST} are needed",
    }[row.get("verdict")]
    return (
        f"{row['point']}: {number(row['tokens'], 4)} tokens/s of a rank; "
        f"{counted(count, 'comparable published rate')}: {ends}; {verdict}."
    )
