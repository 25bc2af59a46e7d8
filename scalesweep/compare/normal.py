"""A training's tokens/s beside comparable published ones, of ``resources/published_rates.csv``.

Of each source that table has the fastest layout of a model, device, type of numbers, scale and
length: a sweep has many that nobody would use.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.aspects.utilisation import Utilisation
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, number
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PLAN, read_plan
from scalesweep.experiment.load import load_results
from scalesweep.planning.planned_shapes import planned_shape
from scalesweep.table.declared import numbers_of

# Of fewer nothing is said: with n alike, a further one is the lowest of all with 1 / (n + 1).
FEWEST = 3
WITHIN, BELOW, ABOVE, UNCLEAR = "within", "below", "above", "unclear"
COLUMNS = (
    "point", "source", "ranks", "parameters", "dtype", "device", "sequence",
    "tokens", "tokens_low", "tokens_high", "published", "published_by", "least", "median", "most",
    "ratio", "verdict", "reason", "left_out",
)  # fmt: skip
_LACKS = {
    # Without its size no tokens/s are worked out.
    "parameters": "the number of its parameters is not stated (transformer.parameters)",
    "tokens": "its tokens/s are not known",
    "dtype": "the type of its numbers is not stated (transformer.dtype, or --dtype)",
    "device": "its device is not stated (transformer.device, or --device)",
}
# What has to agree, and by what factor it may differ.
_ALIKE = {
    "device": ("device", 0.0), "dtype": ("type of numbers", 0.0),
    "parameters": ("parameters", 1.05), "ranks": ("ranks", 2.0),
    "sequence": ("tokens of a sample", 2.0),
}  # fmt: skip


def points_of(results: Path, device: str = "", dtype: str = "") -> Iterator[dict[str, Any]]:
    """The finished points of a results folder: ``COLUMNS`` up to tokens/s of a rank, None unless
    known.

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
            if not (source := str(row.get("source") or "")):
                continue  # none of its runs has finished
            key = loaded.key(row)
            every = parameters_at(entry, planned[key])
            shape = planned_shape(entry, every)
            tokens, low, high = numbers_of(rates.get((key, source)))
            yield {
                "point": f"{entry['name']}: {loaded.describe(row)}",
                "source": source, "ranks": int(every["ranks"]),
                "parameters": shape and shape.parameters, "sequence": shape and shape.sequence,
                "dtype": (shape and shape.dtype) or dtype,
                "device": (shape and shape.device) or device,
                "tokens": tokens, "tokens_low": low, "tokens_high": high,
            }  # fmt: skip


def place(point: Mapping[str, Any], published: pd.DataFrame) -> dict[str, Any]:
    """A point beside the comparable published rates: the row of ``normal.csv``.

    ``verdict`` is missing where nothing can be said; ``reason`` says why, and ``left_out`` how many
    published rates are not comparable, by what differs first. It is unclear if the interval of the
    rate crosses the end that it lies beyond.
    """
    row = {**point, "published": 0}
    if point["source"] not in ("measured", "imported"):
        return {**row, "reason": f"it is {point['source']}"}
    if reason := next((why for name, why in _LACKS.items() if not point[name]), ""):
        return {**row, "reason": reason}
    differs = pd.Series("", published.index)
    for name, (words, factor) in _ALIKE.items():
        far = published[name] != point[name]
        if factor:
            far = np.abs(np.log(published[name] / point[name])) > math.log(factor) * (1 + 1e-9)
        differs = differs.mask((differs == "") & far, words)
    near = published[differs == ""]
    counts = differs[differs != ""].value_counts(sort=False)
    left_out = ", ".join(f"{what} ({count})" for what, count in counts.items())
    row |= {"published": len(near), "left_out": left_out}
    tokens, rates = point["tokens"], near["tokens_per_second_of_a_rank"]
    if len(near):
        row |= {
            "least": rates.min(), "median": rates.median(), "most": rates.max(),
            "ratio": tokens / rates.median(), "published_by": ", ".join(near["source"].unique()),
        }  # fmt: skip
    if len(near) < FEWEST:
        there = counted(len(near), "comparable published rate")
        few = f"{there}, fewer than {FEWEST}; others differ in {left_out or 'nothing'}"
        return {**row, "reason": few}
    low, high = (point[end] or tokens for end in ("tokens_low", "tokens_high"))
    if row["least"] <= tokens <= row["most"]:
        return {**row, "verdict": WITHIN}
    if low <= row["most"] and high >= row["least"]:
        return {**row, "verdict": UNCLEAR}
    return {**row, "verdict": BELOW if tokens < row["least"] else ABOVE}


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
