"""The best point: among which points, how it is claimed, and that it is said once."""

from typing import Any

from scalesweep.aspects.comparisons.best import best_configuration
from scalesweep.aspects.find import find
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.finding_rows import T, only, study, value


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


def test_points_without_a_result_are_named_beside_the_best() -> None:
    """A benchmark that failed where it is hardest did not lose there."""
    rows = [
        {"a": 1, **value("later", (10, 9, 11))},
        {"a": 2, **value("later", (20, 19, 21))},
        {"a": 3, "repeats": 0, "source": None},
    ]
    found = only(best_configuration(study(rows)))
    assert found.level == "confirmed"
    assert found.text.endswith("next is a 1 with 10.0 [9.0, 11.0]; a 3 has no result.")
    rows += [{**rows[2], "a": number} for number in (4, 5, 6)]
    text = only(best_configuration(study(rows))).text
    assert text.endswith("; a 3, a 4 and 2 more have no result.")
    # Of another workload there is no rival.
    kinds = [{**row, "kind": "x"} for row in rows[:2]]
    kinds += [{"a": number, "kind": "y", "repeats": 0, "source": None} for number in (1, 2)]
    parameters = {"a": {"unit": None}, "kind": {"unit": None, "workload": True}}
    apart = study(kinds, ["a", "kind"], parameters=parameters)
    assert "no result" not in only(best_configuration(apart)).text


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


def over_ranks(scaling: str, source: str = "measured", **plan: Any) -> ExperimentResults:
    """Batches of 8 and 16 on one rank and two; two have twice the throughput."""
    rows = [
        {"ranks": ranks, "batch": batch, "source": source,
         **value("later", (10 * ranks + batch, 9 * ranks + batch, 11 * ranks + batch))}
        for ranks in (1, 2)
        for batch in (8, 16)
    ]  # fmt: skip
    return study(rows, ["ranks", "batch"], scaling=scaling, **plan)


def test_more_ranks_with_more_work_are_no_better_point() -> None:
    """In weak scaling only points of one scale compete; in strong scaling all do."""
    weak = only(best_configuration(over_ranks("weak")))
    assert weak.text.startswith("At 2 ranks, best") and "at batch 16, clear of the" in weak.text
    assert "all 3 others" in only(best_configuration(over_ranks("strong"))).text
    assert "all 3 others" in only(best_configuration(over_ranks("none"))).text
    published = only(best_configuration(over_ranks("none", "imported")))
    assert "the only other" in published.text
    alone = [{"ranks": n, **value("later", (10 * n, 9 * n, 11 * n))} for n in (1, 2, 4)]
    assert best_configuration(study(alone, ["ranks"])) == []


def test_the_share_of_a_scale_is_no_best_point() -> None:
    """An efficiency is highest where there is nothing to lose."""
    rows = [
        {"ranks": ranks, **value("run", (1 / ranks, None, None), "parallel_efficiency")}
        for ranks in (1, 2)
    ]
    assert best_configuration(study(rows, ["ranks"], scaling="strong")) == []


def test_many_workloads_without_intervals_share_a_sentence() -> None:
    rows = [
        {"model": model, "mode": mode, "repeats": 1, **value("later", (number, None, None))}
        for model, numbers in (("a", (1, 2)), ("b", (4, 3)), ("c", (5, 6)), ("d", (7, 8)))
        for mode, number in zip(("x", "y"), numbers, strict=True)
    ]
    parameters = {"model": {"unit": None, "workload": True}, "mode": {"unit": None}}
    s = study(rows, ["model", "mode"], parameters=parameters)
    found = only(best_configuration(s))
    assert found.text == (
        "Highest measured total throughput (later epochs) of 4 workloads: mode y for model a, "
        "model c and model d; mode x for model b; one repeat, not confirmed."
    )
    assert [(one.name, one.value) for one in found.numbers] == [
        ("model a", 2), ("model b", 4), ("model c", 6), ("model d", 8),
    ]  # fmt: skip
    two = [row for row in rows if row["model"] in "ab"]
    assert len(best_configuration(study(two, ["model", "mode"], parameters=parameters))) == 2


def test_which_point_is_best_is_said_once() -> None:
    """The rules on threads, on points and on values of a parameter may answer one question."""
    rows = [{"threads": n, **value("later", (10.0 * n, 9.5 * n, 10.5 * n))} for n in (1, 2, 4)]
    unit = {"unit": "threads", "default": 1}
    runs = [
        {"run_id": f"r{n}-{i}", "threads": n, "source": "measured", "repeat": i, "started": None,
         f"{T}_mean_later": 10.0 * n * (1 + 0.01 * i)}
        for n in (1, 2, 4)
        for i in range(3)
    ]  # fmt: skip
    s = study(rows, ["threads"], runs=runs, parameters={"threads": unit})
    assert [one.rule for one in find(s) if "hroughput" in one.text] == ["threads"]
    # With another parameter each rule has a question of its own.
    both = [{**row, "mode": mode} for row in rows for mode in "xy"]
    two = [{**run, "mode": mode} for run in runs for mode in "xy"]
    parameters = {"threads": unit, "mode": {"unit": None}}
    s = study(both, ["threads", "mode"], runs=two, parameters=parameters)
    assert {"threads", "best"} <= {one.rule for one in find(s)}
