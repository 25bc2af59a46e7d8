"""The sentences of a real campaign, whose wording depends on what was measured."""

import math
import re
from pathlib import Path
from typing import Any

from tests.recompute.arithmetic import (
    Run,
    Value,
    at,
    mean,
    paired_ratio,
    ratio,
    runs_of,
    samples_per_second,
)
from tests.recompute.sentences import Sentences, shows

RATES: dict[str, dict[str, Value]] = {
    "io_weak_scaling": {name: samples_per_second(name) for name in ("init", "later")},
    "thread_pools": {name: samples_per_second(name) for name in ("init", "later")},
    "training": {"run": lambda run: run.metric("total_images_per_second")},
}


def check_demo(results: Path) -> list[tuple[str, str, str]]:
    """Recompute what the demo's findings say; returns experiment, rule and sentence of each."""
    right = []
    for experiment in RATES:
        runs, rows = runs_of(results, experiment), Sentences(results, experiment).rows
        for row in rows:
            if _checked(experiment, runs, row):
                right.append((experiment, str(row["rule"]), str(row["sentence"])))
    return right


def _checked(experiment: str, runs: list[Run], row: dict[str, Any]) -> bool:
    text, rule = row["sentence"], row["rule"]
    point = {name: value for name, value in row["row"].items() if name not in ("source", "devices")}
    numbers = {one["name"]: one for one in row["numbers"]}
    if rule == "coverage":
        assert numbers["done"]["value"] == len(runs) and shows(text, len(runs)), text
        return True
    if rule in ("best", "threads"):
        return _best(experiment, runs, row, point)
    if rule in ("verdict", "efficiency"):
        return _efficiency(experiment, runs, row, point)
    return rule == "largest loss" and _loss(experiment, runs, row, point)


def _best(experiment: str, runs: list[Run], row: dict[str, Any], point: dict[str, Any]) -> bool:
    text, numbers = row["sentence"], {one["name"]: one for one in row["numbers"]}
    name = next((name for name in numbers if "_mean_" in name), None)
    if name is None:
        return False
    one = numbers[name]
    value = RATES[experiment][name.rpartition("_")[2]]
    rate = mean(at(runs, value, **point))[0]
    _same(one["value"], rate, text)
    if "ratio" in numbers:
        # Sentences name the two points by their parameters, the best one first.
        other = re.search(r" of the [\w ]+\((inter\w+ \d, intra\w+ \d)\)", text)
        if other is None:
            return False
        pairs = {k: int(v) for k, v in (part.split() for part in other[1].split(", "))}
        times = rate / mean(at(runs, value, **pairs))[0]
        _same(numbers["ratio"]["value"], times, text)
        assert shows(text, times), text
        return True
    assert shows(text, rate), text
    return True


def _efficiency(
    experiment: str, runs: list[Run], row: dict[str, Any], point: dict[str, Any]
) -> bool:
    text = row["sentence"]
    phase = "init" if "First epoch" in text else "later"
    value = RATES[experiment].get("run") or RATES[experiment][phase]
    one = row["numbers"][0]
    base = {**point, "ranks": 1}
    tops, bottoms = at(runs, value, **point), at(runs, value, **base)
    reached = ratio(tops, bottoms, 1 / point["ranks"])
    _same(one["value"], reached[0], text)
    assert shows(text, 100 * reached[0]), (text, reached)
    if experiment == "training":  # of two points, which share no variance
        paired = paired_ratio(tops, bottoms, 1 / point["ranks"])
        bounds = (one["low"], one["high"])
        assert any(
            all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(bounds, ends, strict=True))
            for ends in (reached[1:], paired[1:])
        ), (text, bounds, reached, paired)
    return True


def _loss(experiment: str, runs: list[Run], row: dict[str, Any], point: dict[str, Any]) -> bool:
    text = row["sentence"]
    took = re.search(r"(?:a step|an epoch) takes ([\d,.]+) (m?s) instead of", text)
    if took:
        value = RATES[experiment].get("run") or RATES[experiment]["later"]
        factor = 1000 if took[2] == "ms" else 1
        work = _samples_in_a_step if experiment == "training" else _samples_in_an_epoch
        steps = []
        for ranks in (point["ranks"], 1):
            place = {**point, "ranks": ranks}
            rate = mean(at(runs, value, **place))[0]
            steps.append(factor * mean(at(runs, work, **place))[0] / rate)
        assert shows(took[0], steps[0]) and shows(text, steps[1]), (text, steps)
        return True
    return False


def _samples_in_a_step(run: Run) -> float:
    return float(run.record["point"]["batch_size"] * run.record["point"]["ranks"])


def _samples_in_an_epoch(run: Run) -> float:
    return float(run.record["work"]["samples_per_epoch"])


def _same(found: float, expected: float, text: str) -> None:
    assert math.isclose(found, expected, rel_tol=1e-9), (text, found, expected)
