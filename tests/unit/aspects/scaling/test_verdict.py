"""The verdict: up to which scale a series is efficient, and what may not be said of it."""

import re
from typing import Any

import pytest

from scalesweep.aspects.scaling.findings import UNDECIDED, scaling_verdict, verdicts
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.findings.totals import unsure_total
from tests.fakes.finding_rows import only
from tests.fakes.rows import study_of

# An efficiency, and by which share the first and the third repeat differ from the second; None: a
# single run.
Point = tuple[float, float | None]
RATE = {"rate": ("samples/s", "higher")}
WEAK = {"scaling": "weak", "main_metric": "rate"}


def runs_of(ranks: int, point: Point, **more: Any) -> list[dict[str, Any]]:
    """Runs of a point in weak scaling, of which a rank alone has a rate of 100."""
    share, scatter = point
    factors = (1.0,) if scatter is None else (1 - scatter, 1.0, 1 + scatter)
    return [{"rate_mean_run": 100 * ranks * share * factor, **more} for factor in factors]


def weak(*points: Point) -> ExperimentResults:
    """A series over ranks, doubled from 1, with these efficiencies."""
    every = [(1.0, points[0][1]), *points]
    rows = [({"ranks": 2**i}, runs_of(2**i, point)) for i, point in enumerate(every)]
    return study_of(rows, RATE, **WEAK)


def verdict(*points: Point) -> Finding:
    return only(scaling_verdict(weak(*points)))


def test_it_names_the_largest_efficient_scale_and_the_first_that_is_not() -> None:
    study = weak((0.9, 0.01), (0.7, 0.01), (0.6, 0.04))
    found = only(scaling_verdict(study))
    assert found.state == "clear"
    said = r"Efficient up to 2 ranks; efficiency at 4 ranks: 70 \[6\d, 7\d\] %\."
    assert re.fullmatch(said, found.sentence), found.sentence
    assert found.evidence["key"]["ranks"] == 4
    limit, share = found.numbers
    assert (limit.name, limit.value, limit.unit) == ("efficient up to", 2, "ranks")
    assert (share.name, share.value, share.unit) == ("efficiency", pytest.approx(0.7), "1")
    # The interval that decides is wider than the one of 95 %.
    (row,) = (row for row in study.scaling if row["ranks"] == 4)
    low, high = row["rate_eff_low_run"], row["rate_eff_high_run"]
    assert (share.low or 1) < low < 0.7 < high < (share.high or 0)


def test_a_slow_scale_does_not_hide_that_more_ranks_do_well() -> None:
    dip, good = (0.5, 0.01), (0.93, 0.01)
    found = verdict(dip, good, good)
    assert found.state == "clear"
    assert found.sentence.startswith("Efficient up to 8 ranks; efficiency at 8 ranks: 93 [")
    # The scale to run at is followed by the first below it.
    found = verdict(dip, good, (0.6, 0.03))
    assert found.sentence.startswith("Efficient up to 4 ranks; efficiency at 8 ranks: 60 [")
    assert verdict(dip, good, (0.79, 0.06)).state == "open"


def test_what_changes_with_the_ranks_is_named() -> None:
    points = [
        ({"ranks": n, "threads": n, "batch_size": n}, runs_of(n, (share, 0.01)))
        for n, share in ((1, 1.0), (2, 0.67))
    ]
    found = only(scaling_verdict(study_of(points, RATE, **WEAK)))
    assert found.sentence.startswith("Does not scale; efficiency at 2 ranks: 67 [")
    assert found.flags == ("also changed: threads (1 to 2)",)


def test_an_interval_that_includes_80_percent_decides_nothing() -> None:
    found = verdict((0.9, 0.01), (0.79, 0.02))
    assert found.sentence.startswith("Not decided; efficiency at 4 ranks: 79 [7")
    assert "includes 80 %" in found.reason and found.next.startswith("take either scale")
    near = verdict((0.9, 0.01), (0.75, 0.04))
    assert near.next == "add 1 repeat (3 runs of this series): `repeats` in the campaign"
    # Points of which none has an interval.
    single = verdict((0.9, None), (0.7, None))
    assert found.state == single.state == "open" and single.reason == "one repeat"


