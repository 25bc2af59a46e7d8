"""Rules of no aspect, with data where they hold and data where they must not."""

from typing import Any

import pytest

from scalesweep.aspects.find import find
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import OPEN, REPEAT, Finding, Rule
from scalesweep.findings.general import (
    coverage,
    disturbed_runs,
    other_load,
    other_main_metric,
    oversubscribed,
    until_precise,
    warnings,
)
from scalesweep.tables.bookkeeping import as_text
from scalesweep.tables.machine_load import LOAD, OTHERS, load_of
from tests.fakes.finding_rows import only
from tests.fakes.rows import study_of


def study(axis: str, values: Any, **more: Any) -> ExperimentResults:
    """A run for each value of an axis."""
    points = [({axis: value}, [{"rate_mean_run": 10.0}]) for value in values]
    return study_of(points, {"rate": ("samples/s", "higher")}, **more)


def repeats(*points: tuple[str, str, float | None]) -> dict[str, Any]:
    return {
        "least": 3, "most": 6, "until": 0.02, "level": 0.9683, "metric": "rate",
        "points": [
            {"point": {"a": name}, "state": state, "width": width, "done": 6, "planned": 6,
             "expected": 6}
            for name, state, width in points
        ],
    }  # fmt: skip


def test_points_that_stayed_wide_are_counted_and_the_widest_is_named() -> None:
    known = repeats(("x", "wide", 0.03), ("y", "precise", 0.01), ("z", "wide", 0.05))
    found = only(until_precise(study("a", "xyz", repeats=known)))
    assert found.state == "attention"
    assert found.sentence == "Points within ±2.0 %: 1 of 3; at a z it stays ±5.0 %."
    assert until_precise(study("a", "xyz")) == []
    found = only(until_precise(study("a", "xyz", repeats=repeats(("y", "precise", 0.01)))))
    assert found.state == "note" and found.sentence.endswith("1 of 1.")


def test_what_stands_for_a_main_metric_that_no_run_has_is_named() -> None:
    """As of ranks with several roles, whose metrics are of each."""
    row = {"rate_actor_mean_run": 1.0, "rate_learner_mean_run": 1.0, "step_mean_run": 2.0}
    rates = dict.fromkeys(("rate_actor", "rate_learner"), ("samples/s", "higher"))
    metrics = {**rates, "step": ("s", "lower")}

    def of(main: str | None) -> list[Any]:
        return other_main_metric(study_of([({"a": 1}, [row])], metrics, main_metric=main))

    assert of(None) == of("rate_learner") == []
    found = only(of("rate"))
    assert found.sentence == "No run has the main metric rate; shown instead is rate_actor."
    assert "`main_metric: rate_actor` or `main_metric: rate_learner`" in found.next


@pytest.mark.parametrize("column", ["outlier", "warnings"])
def test_runs_to_look_at_are_counted_and_named(column: str) -> None:
    one = study("a", range(3))
    runs = one.tables["runs"]
    assert runs is not None and warnings(one) == []
    runs[column] = [None, "far", "far"]
    found = only(warnings(one))
    assert found.state == "attention" and found.subject == "r1-0-1 and r2-0-2"
    assert found.numbers[0].value == 2


def test_coverage_counts_everything() -> None:
    s = study("a", range(4))
    found = only(coverage(s))
    assert (found.state, found.sentence) == ("note", "Runs done: 4 of 4.")
    s.entry["runs"][0].update(status="failed", cause="TIMEOUT", to_run=False)  # of an import
    assert only(coverage(s)).next == ""
    s.entry["runs"][1].update(status="new", to_run=True)
    s.entry["runs"][2].update(status="stale", cause="program changed", detail="x was edited since")
    s.entry["runs"][3].update(detail="accepted although size was 1, is 2")
    s.entry["refused"] = 2  # by an import
    found = only(coverage(s))
    assert found.state == "attention" and found.flags == ("accepted although stale",)
    assert found.sentence == "Runs done: 1 of 4, 1 failed, 1 pending, 1 stale, 2 refused."
    assert found.reason == "TIMEOUT 1" and "`scalesweep run`" in found.next


def test_imports_are_repeated_by_importing_more() -> None:
    imported = Finding("e", "x", OPEN, flags=("imported",))
    assert Rule("x", None, {OPEN: "X."}, REPEAT).say(imported).next.startswith("import more repe")


def test_oversubscribed_points_are_named() -> None:
    s = study("ranks", (1, 2, 4), scaling="weak")
    assert oversubscribed(s) == []  # of a plan that knows no cores
    for run, load in zip(s.entry["runs"], (0.5, 1.0, 2.0), strict=True):
        run["threads_per_core"] = load
    found = only(oversubscribed(s))
    assert found.state == "attention"
    assert found.sentence == (
        "Points with more threads than cores: 1; threads per core at 4 ranks: 2."
    )
    assert found.sentence in [one.sentence for one in find(s)]


def study_under_load(loads: dict[int, list[float | None]]) -> ExperimentResults:
    """Points of some ranks with the load of each of their runs."""
    points = [
        ({"ranks": ranks}, [
            {LOAD: as_text(load_of({} if share is None else {"load": {"others": share}})),
             "speed_mean_run": 1.0 + repeat / 100}
            for repeat, share in enumerate(shares)
        ])
        for ranks, shares in loads.items()
    ]  # fmt: skip
    return study_of(points, {"speed": ("x", "higher")}, main_metric="speed")


def test_disturbed_runs_are_counted_and_named() -> None:
    found = study_under_load({1: [0.01, 0.02, 0.4], 2: [0.12, 0.0, None]})
    assert [row["run_id"] for row in disturbed_runs(found)] == ["r1-2-0", "r2-0-1"]
    finding = only(other_load(found))
    assert finding.state == "attention" and finding.reason == "estimates leave out 2"
    assert finding.sentence == (
        "Other processes disturbed 2 of 6 runs, taking up to 40.0 % of the cores."
    )
    assert finding.evidence["key"]["run_id"] == ["r1-2-0", "r2-0-1"]


def test_old_records_and_quiet_machines_say_nothing() -> None:
    for loads in ([None, None], [0.05, 0.0]):
        found = study_under_load({1: list(loads), 2: list(loads)})
        assert other_load(found) == []
    assert OTHERS not in study_under_load({1: [None]}).rows("runs")[0]
    assert study_under_load({1: [0.05]}).rows("runs")[0][OTHERS] == pytest.approx(0.05)
    assert load_of({"load": {"others": 0.25}}) == 0.25
