"""Canaries: what is kept of them, and when machines are said to differ or to change."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.canary import ALPHA, Apart, between, during
from scalesweep.aspects.find import rules
from scalesweep.aspects.machine_check.findings import canary
from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.tables.bookkeeping import CANARY, canary_of
from scalesweep.tables.bookkeeping import CANARY_WORDS as WORDS
from tests.fakes.plan import whole_plan


def look(*hosts: tuple[str, float, float]) -> dict[str, Any]:
    names, compute, memory = zip(*hosts, strict=True)
    return {"seconds": 2.0, "hosts": names, "compute": list(compute), "memory": list(memory)}


def test_the_slowest_host_counts() -> None:
    record = {
        "canary": {
            "before": {**look(("a", 100.0, 9.0), ("b", 90.0, 10.0)), "hosts": ["a", "b"]},
            "after": {"seconds": 60.0, "missing": "exit code 1"},
        }
    }
    assert canary_of(record) == {"before": {"compute": ("b", 90.0), "memory": ("a", 9.0)}}
    assert canary_of({}) is None
    assert canary_of({"canary": {"after": record["canary"]["after"]}}) is None


def study(
    points: Sequence[Sequence[Sequence[float]]], kind: str = "compute", varied: str = ""
) -> ExperimentResults:
    """Points with runs, each [rate of the kind before, after]; copies and products are 10 else.

    ``varied``: another parameter, which is 1, 2, ... at the points.
    """
    rows, runs = [], []
    for batch, of_point in enumerate(points, 1):
        for repeat, rates in enumerate(of_point):
            run_id = f"r{batch}-{repeat}"
            looks = {
                when: {"compute": ["a", 10.0], "memory": ["a", 10.0]} | {kind: ["a", rate]}
                for when, rate in zip(("before", "after"), rates, strict=False)
            }
            rows.append(
                {"run_id": run_id, "source": "measured", "samples": pd.NA, "started": None,
                 "warnings": None, CANARY: json.dumps(looks) if rates else None}
            )  # fmt: skip
            point = {"batch_size": batch, "ranks": 1} | ({varied: batch} if varied else {})
            runs.append({"run_id": run_id, "repeat": repeat, "point": point, "status": "done"})
    axes = [varied, "batch_size"] if varied else ["batch_size"]
    plan = whole_plan({"experiments": [{"axes": axes, "runs": runs}]})
    summary = pd.DataFrame(rows)
    summary.attrs["metrics"] = {}
    return ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["e"])


def told_of(results: ExperimentResults) -> list[Finding]:
    return [rules()[each.rule].say(each) for each in canary(results)]


def is_clear(change: Apart | None) -> bool:
    return change is not None and change.clear


def test_machines_that_differ_between_points() -> None:
    rng = np.random.default_rng(3)
    points = [[[r, r] for r in 100 * f * np.exp(rng.normal(0, 0.01, 4))] for f in (1, 1.1, 1)]
    found = study(points)
    assert len(found.rows("canary")) == 24
    (warning,) = told_of(found)
    assert warning.state == "attention"
    assert warning.sentence.startswith("The machine differed: matrix products are faster at ")
    assert "batch_size 2 than at batch_size" in warning.sentence and "blocks" in warning.next


def test_machines_are_compared_within_a_benchmark() -> None:
    rng = np.random.default_rng(3)
    points = [[[r, r] for r in 100 * f * np.exp(rng.normal(0, 0.01, 4))] for f in (1, 1.1, 1)]
    (warning,) = told_of(study(points, varied="ranks"))
    assert warning.state == "attention" and "matrix products are faster" in warning.sentence
    # Another benchmark has another framework's Python, with another NumPy.
    for kind in WORDS:
        (note,) = told_of(study(points, kind, "benchmark"))
        assert note.state == "note"


def test_machines_that_change_during_runs() -> None:
    rng = np.random.default_rng(4)
    noise = lambda: np.exp(rng.normal(0, 0.01))  # noqa: E731
    points = [[[100 * noise(), 92 * noise()] for _ in range(4)] for _ in range(3)]
    (warning,) = told_of(study(points))
    assert warning.state == "attention"
    assert "matrix products are slower after runs: " in warning.sentence


def test_nothing_is_said_where_nothing_is_known() -> None:
    (note,) = told_of(study([[[100.0, 100.0]], [[99.0, 101.0]]]))
    assert note.sentence == "Machine checks of 2 runs: too few to compare."
    rng = np.random.default_rng(6)
    points = [[list(100 * np.exp(rng.normal(0, 0.02, 2))) for _ in range(4)] for _ in range(3)]
    (note,) = told_of(study(points))
    assert note.state == "note" and "no difference" in note.sentence
    assert told_of(study([[[]], [[]]])) == []


def test_errors_are_as_rare_as_stated() -> None:
    """1,000 simulated campaigns of three points and four runs without any difference."""
    rng = np.random.default_rng(5)
    wrong = [0, 0]
    for _ in range(1000):
        groups = np.exp(rng.normal(0, 0.05, (3, 4)))
        wrong[0] += between(groups.tolist()) is not None
        pairs = np.exp(rng.normal(0, 0.05, (2, 12)))
        wrong[1] += is_clear(during(*pairs.tolist()))
    assert max(wrong) <= 1000 * ALPHA * 2


def test_small_differences_are_no_reason_to_doubt() -> None:
    rng = np.random.default_rng(8)
    sure = [100 * f * np.exp(rng.normal(0, 1e-4, 5)) for f in (1, 1.01)]
    assert between([group.tolist() for group in sure]) is None
    assert not is_clear(during(sure[0].tolist(), sure[1].tolist()))
    assert between([[100.0] * 5, [100.0] * 5]) is None
    assert not is_clear(during([100.0] * 5, [100.0] * 5))
