"""Every rule, with data where it holds and data where it must not."""

from typing import Any

from scalesweep.aspects.find import find
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.general import (
    coverage,
    other_main_metric,
    outlier_runs,
    oversubscribed,
    waiting,
    warnings,
)
from scalesweep.findings.precision import until_precise
from tests.fakes.finding_rows import T, only, said, scaling, study, value


def repeats(*points: tuple[str, str, float | None]) -> dict[str, Any]:
    return {
        "least": 3, "most": 6, "until": 0.02, "level": 0.9683, "metric": T,
        "points": [
            {"point": {"a": name}, "state": state, "width": width, "done": 6, "planned": 6,
             "expected": 6}
            for name, state, width in points
        ],
    }  # fmt: skip


def test_points_that_stayed_wide_are_named_the_widest_first() -> None:
    rows = [{"a": name, **value("later", (1.0, 0.9, 1.1))} for name in "xyz"]
    known = repeats(("x", "wide", 0.03), ("y", "precise", 0.01), ("z", "wide", 0.05))
    wide, rule = until_precise(study(rows, repeats=known))
    assert wide.level == "warning" and rule.level == "note"
    assert "2 points stayed wide, beyond ±2 % of total throughput: " in wide.text
    assert wide.text.index("a z: ±5 %") < wide.text.index("a x: ±3 % after 6 repeats")
    assert "1 of 3 points within ±2 %" in rule.text and "Student's t at 96.8 %" in rule.text


def test_nothing_is_said_of_fixed_repeats_and_no_point_is_wide_that_is_precise() -> None:
    rows = [{"a": "y", **value("later", (1.0, 0.9, 1.1))}]
    assert until_precise(study(rows)) == []
    (rule,) = until_precise(study(rows, repeats=repeats(("y", "precise", 0.01))))
    assert rule.level == "note"


# --- waiting, outliers, warnings, coverage ---


def waits(*shares: float, ranks: int = 4) -> ExperimentResults:
    """A point whose runs' ranks work for such shares of an epoch of 10 s."""
    names = ("local_time_mean_later", "total_time_mean_later")
    rows = [
        {"ranks": count, "source": "measured", names[0]: 10 * share, names[1]: 10.0}
        for count in (1, ranks)
        for share in shares
    ]
    point = {names[0]: 6.0, names[1]: 10.0}
    return study([{"ranks": 1, **point}, {"ranks": ranks, **point}], ["ranks"], rows)


def test_notable_waiting_is_told() -> None:
    found = only(waiting(waits(0.59, 0.6, 0.61)))
    assert "at 4 ranks a rank waits 40 [37, 42] %" in found.text


def test_waiting_must_be_notable_and_sure() -> None:
    assert said(waiting(waits(0.97, 0.98, 0.99))) == []
    assert said(waiting(waits(0.3, 0.6, 1.0))) == []
    assert said(waiting(waits(0.6))) == []
    assert said(waiting(waits(0.59, 0.6, 0.61, ranks=1))) == []


def test_what_stands_for_a_main_metric_that_no_run_has_is_named() -> None:
    """As of ranks with several roles, whose metrics are of each."""
    rates = {f"rate_{role}_mean_run": 1.0 for role in ("actor", "learner")}
    rows = [{"a": 1, **rates, "step_mean_run": 2.0}]
    assert other_main_metric(study(rows)) == []
    assert other_main_metric(study(rows, main_metric="rate_learner")) == []
    (finding,) = other_main_metric(study(rows, main_metric="rate"))
    assert finding.text == (
        "No run has the main metric, rate: figures and sentences are about rate_actor; to choose, "
        "write main_metric: rate_actor or main_metric: rate_learner."
    )


def test_outliers_are_named() -> None:
    rows = [{"a": 1, **value("later", (10, 9, 11))}]
    runs = [{"run_id": "r0", "a": 1, "outlier": "far"}, {"run_id": "r1", "a": 1, "outlier": None}]
    found = only(outlier_runs(study(rows, runs=runs)))
    assert found.level == "warning" and "r0 (a 1)" in found.text and "r1" not in found.text
    assert outlier_runs(study(rows, runs=runs[1:])) == []


