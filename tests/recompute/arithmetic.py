"""What sentences state, worked out again from records: no code of the product is used here.

Definitions are those of docs/reference/files.md and docs/guide/report.md. Values come from
record.json and samples.npz alone, intervals from their closed forms.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

Triple = tuple[float, float, float]  # a value and its 95 % interval


@dataclass(frozen=True)
class Run:
    """A finished run as its files have it."""

    run_id: str
    record: dict[str, Any]
    arrays: dict[str, Any]

    def metric(self, name: str) -> float:
        """A metric that the program counted itself."""
        return float(self.record["metrics"][name]["value"])

    def is_at(self, **point: Any) -> bool:
        """Whether the run has these parameters."""
        return all(self.record["point"].get(name) == value for name, value in point.items())


Value = Callable[[Run], float]


def runs_of(folder: Path, experiment: str) -> list[Run]:
    """The finished runs of an experiment in a results folder, in the order of the plan."""
    plan = json.loads((folder / "plan.json").read_text())
    (entry,) = [one for one in plan["experiments"] if one["name"] == experiment]
    found = []
    for run in entry["runs"]:
        path = folder / "runs" / plan["site"] / run["run_id"] / "record.json"
        if path.is_file():
            samples = path.with_name("samples.npz")
            arrays = dict(np.load(samples)) if samples.is_file() else {}
            found.append(Run(run["run_id"], json.loads(path.read_text()), arrays))
    return found


def at(runs: Sequence[Run], value: Value, **point: Any) -> list[float]:
    """A value of each repeat of a point."""
    return [value(run) for run in runs if run.is_at(**point)]


def mean(values: Sequence[float]) -> Triple:
    """Arithmetic mean; Student's t on the logarithms."""
    logs, middle = np.log(values), float(np.mean(values))
    if len(values) < 2:
        return middle, math.nan, math.nan
    error = logs.std(ddof=1) / math.sqrt(len(values))
    factor = math.exp(stats.t.ppf(0.975, len(values) - 1) * error)
    return middle, middle / factor, middle * factor


def ratio(top: Sequence[float], bottom: Sequence[float], scale: float = 1.0) -> Triple:
    """``scale`` times the ratio of two means; Welch's t on the logarithms."""
    value = scale * float(np.mean(top) / np.mean(bottom))
    if min(len(top), len(bottom)) < 2:
        return value, math.nan, math.nan
    welch = stats.ttest_ind(np.log(top), np.log(bottom), equal_var=False)
    bounds = welch.confidence_interval(0.95)
    apart = float(np.mean(np.log(top)) - np.mean(np.log(bottom)))
    half = (bounds.high - bounds.low) / 2
    assert math.isclose(bounds.low, apart - half, abs_tol=1e-9)
    return value, value * math.exp(-half), value * math.exp(half)


def paired_ratio(top: Sequence[float], bottom: Sequence[float], scale: float = 1.0) -> Triple:
    """The same with the difference of the logarithms within each block as the repeat."""
    value = scale * float(np.mean(top) / np.mean(bottom))
    _, low, high = mean(np.divide(top, bottom).tolist())
    half = math.log(high / low) / 2
    return value, value * math.exp(-half), value * math.exp(half)


def block_ratio(blocks: Sequence[Sequence[float]], top: int, bottom: int) -> Triple:
    """Ratio of two of several points that ran in the same blocks, ``blocks[point][block]``.

    Least squares of the logarithms on points and blocks; all points share the residual variance.
    """
    logs = np.log(blocks)
    points, repeats = logs.shape
    rows, columns = np.indices(logs.shape)
    design = np.zeros((logs.size, points + repeats))
    design[np.arange(logs.size), rows.ravel()] = 1
    design[np.arange(logs.size), points + columns.ravel()] = 1
    fitted = design @ np.linalg.lstsq(design, logs.ravel(), rcond=None)[0]
    degrees = (points - 1) * (repeats - 1)
    residual = float(((logs.ravel() - fitted) ** 2).sum()) / degrees
    half = float(stats.t.ppf(0.975, degrees)) * math.sqrt(2 * residual / repeats)
    value = float(np.mean(blocks[top]) / np.mean(blocks[bottom]))
    return value, value * math.exp(-half), value * math.exp(half)


def within(values: Sequence[float]) -> Triple:
    """Geometric mean of ratios taken within runs; Student's t on the logarithms."""
    _, low, high = mean(values)
    middle = float(np.exp(np.mean(np.log(values))))
    half = math.log(high / low) / 2
    return middle, middle * math.exp(-half), middle * math.exp(half)


def stated(value: float, std: float, count: float, degrees: float) -> Triple:
    """A mean with a standard deviation and a count that its source states; t on the logarithm."""
    factor = math.exp(stats.t.ppf(0.975, degrees) * std / value / math.sqrt(count))
    return value, value / factor, value * factor


def samples_per_second(phase: str, times: str = "global_times") -> Value:
    """Total rate of a run in its first epoch or the later ones: the mean over epochs and ranks."""

    def value(run: Run) -> float:
        epochs = run.arrays[times]
        epochs = epochs[:1] if phase == "init" else epochs[1:]
        return float((run.record["work"]["samples_per_epoch"] / epochs).mean())

    return value


def weighted(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Values whose mean is that of ``values`` with such weights; residuals are weighted."""
    middle = float(np.average(values, weights=weights))
    scale = float(np.mean(weights))
    return [middle + w * (v - middle) / scale for v, w in zip(values, weights, strict=True)]


def difference(one: Sequence[float], other: Sequence[float]) -> Triple:
    """Difference of two means; Welch's t."""
    bounds = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    return float(np.mean(one) - np.mean(other)), float(bounds.low), float(bounds.high)
