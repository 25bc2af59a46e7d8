"""Two sides joined point by point: what changed, what is on one side only, and what differs."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.compare.joined import join
from scalesweep.compare.page import compare_sides, make_tables, render_comparison, sentences
from scalesweep.compare.ratios import ONLY_BASE, ONLY_NEW
from scalesweep.compare.sides import Side
from scalesweep.core.record import MEASURED_COMMIT
from scalesweep.judge.change import CHANGED, IMPROVEMENT, INCONCLUSIVE, REGRESSION
from scalesweep.tables.provenance import PROGRAM, run_facts
from tests.fakes.sides import CPU, RATE, VERSIONS, FakePoint, FakeSide, make_side, rates

BASE = [100.0, 101.0, 99.0]


def two(base: FakeSide, new: FakeSide) -> tuple[Side, Side]:
    return make_side(base), make_side(new)


def sides(base: list[float], new: list[float], **more: Any) -> tuple[Side, Side]:
    points = [[FakePoint({"ranks": 4}, rates(values))] for values in (base, new)]
    return two(FakeSide("base", points[0]), FakeSide("new", points[1], **more))


def compared(base: Side, new: Side) -> pd.DataFrame:
    return compare_sides(base, new).rows


def page(base: Side, new: Side) -> str:
    return render_comparison(compare_sides(base, new))


@pytest.mark.parametrize(
    ("base", "new", "verdict", "reason"),
    [
        (BASE, [110.4, 111.3, 109.2], IMPROVEMENT, ""),
        (BASE, [90.4, 91.3, 89.2], REGRESSION, ""),
        (BASE, [100.4, 99.5, 101.2], INCONCLUSIVE, ""),
        (BASE, [150.0], INCONCLUSIVE, "one repeat on a side"),
        ([0.1, 0.1, 0.1], [0.2, 0.21], INCONCLUSIVE, "identical repeats on a side"),
        ([0.0, 1.0], [1.0, 2.0], INCONCLUSIVE, "a value is not positive: no ratio"),
    ],
)
def test_verdict_of_a_point(base: list[float], new: list[float], verdict: str, reason: str) -> None:
    (row,) = compared(*sides(base, new)).to_dict("records")
    assert (row["verdict"], row["reason"]) == (verdict, reason)
    if min(base) > 0:
        assert row["ratio"] == pytest.approx(np.mean(new) / np.mean(base))
        assert (row["low"] < row["ratio"] < row["high"]) == (reason == "")
    assert (row["base_repeats"], row["new_repeats"], row["main"]) == (len(base), len(new), True)


def test_runs_that_others_disturbed_are_left_out_and_counted() -> None:
    base, new = sides(BASE, [100.0, 101.0, 150.0])
    new.summary["_load"] = ["0.0", "0.05", "0.4"]
    (row,) = compared(base, new).to_dict("records")
    assert (row["base_repeats"], row["new_repeats"], row["new_mean"]) == (3, 2, 100.5)
    assert "Left out of new: 1 run that other processes disturbed." in page(base, new)


def test_a_loss_is_compared_only_if_the_benchmark_says_so() -> None:
    def verdict(name: str, **more: Any) -> str:
        meanings = {name: {"unit": "1", "better": "lower", "scope": "total"}}
        both = [
            FakeSide(role, [FakePoint({"ranks": 4}, {(RATE, "later"): BASE, (name, "run"): loss})],
                     meanings=meanings, **more)
            for role, loss in (("base", [0.5, 0.51, 0.52]), ("new", [9.0, 9.1, 9.2]))
        ]  # fmt: skip
        rows = compared(*two(*both)).set_index("metric")
        return str(rows.loc[name, "verdict"])

    assert verdict("final_loss") == INCONCLUSIVE
    assert verdict("final_loss", compare={"final_loss": "same_training"}) == REGRESSION
    assert verdict("step_time", compare={"step_time": "never"}) == INCONCLUSIVE


@pytest.mark.parametrize(("factor", "tag"), [(0.9, REGRESSION), (1.0, "open")])
def test_a_few_true_changes_are_said_first_and_no_false_ones(factor: float, tag: str) -> None:
    generator = np.random.default_rng(7)

    def points(factor: float) -> list[FakePoint]:
        logs = 0.01 * generator.standard_normal((100, 5))
        return [
            FakePoint({"ranks": n}, rates([*((factor if n < 10 else 1) * np.exp(logs[n]))]))
            for n in range(100)
        ]

    rows = compared(*two(FakeSide("base", points(1.0)), FakeSide("new", points(factor))))
    assert rows["verdict"].iloc[10:].isin(CHANGED).mean() < 0.1
    (said,) = sentences(rows)
    assert said["tag"] == tag and len(said["text"].split()) <= 25
    if tag == REGRESSION:
        assert "is worse at 10 of 100 points, by -10" in said["text"]


def test_points_are_joined_by_parameters_not_by_names_of_experiments() -> None:
    here = [FakePoint({"ranks": n, "rate": 1.0}, rates(BASE), "io") for n in (1, 2)]
    there = [FakePoint({"rate": 1, "ranks": n}, rates(BASE), "reading") for n in (2, 4)]
    base, new = two(
        FakeSide("base", here, planned=[("new-1-0", "TIMEOUT")]), FakeSide("new", there)
    )
    joined = join(base, new)
    assert [(v["ranks"], e) for v, e in joined.both[["values", "experiment"]].to_numpy()] == [
        (2, "io")
    ]
    assert [(v["ranks"], why) for v, why in joined.alone[["values", "why"]].to_numpy()] == [
        (1, "not planned there"), (4, "planned there: TIMEOUT"),
    ]  # fmt: skip
    verdicts = compared(base, new)["verdict"]
    assert sorted(verdicts) == sorted([INCONCLUSIVE, ONLY_BASE, ONLY_NEW])


def test_a_missing_parameter_counts_as_its_default() -> None:
    old, now = (
        FakePoint({"ranks": 1}, rates(BASE)),
        FakePoint({"ranks": 1, "depth": 3}, rates(BASE)),
    )
    joined = join(*two(FakeSide("base", [old]), FakeSide("new", [now], defaults={"depth": 3})))
    assert len(joined.both) == 1
    apart = join(*two(FakeSide("base", [old], plan=False), FakeSide("new", [now], plan=False)))
    assert apart.both.empty


def test_sources_and_versions_are_never_mixed() -> None:
    mine = [FakePoint({"ranks": 1}, rates(BASE), source=s) for s in ("measured", "imported")]
    joined = join(*two(FakeSide("base", mine), FakeSide("new", mine[:1])))
    assert joined.both["source"].tolist() == ["measured"]
    assert joined.alone["why"].tolist() == ["there from another source only"]
    across = join(*two(FakeSide("base", mine[1:]), FakeSide("new", mine[:1])))
    assert across.both["source"].tolist() == ["imported, new: measured"]
    newer = FakePoint({"ranks": 1}, rates(BASE), version=2)
    versions = join(*two(FakeSide("base", mine[:1]), FakeSide("new", [newer])))
    assert versions.alone["why"].tolist() == [
        "version 2 there, which measures something else",
        "version 1 there, which measures something else",
    ]


def test_metrics_of_another_meaning_are_not_compared() -> None:
    meanings = [{"m": {"unit": unit, "better": "lower", "scope": "total"}} for unit in ("s", "ms")]
    point = FakePoint({"ranks": 1}, {("m", "run"): BASE})
    roles = zip(("base", "new"), meanings, strict=True)
    rows = compared(*two(*(FakeSide(role, [point], meanings=of) for role, of in roles)))
    assert sorted(zip(rows["unit"], rows["verdict"], strict=True)) == [
        ("ms", ONLY_NEW), ("s", ONLY_BASE),
    ]  # fmt: skip


def test_what_differs_around_the_runs() -> None:
    base, new = sides(
        BASE, BASE, hardware={**CPU, "cpu_model": "CPU B"}, versions={**VERSIONS, "numpy": "2.1.0"},
        commit="1" * 40, host="node2", variables={"OMP_NUM_THREADS": "4"},
    )  # fmt: skip
    around = compare_sides(base, new)
    facts = {difference.fact: difference for difference in around.differences}
    assert {"CPU", "numpy", "hosts", "OMP_NUM_THREADS"} <= facts.keys()
    assert not facts["OMP_NUM_THREADS"].known and facts["CPU"].known
    assert around.subject is not None and around.subject.fact == "git commit"
    assert "hosts (node1 → node2), CPU (CPU A → CPU B)" in page(base, new)
    assert "same on both sides: CPU, CPUs, governor, memory, " in page(*sides(BASE, BASE))
    # Of imports only the commit may be known.
    bare: Any = {"hardware": {}, "versions": {}, "commit": "", "host": ""}
    points = [FakePoint({"ranks": 4}, rates(BASE))]
    base, new = two(*(FakeSide(name, points, **bare) for name in ("base", "new")))
    assert "Not known: neither side" in page(base, new)
    noted = {"notes": {MEASURED_COMMIT: {"commit": "a" * 40}}}
    assert run_facts(noted).environment == ((PROGRAM, "a" * 12),)


def test_the_page_escapes_and_the_tables_have_every_number() -> None:
    points = [FakePoint({"ranks": n, "verdict": "<b>"}, rates(BASE), "<script>") for n in (1, 2)]
    base, new = two(FakeSide("base", points), FakeSide("new", points[:1], campaign="<i>"))
    text = page(base, new)
    assert "<b>verdict" not in text and "&lt;script&gt;" in text and "&lt;i&gt;" in text
    tables = make_tables(compare_sides(base, new))
    assert tables["points"]["parameter_verdict"].tolist() == ["<b>", "<b>"]
    assert tables["points"]["verdict"].tolist() == [INCONCLUSIVE, ONLY_BASE]
    assert math.isnan(tables["points"]["new_mean"][1])
    assert tables["unmatched"]["why"].tolist() == ["not planned there"]
