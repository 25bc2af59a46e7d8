"""Two sides joined point by point: what is told improved, worse, unclear or on one side only."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.canary import apart
from scalesweep.analysis.multiple import adjusted_p
from scalesweep.analysis.stats import ratio_interval
from scalesweep.compare.environment_diff import surroundings
from scalesweep.compare.inputs import Side
from scalesweep.compare.matching import join
from scalesweep.compare.page import render_comparison
from scalesweep.compare.significance import (
    IMPROVED,
    ONLY_BASE,
    ONLY_NEW,
    UNCLEAR,
    WORSE,
    Change,
    changes,
    counts,
    geometric_mean,
)
from scalesweep.compare.tables import make_tables
from scalesweep.tables.canary_rates import CANARY
from tests.fakes.sides import CPU, RATE, VERSIONS, FakePoint, FakeSide, make_side, rates

BASE = [100.0, 101.0, 99.0]


def two(base: FakeSide, new: FakeSide) -> tuple[Side, Side]:
    return make_side(base), make_side(new)


def sides(base: list[float], new: list[float], phase: str = "later") -> tuple[Side, Side]:
    point = {"ranks": 4}
    return two(
        FakeSide("base", [FakePoint(point, rates(base, phase))]),
        FakeSide("new", [FakePoint(point, rates(new, phase))]),
    )


def compared(base: Side, new: Side) -> list[Change]:
    joined = join(base, new)
    return changes([*joined.both, *joined.unmatched], base, new)[0]


def one_change(base: list[float], new: list[float]) -> Change:
    (change,) = compared(*sides(base, new))
    return change


@pytest.mark.parametrize("factor", [1.1, 1 / 1.1])
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_a_true_change_of_ten_per_cent_is_told_with_its_interval(
    factor: float, better: str
) -> None:
    metric, phase = (RATE, "later") if better == "higher" else ("total_time", "later")
    values = [factor * 1.003 * value for value in BASE]
    points = [[FakePoint({"ranks": 4}, {(metric, phase): v})] for v in (BASE, values)]
    base, new = two(FakeSide("base", points[0]), FakeSide("new", points[1]))
    (change,) = compared(base, new)
    assert change.verdict == (IMPROVED if (factor > 1) == (better == "higher") else WORSE)
    interval = ratio_interval(values, BASE)
    assert (change.low, change.high) == (interval.low, interval.high)
    assert change.low < factor < change.high and change.p < 0.05
    assert change.ratio == pytest.approx(1.003 * factor)
    assert (change.base.repeats, change.base.mean) == (3, 100.0)


def test_noise_is_unclear() -> None:
    change = one_change(BASE, [100.4, 99.5, 101.2])
    assert (change.verdict, change.reason) == (UNCLEAR, "the 95 % interval includes 1")
    assert change.low < 1 < change.high and change.p > 0.05


@pytest.mark.parametrize("base, new", [([100.0], [150.0, 151.0]), (BASE, [150.0]), ([1.0], [9.0])])
def test_one_repeat_is_unclear_whatever_the_ratio(base: list[float], new: list[float]) -> None:
    change = one_change(base, new)
    assert (change.verdict, change.reason) == (UNCLEAR, "one repeat on a side")
    assert change.ratio > 1.4 and math.isnan(change.low) and math.isnan(change.p)


def test_a_loss_is_compared_only_where_the_benchmark_says_so() -> None:
    loss = [0.5, 0.51, 0.52]

    def verdict(name: str, **more: Any) -> tuple[str, str]:
        meanings = {name: {"unit": "1", "better": "lower", "scope": "total"}}
        base, new = (
            FakeSide(role, [FakePoint({"ranks": 4}, values)], meanings=meanings, **more)
            for role, values in (
                ("base", {(RATE, "later"): BASE, (name, "run"): loss}),
                ("new", {(RATE, "later"): BASE, (name, "run"): [9.0, 9.1, 9.2]}),
            )
        )
        found = compared(*two(base, new))
        (change,) = [one for one in found if one.metric == name]
        assert change.base.mean == pytest.approx(0.51) and change.new.mean == pytest.approx(9.1)
        return change.verdict, change.reason

    never = (UNCLEAR, "not compared: of runs that neither trained to a target nor a fixed amount")
    assert verdict("final_loss") == never
    assert verdict("final_loss", compare={"final_loss": "same_training"}) == (WORSE, "")
    assert verdict("step_time") == (WORSE, "")
    assert verdict("step_time", compare={"step_time": "never"}) == never


def test_values_that_are_not_positive_have_no_ratio() -> None:
    change = one_change([0.0, 1.0], [1.0, 2.0])
    assert change.verdict == UNCLEAR and "not positive" in change.reason
    assert math.isnan(change.ratio)


@pytest.mark.parametrize("new", [[0.1, 0.1], [0.2, 0.2], [0.2, 0.21, 0.22]])
def test_identical_repeats_carry_no_verdict(new: list[float]) -> None:
    change = one_change([0.1, 0.1, 0.1], new)
    assert (change.verdict, change.reason) == (UNCLEAR, "identical repeats on a side")
    assert change.ratio == pytest.approx(np.mean(new) / 0.1)
    assert math.isnan(change.low) and math.isnan(change.p) and math.isnan(change.base.low)


@pytest.mark.slow
def test_equal_sides_are_told_apart_as_often_as_the_intervals_allow() -> None:
    generator = np.random.default_rng(20200806)
    points = [
        [
            FakePoint({"ranks": n}, rates([*np.exp(0.02 * generator.standard_normal(4))]))
            for n in range(2000)
        ]
        for _ in range(2)
    ]
    base, new = two(FakeSide("base", points[0]), FakeSide("new", points[1]))
    found = compared(base, new)
    told = sum(change.verdict in (IMPROVED, WORSE) for change in found)
    assert 0.035 < told / 2000 < 0.06  # Welch's t is a little careful with few repeats
    (count,) = counts(found)
    assert (count.compared, count.by_chance) == (2000, pytest.approx(100.0))
    assert sum(count.kept.values()) <= 2  # after the correction chance gives next to none
    assert count.overall is not None and count.overall.points == 2000
    assert count.overall.low < 1 < count.overall.high
    assert count.overall.high - count.overall.low < 0.003


def test_a_few_true_changes_survive_the_correction() -> None:
    generator = np.random.default_rng(7)

    def points(factor: float) -> list[FakePoint]:
        return [
            FakePoint(
                {"ranks": n},
                rates([*(factor if n < 10 else 1) * np.exp(0.01 * generator.standard_normal(5))]),
            )
            for n in range(100)
        ]

    found = compared(*two(FakeSide("base", points(1.0)), FakeSide("new", points(0.9))))
    (count,) = counts(found)
    assert count.verdicts[WORSE] >= 10 and count.kept[WORSE] >= 10
    assert all(change.verdict == WORSE for change in found[:10])
    assert sum(count.kept.values()) <= 12


def test_corrected_p_values_are_those_of_benjamini_and_hochberg() -> None:
    # Benjamini and Hochberg (1995), section 4: four of the fifteen are rejected at 5 %.
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
         0.5719, 0.6528, 0.7590, 1.0]  # fmt: skip
    adjusted = adjusted_p(p)
    assert [value <= 0.05 for value in adjusted] == [True] * 4 + [False] * 11
    assert adjusted[0] == pytest.approx(0.0015) and adjusted[3] == pytest.approx(0.035625)
    shuffled = adjusted_p(p[::-1])
    assert shuffled == pytest.approx(adjusted[::-1])
    assert adjusted == sorted(adjusted) and adjusted_p([]) == []


def test_points_are_joined_by_parameters_not_by_names_of_experiments() -> None:
    here = [FakePoint({"ranks": n, "rate": 1.0}, rates(BASE), "io") for n in (1, 2)]
    there = [FakePoint({"rate": 1, "ranks": n}, rates(BASE), "reading") for n in (2, 4)]
    base, new = two(
        # A plan has quantities of the campaign too, which no record has.
        FakeSide(
            "base",
            here,
            planned=[({"ranks": 4, "rate": 1.0, "dp": 2}, "TIMEOUT")],
            quantities=["dp"],
        ),
        FakeSide("new", there, excluded=[({"ranks": 1, "rate": 1.0}, "too few")]),
    )
    joined = join(base, new)
    assert [(pair.point.values["ranks"], pair.experiment) for pair in joined.both] == [(2, "io")]
    assert [(pair.point.values["ranks"], pair.why) for pair in joined.unmatched] == [
        (1, "excluded there: too few"), (4, "planned there: TIMEOUT"),
    ]  # fmt: skip
    verdicts = {c.pair.point.values["ranks"]: c.verdict for c in compared(base, new)}
    assert verdicts == {2: UNCLEAR, 1: ONLY_BASE, 4: ONLY_NEW}
    assert not joined.assumptions and not joined.apart


def test_a_missing_parameter_counts_as_the_default_that_a_plan_tells() -> None:
    old = [FakePoint({"ranks": 1}, rates(BASE))]
    more = [FakePoint({"ranks": 1, "prefetch": n}, rates(BASE)) for n in (2, 4)]
    base, new = two(FakeSide("base", old), FakeSide("new", more, defaults={"prefetch": 4}))
    joined = join(base, new)
    (pair,) = joined.both
    assert pair.point.values == {"ranks": 1, "prefetch": 4}
    assert pair.base is not None and pair.base.assumed == ("prefetch",)
    (told,) = joined.assumptions
    assert (told.role, told.name, told.default, told.stated_by) == ("base", "prefetch", 4, "new")
    assert [pair.point.values["prefetch"] for pair in joined.unmatched] == [2]

    base, new = two(FakeSide("base", old), FakeSide("new", more, plan=False))
    joined = join(base, new)
    assert not joined.both and len(joined.unmatched) == 3
    assert not joined.assumptions[0].known
    assert "prefetch (on one side only" in joined.apart[0]


def test_points_that_differ_in_version_only_stand_apart() -> None:
    base, new = two(
        FakeSide("base", [FakePoint({"ranks": n}, rates(BASE)) for n in (1, 2)]),
        FakeSide("new", [FakePoint({"ranks": n}, rates(BASE), version=2) for n in (1, 4)]),
    )
    joined = join(base, new)
    assert not joined.both
    (pair,) = joined.versions
    assert pair.base is not None and pair.new is not None
    assert (pair.base.kind[1], pair.new.kind[1]) == (1, 2)
    assert sorted(pair.point.values["ranks"] for pair in joined.unmatched) == [2, 4]
    frames = make_tables([], [], joined, surroundings([], base, new))
    (row,) = frames["versions"].to_dict("records")
    assert (row["ranks"], row["base_version"], row["new_version"]) == (1, 1, 2)
    assert [row["base_runs"], row["new_runs"]] == [3, 3]


def test_sides_without_a_point_in_common_say_why() -> None:
    base, new = two(
        FakeSide("base", [FakePoint({"ranks": 1, "epochs": 2}, rates(BASE))]),
        FakeSide("new", [FakePoint({"ranks": 1, "epochs": 3}, rates(BASE))]),
    )
    assert join(base, new).apart == [
        "b, version 1: no common value of epochs (2 in base, 3 in new)"
    ]


def test_sources_are_never_averaged_together() -> None:
    point = {"ranks": 1}
    base, new = two(
        FakeSide("base", [FakePoint(point, rates(BASE)),
                          FakePoint(point, rates([5.0, 6.0]), source="simulated")]),
        FakeSide("new", [FakePoint(point, rates(BASE))]),
    )  # fmt: skip
    joined = join(base, new)
    (pair,) = joined.both
    assert pair.source == "measured" and pair.base is not None and len(pair.base.rows) == 3
    assert [(pair.source, pair.why) for pair in joined.unmatched] == [
        ("simulated", "there from another source only")
    ]
    imported = make_side(FakeSide("new", [FakePoint(point, rates(BASE), source="imported")]))
    assert [pair.source for pair in join(base, imported).both] == [
        "measured, new: imported", "simulated, new: imported",
    ]  # fmt: skip


def test_metrics_of_other_meaning_are_not_compared() -> None:
    def fake(role: str, better: str) -> FakeSide:
        meaning = {"latency": {"unit": "s", "better": better, "scope": "total"}}
        metrics = {("latency", "run"): BASE}
        return FakeSide(role, [FakePoint({"ranks": 1}, metrics)], meanings=meaning)

    base, new = two(fake("base", "lower"), fake("new", "higher"))
    found, unlike = changes(join(base, new).both, base, new)
    assert not found and unlike == ["b: latency (s, lower is better and s, higher is better)"]


def test_utilisations_of_two_conventions_are_not_compared() -> None:
    def fake(role: str, metric: str) -> FakeSide:
        meaning = {metric: {"unit": "1", "better": "higher", "scope": "total"}}
        return FakeSide(role, [FakePoint({"ranks": 1}, {(metric, "run"): BASE})], meanings=meaning)

    base, new = two(fake("base", "mfu_palm"), fake("new", "mfu_megatron"))
    (line,) = changes(join(base, new).both, base, new)[1]
    assert line.startswith("b: mfu_palm and mfu_megatron count FLOP by two conventions")
    base, new = two(fake("base", "mfu_palm"), fake("new", "hfu_palm"))
    assert changes(join(base, new).both, base, new)[1] == []


def test_every_metric_and_phase_that_a_side_has_is_told_the_main_one_first() -> None:
    meaning = {"loss": {"unit": "1", "better": "lower", "scope": "total"}}
    here = {("total_time", "init"): BASE, **rates(BASE, "init"), **rates(BASE)}
    there = {**rates(BASE), ("loss", "run"): [0.5, 0.4]}
    base, new = two(
        FakeSide("base", [FakePoint({"ranks": 1}, here)]),
        FakeSide("new", [FakePoint({"ranks": 1}, there)], meanings=meaning),
    )
    found = compared(base, new)
    assert [(c.metric, c.phase, c.verdict) for c in found] == [
        (RATE, "init", ONLY_BASE), (RATE, "later", UNCLEAR),
        ("total_time", "init", ONLY_BASE), ("loss", "run", ONLY_NEW),
    ]  # fmt: skip
    base, new = two(
        FakeSide("base", [FakePoint({"ranks": 1}, here)], main_metric="total_time"),
        FakeSide("new", [FakePoint({"ranks": 1}, here)]),
    )
    assert [c.metric for c in compared(base, new) if c.main] == ["total_time"]


def test_geometric_mean_is_of_two_points_or_more_and_has_an_interval_where_all_have() -> None:
    def found(*news: list[float]) -> list[Change]:
        here = [FakePoint({"ranks": n}, rates(BASE)) for n in range(len(news))]
        there = [FakePoint({"ranks": n}, rates(new)) for n, new in enumerate(news)]
        return compared(*two(FakeSide("base", here), FakeSide("new", there)))

    up, down = [2 * value for value in BASE], [value / 2 for value in BASE]
    assert geometric_mean(found(up)) is None
    mean = geometric_mean(found(up, down))
    assert mean is not None and mean.value == pytest.approx(1.0)
    single = found(up)[0]
    # Two equal errors: the mean's is smaller by the root of two, with twice the freedom.
    assert 1 < mean.high / mean.low < (single.high / single.low) ** (1 / math.sqrt(2))
    mean = geometric_mean(found(up, [200.0]))
    assert mean is not None and mean.value == pytest.approx(2.0) and math.isnan(mean.low)


def test_unlike_machines_and_software_are_told_and_alike_ones_are_not() -> None:
    points = [FakePoint({"ranks": 1}, rates(BASE))]
    base = make_side(FakeSide("base", points))
    alike = make_side(FakeSide("new", points))
    around = surroundings(join(base, alike).both, base, alike)
    assert not around.differences and around.alike > 5 and around.shared == 0
    other = make_side(
        FakeSide(
            "new", points, hardware={**CPU, "cpu_model": "CPU B", "governor": "powersave"},
            versions={**VERSIONS, "tensorflow": "2.19.0", "mpi": "4.1"}, host="node2",
            variables={"OMP_NUM_THREADS": "4", "SLURM_JOB_ID": "7"}, commit="1" * 40,
        )
    )  # fmt: skip
    around = surroundings(join(base, other).both, base, other)
    told = {(one.kind, one.fact): (one.base, one.new) for one in around.differences if one.known}
    assert told == {
        ("machine", "CPU"): ("CPU A", "CPU B"),
        ("machine", "governor"): ("performance", "powersave"),
        ("hosts", "hosts"): ("1 host: node1", "1 host: node2"),
        ("software", "tensorflow"): ("2.18.1", "2.19.0"),
        ("code", "git commit"): ("0" * 12, "1" * 12),
    }
    assert {one.fact for one in around.differences if not one.known} == {"mpi", "OMP_NUM_THREADS"}


def test_a_mixture_differs_from_a_side_that_is_all_alike() -> None:
    points = [FakePoint({"ranks": n}, rates(BASE)) for n in (1, 2)]
    base, new = make_side(FakeSide("base", points)), make_side(FakeSide("new", points))
    texts = new.summary["_facts"].tolist()
    new.summary["_facts"] = [text.replace("0.28.1", "0.29.0") for text in texts[:3]] + texts[3:]
    (told,) = surroundings(join(base, new).both, base, new).differences
    assert (told.fact, told.base) == ("horovod", "0.28.1")
    assert told.new == "0.29.0 (3 runs) and 0.28.1 (3 runs)"


def test_the_very_same_runs_on_both_sides_are_counted() -> None:
    points = [FakePoint({"ranks": 1}, rates(BASE))]
    fakes = [FakeSide(role, points, started="2026-01-01T00:00:00") for role in ("base", "new")]
    base, new = two(*fakes)
    assert surroundings(join(base, new).both, base, new).shared == 3


def test_the_tables_hold_every_row_in_full_precision() -> None:
    base, new = sides([1 / 3, 1 / 7, 1 / 9], [0.3, 0.2])
    joined = join(base, new)
    found, _ = changes(joined.both, base, new)
    around = surroundings(joined.both, base, new)
    frames = make_tables(found, counts(found), joined, around)
    (row,) = frames["points"].to_dict("records")
    assert row["base_mean"] == np.mean([1 / 3, 1 / 7, 1 / 9]) and row["new_repeats"] == 2
    assert row["ratio"] == found[0].ratio and row["ratio_low"] == found[0].low
    assert (row["ranks"], row["metric"], row["phase"], row["verdict"]) == (
        4,
        RATE,
        "later",
        UNCLEAR,
    )
    (count,) = frames["counts"].to_dict("records")
    assert (count["unclear"], count["improved"], count["kept_worse"]) == (1, 0, 0)
    assert all(isinstance(frame, pd.DataFrame) for frame in frames.values())
    assert list(frames["unmatched"].columns)[:4] == ["side", "experiment", "benchmark", "ranks"]


def test_a_parameter_named_like_a_column_keeps_its_values() -> None:
    base, new = two(
        *(
            FakeSide(r, [FakePoint({"ranks": 1, "verdict": "x"}, rates(BASE))])
            for r in ("base", "new")
        )
    )
    joined = join(base, new)
    found, _ = changes(joined.both, base, new)
    frames = make_tables(found, counts(found), joined, surroundings(joined.both, base, new))
    (row,) = frames["points"].to_dict("records")
    assert (row["parameter_verdict"], row["verdict"]) == ("x", UNCLEAR)


def _with_canaries(side: Side, factor: float, seed: int) -> Side:
    rng = np.random.default_rng(seed)
    texts = []
    for row in range(len(side.summary)):
        size = 1.0 + row // 3  # points are of different sizes
        looks = {
            when: {"compute": ["a", 5.0 * np.exp(rng.normal(0, 0.005))],
                   "memory": ["a", size * factor * np.exp(rng.normal(0, 0.005))]}
            for when in ("before", "after")
        }  # fmt: skip
        texts.append(json.dumps(looks) if row else None)  # one has failed
    side.summary[CANARY] = texts
    return side


def test_canaries_say_whether_the_machine_was_as_fast() -> None:
    points = [FakePoint({"ranks": n}, rates(BASE)) for n in (1, 2)]
    base = _with_canaries(make_side(FakeSide("base", points)), 1.0, 1)
    new = _with_canaries(make_side(FakeSide("new", points)), 0.9, 2)
    joined = join(base, new)
    around = surroundings(joined.both, base, new)
    compute, memory = around.machine
    assert (compute.kind, compute.base_runs, compute.new_runs) == ("compute", 5, 5)
    assert not compute.apart.clear and compute.apart.low < 0 < compute.apart.high
    assert memory.apart.clear and memory.apart.low < -0.1 < memory.apart.high
    found, unlike = changes(joined.both, base, new)
    frame = make_tables(found, counts(found), joined, around)["canary"]
    assert frame["clear"].tolist() == [False, True]
    page = render_comparison(base, new, found, counts(found), joined, around, unlike, [])
    assert page.count("The machine itself was slower on the side of new: copies by ") == 1
    assert "before and after 5 and 5 runs" in page and "matrix products " in page
    assert not surroundings(joined.both, base, make_side(FakeSide("new", points))).machine


def test_machines_that_are_alike_are_rarely_called_apart() -> None:
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(1000):
        sides = np.exp(rng.normal(0, 0.05, (2, 4, 3)))
        change = apart(*sides.tolist())
        assert change is not None
        wrong += change.clear
    assert wrong <= 10
    assert apart([[1.0], [2.0]], [[1.0], [2.0]]) is None