def test_warnings_are_told() -> None:
    rows = [{"a": 1, **value("later", (10, 9, 11))}]
    runs = [{"run_id": "r0", "a": 1, "warnings": "epochs still drift"}]
    assert "epochs still drift" in only(warnings(study(rows, runs=runs))).text
    assert warnings(study(rows, runs=[{"run_id": "r0", "a": 1, "warnings": None}])) == []


def test_a_warning_is_called_what_it_is_and_how_many_runs_have_it() -> None:
    """A unit is no steady state, and ranks that disagree are told in the report too."""
    rows = [{"a": 1, **value("later", (10, 9, 11))}]
    said = ["metric 'x' is left out: it is in 'ms', in most runs in 's'", "epochs still drift"]
    runs = [{"run_id": f"r{i}", "a": 1, "warnings": said[i > 0]} for i in range(3)]
    assert only(warnings(study(rows, runs=runs))).text == (
        f"3 runs with a warning: {said[1]} (2 runs); and {said[0]} (1 run)."
    )


def test_coverage_counts_everything() -> None:
    s = study([{"a": i, **value("later", (10, 9, 11))} for i in range(4)])
    found = only(coverage(s))
    assert (found.level, found.text) == ("note", "Coverage: 4 of 4 runs done.")
    s.entry["runs"][0].update(status="failed", cause="TIMEOUT")
    s.entry["runs"][1].update(status="new")
    s.entry["excluded"].append({"point": {"a": 9}, "reason": "no"})
    found = only(coverage(s))
    assert found.level == "warning"
    assert found.text == (
        "Coverage: 2 of 4 runs done, 1 failed (TIMEOUT 1), 1 pending, 1 point excluded."
    )


def test_coverage_names_stale_and_accepted_runs() -> None:
    s = study([{"a": i, **value("later", (10, 9, 11))} for i in range(4)])
    s.entry["runs"][0].update(status="stale", cause="program changed", detail="x was edited since")
    s.entry["runs"][1].update(detail="accepted although size was 1, is 2")
    found = only(coverage(s))
    assert found.level == "warning" and found.text == (
        "Coverage: 3 of 4 runs done (1 of them accepted although they differ from the plan), "
        "1 stale (program changed)."
    )


def test_oversubscribed_points_are_named() -> None:
    s = study([{"ranks": i, **value("later", (10, 9, 11))} for i in (1, 2, 4)], ["ranks"])
    assert oversubscribed(s) == []  # of a plan that knows no cores
    for run, load in zip(s.entry["runs"], (0.5, 1.0, 2.0), strict=True):
        run["threads_per_core"] = load
    found = only(oversubscribed(s))
    assert found.level == "warning" and found.text == (
        "1 of 3 points oversubscribed, with more than one thread for each core of a node "
        "(4 ranks: 2): their times also show how threads share a core."
    )
    assert oversubscribed(s)[0].text in [one.text for one in find(s)]


def test_coverage_counts_what_an_import_refused_and_what_is_unfinished() -> None:
    s = study([{"a": i, **value("later", (10, 9, 11))} for i in range(2)])
    s.entry["refused"] = 3
    found = only(coverage(s))
    of = s.entry["benchmark"]
    assert (found.level, found.text) == (
        "warning", f"Coverage: 2 of 2 runs done, 3 more runs of {of} refused on import."
    )  # fmt: skip
    del s.entry["refused"]
    s.entry["runs"][0].update(status="unfinished", cause="UNFINISHED")
    found = only(coverage(s))
    assert found.level == "warning" and "1 of 2 runs done, 1 unfinished, without" in found.text


def test_nothing_finished_gives_coverage_only() -> None:
    s = study([{"ranks": 1, "source": None, "repeats": 0}, {"ranks": 2, "repeats": 0}], ["ranks"])
    assert [finding.rule for finding in find(s)] == ["coverage"]
    assert [finding.rule for finding in find(ExperimentResults(s.entry, {}))] == ["coverage"]


def test_every_finding_carries_evidence() -> None:
    s = scaling((0.9, 0.88, 0.92), (0.7, 0.68, 0.72))
    findings = find(s)
    assert [f.rule for f in findings] == ["verdict", "coverage"]
    for finding in findings:
        assert finding.evidence["experiment"] == "e"
        assert finding.evidence["table"] in ("points", "scaling", "runs")
