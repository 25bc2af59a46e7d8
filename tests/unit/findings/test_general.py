"""Every rule, with data where it holds and data where it must not."""

from typing import Any

from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings import find
from scalesweep.findings.general import (
    best_configuration,
    cache_effect,
    coverage,
    outlier_runs,
    oversubscribed,
    waiting,
    warnings,
)
from scalesweep.findings.repeats import until_precise
from tests.fakes.finding_rows import T, Triple, only, scaling, study, value


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


# --- best configuration ---


def test_best_is_claimed_when_clear_of_all() -> None:
    s = study([{"a": 1, **value("later", (10, 9, 11))}, {"a": 2, **value("later", (20, 19, 21))}])
    found = only(best_configuration(s))
    assert found.level == "confirmed"
    assert found.text.startswith("Best total throughput (later epochs): 20.0 [19.0, 21.0]")
    assert "a 2" in found.text
    assert found.evidence["table"] == "points"
    assert found.evidence["key"]["a"] == 2
    assert found.evidence["numbers"][f"{T}_low_later"] == 19
    assert found.evidence["runner_up"]["key"]["a"] == 1


def test_best_is_not_claimed_when_intervals_overlap() -> None:
    rows = [
        {"a": 1, **value("later", (10, 9, 11))},
        {"a": 2, **value("later", (20, 18, 22))},
        {"a": 3, **value("later", (19, 17, 21))},
        # Third by its mean, but its interval reaches furthest.
        {"a": 4, **value("later", (15, 5, 30))},
    ]
    found = only(best_configuration(study(rows)))
    assert found.level == "open"
    assert "indistinguishable from 2 others" in found.text
    assert "Best" not in found.text


def test_one_repeat_confirms_nothing() -> None:
    rows = [
        {"a": 1, **value("init", (10, None, None))},
        {"a": 2, **value("init", (20, None, None))},
    ]
    found = only(best_configuration(study(rows)))
    assert found.level == "open"
    assert found.text == (
        "Highest measured total throughput (first epoch): 20 samples/s at a 2; "
        "one repeat, not confirmed."
    )


def test_best_is_not_confirmed_against_single_repeats() -> None:
    rows = [{"a": 1, **value("later", (10, None, None))}, {"a": 2, **value("later", (20, 19, 21))}]
    found = only(best_configuration(study(rows)))
    assert found.level == "open"
    assert "not confirmed against 1 point with one repeat (a 1)" in found.text


def test_one_point_has_no_best() -> None:
    assert best_configuration(study([{"a": 1, **value("later", (10, 9, 11))}])) == []


def test_sources_do_not_compete_and_are_named() -> None:
    rows = [
        {"a": 1, **value("later", (10, 9, 11))},
        {"a": 2, **value("later", (20, 19, 21))},
        {"a": 1, "source": "imported", **value("later", (99, 98, 100))},
    ]
    found = only(best_configuration(study(rows)))
    assert "a 2" in found.text and "99" not in found.text
    simulated = [{**row, "source": "simulated"} for row in rows[:2]]
    assert only(best_configuration(study(simulated))).text.startswith("Simulated: Best")


def test_lower_is_better_is_followed() -> None:
    rows = [
        {"a": 1, **value("run", (10, 9, 11), "latency")},
        {"a": 2, **value("run", (20, 19, 21), "latency")},
    ]
    s = study(rows)
    frame = s.tables["points"]
    assert frame is not None
    meaning = {"label": "Latency", "unit": "s", "better": "lower", "scope": "total"}
    frame.attrs["units"] = {"latency_mean_run": meaning}
    found = only(best_configuration(s))
    assert found.level == "confirmed" and "at a 1" in found.text


# --- first against later epochs ---


def test_cache_effect_when_clear() -> None:
    s = study([{"a": 1, **value("init", (10, 9, 11)), **value("later", (30, 29, 31))}])
    found = only(cache_effect(s))
    assert "higher" in found.text and "3.00 [2.64, 3.44] times" in found.text
    s = study([{"a": 1, **value("init", (30, 29, 31)), **value("later", (10, 9, 11))}])
    assert "lower" in only(cache_effect(s)).text


def test_no_cache_effect_when_not_clear() -> None:
    overlap = {"a": 1, **value("init", (10, 9, 12)), **value("later", (11, 10, 13))}
    single = {"a": 2, **value("init", (10, None, None)), **value("later", (30, None, None))}
    assert cache_effect(study([overlap, single])) == []
    assert cache_effect(study([{"a": 1, **value("init", (10, 9, 12))}])) == []


# --- waiting, outliers, warnings, coverage ---


def waits(own: Triple, total: Triple, ranks: int = 4) -> ExperimentResults:
    times = {**value("later", own, "local_time"), **value("later", total, "total_time")}
    return study([{"ranks": 1, **times}, {"ranks": ranks, **times}], ["ranks"])


def test_notable_waiting_is_told() -> None:
    found = only(waiting(waits((6, 5.9, 6.1), (10, 9.9, 10.1))))
    assert "at 4 ranks a rank waits 40.0 %" in found.text


def test_waiting_must_be_notable_and_sure() -> None:
    assert waiting(waits((9.8, 9.7, 9.9), (10, 9.9, 10.1))) == []
    assert waiting(waits((6, 3, 10), (10, 8, 12))) == []
    assert waiting(waits((6, None, None), (10, None, None))) == []
    assert waiting(waits((6, 5.9, 6.1), (10, 9.9, 10.1), ranks=1)) == []


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
        "Coverage: 2 of 4 runs done, 1 failed (TIMEOUT 1), 1 pending, 1 point excluded on purpose."
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
    assert oversubscribed(s)[0] in find(s)


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
    assert {"best", "efficiency", "threshold", "coverage"} <= {f.rule for f in findings}
    for finding in findings:
        assert finding.evidence["experiment"] == "e"
        assert finding.evidence["table"] in ("points", "scaling", "runs")