def test_far_more_than_the_ideal_is_no_good_result() -> None:
    """As in a published table whose first epochs take 150 s at one rank and 106 s at 1,024."""
    found = verdict((0.92, 0.01), (1.52, 0.02))
    assert found.state == "open" and "check both" in found.reason
    assert found.sentence.startswith("Not decided; efficiency at 4 ranks: 152 [")
    (kind,) = verdicts(weak((0.92, 0.01), (1.52, 0.02)))
    assert (kind.kind, kind.run) == (UNDECIDED, 2)
    single = verdict((0.97, None), (1.52, None))
    assert single.state == "open" and "more than the ideal" in single.reason
    # Caches may give a little more, and scatter may reach far.
    assert verdict((0.92, 0.01), (1.1, 0.02)).state == "clear"
    assert "check both" not in verdict((1.4, 0.5)).reason


@pytest.mark.parametrize("odd", [(0.001, 0.01), (0.001, None)])
def test_a_jump_to_a_thousandth_is_a_change_of_unit_and_no_result(odd: Point) -> None:
    found = verdict((0.99, odd[1]), odd)
    assert found.state == "open" and "change of unit" in found.reason
    # Where all but the base are in the other unit.
    assert {series.kind for series in verdicts(weak(odd, odd, odd))} == {UNDECIDED}
    # What falls bit by bit is no jump, however far.
    assert verdict(*((0.06**n, 0.1) for n in range(1, 5))).state == "clear"


@pytest.mark.parametrize(
    ("point", "apart", "level"),
    [
        ((0.999, 0.005), 0.9, "open"),
        ((0.999, 0.005), 0.02, "clear"),
        ((0.82, 0.006), 0.02, "open"),  # little, but as much as it takes
    ],
)
def test_nothing_is_clear_of_totals_that_differ(point: Point, apart: float, level: str) -> None:
    warning = f"metric 'rate': 4 ranks disagree: 2000 to {2000 * (1 + apart)}, using 2000"
    for text, state in (
        (f"{warning}; and more", level),
        (warning.replace("rate", "loss"), "clear"),  # nothing rests on it
    ):
        points = [
            ({"ranks": 1}, runs_of(1, (1.0, point[1]))),
            ({"ranks": 2}, runs_of(2, point, warnings=text)),
        ]
        study = study_of(points, RATE, **WEAK)
        assert only(scaling_verdict(study)).state == state
        assert bool(unsure_total(study, "rate")) == (apart > 0.05 and "rate" in text)


def test_a_scale_without_result_is_told() -> None:
    study = weak((0.9, 0.01))
    run = study.entry["runs"][0]
    study.entry["runs"].append({**run, "run_id": "x", "status": "failed", "point": {"ranks": 64}})
    assert only(scaling_verdict(study)).flags == ("no result at 64 ranks",)


def test_series_that_say_the_same_share_a_sentence_with_their_range() -> None:
    points = [
        ({"ranks": ranks, "more": series}, runs_of(ranks, (share, 0.002)))
        for series in range(6)
        for ranks, share in ((1, 1.0), (2, 0.9 + series / 100))
    ]
    found = only(scaling_verdict(study_of(points, RATE, **WEAK)))
    assert found.sentence.startswith("All 6 series: efficient up to 2 ranks; efficiency at 2 ranks")
    assert "(the lowest of 6): 90.0 [" in found.sentence


def test_a_share_that_leads_a_table_hides_no_efficiency() -> None:
    """A published table may lead with its MFU; how it scales is in its rates."""
    points = [
        ({"ranks": 1}, [{"mfu_mean_run": 0.4, "rate_mean_run": 10.0}]),
        ({"ranks": 2}, [{"mfu_mean_run": 0.3, "rate_mean_run": 18.0}]),
    ]
    study = study_of(points, {"mfu": ("1", "higher"), **RATE}, scaling="weak", main_metric="mfu")
    assert study.main is not None and study.main.metric == "mfu"
    assert only(scaling_verdict(study)).sentence == "Not decided; efficiency at 2 ranks: 90.0 %."
