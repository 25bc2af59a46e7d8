"""Where the time of steps and of the first epoch goes: accounts by hand, tables, what is said."""

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.profile_account import profile_account, trace_breakdown
from scalesweep.analysis.step_account import (
    EPOCHS,
    PROFILE,
    STEPS,
    StepAccount,
    account_of,
    first_epoch_account,
)
from scalesweep.analysis.step_delays import delays_of, gain, lower_median
from scalesweep.analysis.step_work import step_work
from scalesweep.aspects.steps.breakdown import FirstEpochRow
from scalesweep.aspects.steps.figure import first_epoch_figures, ledger_figures, waterfall_figures
from scalesweep.aspects.steps.findings import largest_loss
from scalesweep.aspects.steps.ledgers import ledgers
from scalesweep.core.paths import REPO
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.profile_runs import runs_of
from scalesweep.tables.bookkeeping import as_text
from tests.fakes.epoch_study import Study
from tests.fakes.finding_rows import only, said
from tests.fakes.profiles import FOLDER
from tests.fakes.rows import study_of as made_of

# Two ranks, two steps: docs/reference/step_causes.md works with the same numbers.
STEP_TIMES = np.array([[0.110, 0.110], [0.120, 0.120]])
INPUT = np.array([[0.004, 0.010], [0.004, 0.006]])
COMPUTE = np.array([[0.080, 0.090], [0.100, 0.088]])
COMMUNICATION = np.array([[0.024, 0.008], [0.010, 0.022]])


def stepwise(**changes: Any) -> dict[str, Any]:
    return {
        "step_times": STEP_TIMES, "span_input": INPUT, "span_compute": COMPUTE,
        "span_communication": COMMUNICATION, **changes,
    }  # fmt: skip


def test_the_worked_example() -> None:
    account = account_of(stepwise(), {}, 2)
    # Own work 86, 102 and 110, 98: C = 196, 200 ms; S = 102 + 110 ms; lower medians 4 (of 4 and
    # 8), 89 (of 90 and 89) and 3 (of 4 and 3, inside the steps).
    expected = {
        "input": 4, "compute": 89, "persistent": 4, "alternating": 6, "transfer": 9,
        "unattributed": 3,
    }  # fmt: skip
    page = (REPO / "docs" / "reference" / "step_causes.md").read_text()
    assert account.elapsed == pytest.approx(0.115) and "| elapsed | 115 |" in page
    for name, ms in expected.items():
        assert account.term(name) == pytest.approx(ms / 1e3) and f"| {name} | {ms} |" in page
    assert account.term("barrier") is None
    assert StepAccount(**json.loads(str(as_text(account)))) == account


def test_sums_over_the_steps_of_epochs_say_the_same() -> None:
    """The first epoch warms up; the second has the steps of the example, and a barrier."""
    busy = INPUT + COMPUTE
    later = {
        "local_times": STEP_TIMES.sum(axis=0), "global_times": STEP_TIMES.sum(axis=0) + 0.002,
        "span_input": INPUT.sum(axis=0), "span_compute": COMPUTE.sum(axis=0),
        "span_communication": COMMUNICATION.sum(axis=0),
        "span_busiest": busy.max(axis=1).sum(),
        "span_transfer": COMMUNICATION.min(axis=1).sum(),
    }  # fmt: skip
    samples = {name: np.stack([np.asarray(v) * 3, np.asarray(v)]) for name, v in later.items()}
    found = account_of(samples, {"spans": {"steps_per_epoch": 2}}, 2)
    alone = account_of(stepwise(), {}, 2)
    assert found.terms["barrier"] == pytest.approx(0.001)
    assert found.elapsed == pytest.approx(alone.elapsed + 0.001)
    for name in ("input", "compute", "transfer"):
        assert found.terms[name] == pytest.approx(alone.terms[name])
    # Sums of epochs do not say what ranks do inside their steps, in none of the spans.
    assert found.terms["persistent"] == pytest.approx(0.194 / 2 - 0.004 - 0.089)
    assert found.terms["alternating"] == pytest.approx((0.204 - 0.194) / 2)
    # Without the number of steps nothing is told of one.
    assert account_of(samples, {}, 2) is None


def test_epochs_alone_give_the_coarse_form() -> None:
    local = np.array([[9.0, 9.0, 9.0], [2.0, 2.2, 2.1], [2.0, 2.6, 2.9]])
    samples = {"local_times": local, "global_times": np.full((3, 3), 10.0)}
    account = account_of(samples, {}, 3)
    assert (account.form, account.steps) == (EPOCHS, 2)
    # The ranks' means are 2, 2.4 and 2.5.
    assert account.terms == pytest.approx(
        {"busy": 2.4, "persistent": 0.1, "alternating": 2.55 - 2.5, "barrier": 10 - 2.55}
    )
    assert account.term("unattributed") == pytest.approx(0)
    # All of an epoch is input where the program says so.
    reading = account_of({**samples, "span_input": local}, {}, 3)
    assert (reading.term("input"), reading.term("busy")) == (pytest.approx(2.4), None)


def account(ranks: int, **ms: float) -> StepAccount:
    """An account of terms in ms; what is not named is 0."""
    terms = ("input", "compute", "persistent", "alternating", "transfer", "barrier")
    named = {name: ms.get(name, 0.0) / 1e3 for name in terms}
    elapsed = sum(named.values()) + ms.get("unattributed", 0.0) / 1e3
    return StepAccount(STEPS, 10, ranks, elapsed, named, per_epoch=10)


def study_of(
    points: Sequence[tuple[dict[str, Any], Sequence[StepAccount], int]], scaling: str = "weak"
) -> ExperimentResults:
    """An experiment of points, each with the accounts of its runs and its samples in all."""
    rows = [
        (point, [{"samples": samples, "_account": as_text(one)} for one in accounts])
        for point, accounts, samples in points
    ]
    work = ["batch"] if scaling == "strong" else []
    return made_of(rows, scaling=scaling, work=work)


def noisy(ranks: int, repeats: int = 5, seed: int = 1, **ms: float) -> list[StepAccount]:
    """Repeats of an account, each term of which scatters by 2 % of itself."""
    draw = np.random.default_rng((seed, ranks))
    return [
        account(ranks, **{name: v * (1 + 0.02 * draw.standard_normal()) for name, v in ms.items()})
        for _ in range(repeats)
    ]


def terms_of(study: ExperimentResults, ranks: int) -> dict[str, float]:
    rows = study.rows("efficiency")
    return {row["term"]: row["value"] for row in rows if row["ranks"] == ranks}


def test_the_ledger_adds_up_and_computation_is_split_at_the_reference() -> None:
    base = noisy(1, compute=100, input=2, unattributed=1)
    large = noisy(4, compute=110, input=5, persistent=8, alternating=4, transfer=20, barrier=1)
    study = study_of([({"ranks": 1}, base, 320), ({"ranks": 4}, large, 4 * 320)])
    ledger = terms_of(study, 4)
    elapsed, ideal = ledger.pop("elapsed"), ledger.pop("ideal")
    assert sum(ledger.values()) == pytest.approx(elapsed)
    assert ideal == pytest.approx(103, rel=0.02)
    assert ledger["at_reference"] + ledger["slower"] == pytest.approx(110, rel=0.02)
    assert ledger["slower"] == pytest.approx(10, abs=4)


def test_strong_scaling_has_its_ideal_at_less_work_and_names_the_small_batch() -> None:
    """4 ranks with a quarter of the samples each; one rank with as few is measured too."""
    points = [
        ({"ranks": 1, "batch": 320}, noisy(1, compute=100), 320),
        ({"ranks": 4, "batch": 80}, noisy(4, compute=45, transfer=5), 320),
        ({"ranks": 1, "batch": 80}, noisy(1, compute=40), 80),
    ]
    ledger = terms_of(study_of(points, scaling="strong"), 4)
    assert ledger["ideal"] == pytest.approx(25, rel=0.03)
    assert ledger["at_reference"] == pytest.approx(25, rel=0.03)
    assert ledger["local_batch"] == pytest.approx(15, abs=3)
    assert ledger["slower"] == pytest.approx(5, abs=3)


def test_it_abstains_where_more_is_unattributed() -> None:
    base, large = noisy(1, compute=100), noisy(4, compute=100, transfer=10, unattributed=30)
    study = study_of([({"ranks": 1}, base, 10), ({"ranks": 4}, large, 40)])
    finding = only(largest_loss(study))
    assert finding.state == "note"
    assert "unattributed takes" in finding.sentence and finding.reason


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize(("more", "scatter"), [(1.5, 0.02), (1.1, 0.1)])
def test_the_interval_of_a_loss_is_that_of_the_efficiency(
    in_blocks: bool, more: float, scatter: float
) -> None:
    """Weak scaling, 32 samples of a rank in each of ten steps; a block's points share a state."""
    draw = np.random.default_rng(28)
    state = np.exp(0.3 * draw.standard_normal(3)) if in_blocks else np.ones(3)
    points = []
    for ranks, ms in ((1, 100.0), (2, 100 * more), (4, 100 * more**2)):
        steps = ms * np.exp(scatter * draw.standard_normal(3)) * state
        runs = [
            {"samples": 320 * ranks, "rate_mean_run": 32e3 * ranks / step,
             "_account": as_text(account(ranks, compute=80.0, transfer=step - 80))}
            for step in steps.tolist()
        ]  # fmt: skip
        points.append(({"ranks": ranks}, runs))
    metrics = {"rate": ("samples/s", "higher")}
    study = made_of(points, metrics, in_blocks, scaling="weak", main_metric="rate")
    table = {row["ranks"]: row for row in study.rows("scaling")}
    for one in ledgers(study)[1:]:
        row = table[one.row["ranks"]]
        ends = [one.ideal.ms * (1 / row[f"rate_eff{end}_run"] - 1) for end in ("", "_high", "_low")]
        assert astuple(one.elapsed.loss) == pytest.approx(ends, rel=1e-9)


def test_a_replay_by_hand() -> None:
    """Two ranks, 12 steps of 72 ms: rank 1 computes 66 of them, rank 0 62 and waits for 4."""
    shape = (12, 2)
    compute = np.tile([62.0, 66.0], (12, 1)) / 1e3
    arrays = {
        "step_times": np.full(shape, 0.072), "span_input": np.full(shape, 0.001),
        "span_compute": compute, "span_communication": 0.071 - compute,
        "span_between": np.zeros(shape),
    }  # fmt: skip
    work = step_work(arrays, {}, 2)
    np.testing.assert_allclose(work.periods, 0.072)
    (delay,) = delays_of(work)
    assert (delay.cause, delay.pattern, delay.ranks) == ("compute", "every step", [1])
    assert delay.seconds == pytest.approx(0.004)
    assert gain(work, [delay]) == pytest.approx(0.004)
    assert list(lower_median(np.array([[1.0, 3.0], [2.0, 1.0], [5.0, 4.0]]))) == [2.0, 3.0]


# --- profiles of other tools ---


def test_the_ledger_of_a_profile_adds_up() -> None:
    """Of 2, 4 and 8 processes, as BSC's modelfactors.py prints them."""
    file = FOLDER / "modelfactors.csv"
    made = runs_of(read_source(file).profiles, file.parent)
    every = {run.point["ranks"]: run.metrics for run in made.runs}
    points: Any = [({"ranks": n}, [profile_account(every[n], n)], 0) for n in sorted(every)]
    one = study_of(points, scaling="strong")
    assert {row["form"] for row in one.rows("efficiency")} == {PROFILE}
    # The ledger adds up to the run, whose ideal is that of two processes over 4.
    ledger = terms_of(one, 8)
    assert (elapsed := ledger.pop("elapsed")) == pytest.approx(300)
    assert ledger.pop("ideal") == pytest.approx(1000 / 4)
    assert sum(ledger.values()) == pytest.approx(elapsed)
    assert ledger["unattributed"] == pytest.approx(0, abs=1e-6)
    names = [drawing.name for drawing in (*ledger_figures(one), *waterfall_figures(one))]
    assert names == ["ledger", "waterfall"]
    assert "the largest loss is" in only(largest_loss(one)).sentence


def of_traces(**values: float) -> StepAccount | None:
    known = {"runtime": 1.0, "computation": 0.6, "exposed_communication": 0.2, "steps": 10.0}
    return trace_breakdown({name: {"value": n} for name, n in {**known, **values}.items()}, 2)


@pytest.mark.parametrize(
    ("values", "persistent", "communication"),
    [
        # Ranks compute 50 and 70 ms: those of 50 wait 20 of their 30 ms of exchange.
        ({"load_balance": 60 / 70}, 0.01, 0.01),
        # An imbalance that no rank waits for is none, and without all ranks none is known.
        ({"load_balance": 0.5, "exposed_communication": 0.05}, 0.005, 0.0),
        ({}, 0.0, 0.02),
    ],
)
def test_a_step_of_imported_traces(
    values: dict[str, float], persistent: float, communication: float
) -> None:
    account = of_traces(**values)
    assert account is not None and account.terms["compute"] == pytest.approx(0.06)
    assert account.terms["persistent"] == pytest.approx(persistent)
    assert account.terms["communication"] == pytest.approx(communication)
    assert of_traces(**values, steps=0.0) is None and of_traces(**values, runtime=-1.0) is None


# --- the first epoch ---

BASE, LATER = 150.0, 6.5  # s, as in the published study of CosmoFlow's data loading


def times(
    ranks: int, seed: int, reading: float = BASE, later: float = LATER, slow: float = 0.0,
    barrier: float = 0.05, noise: float = 0.01,
) -> dict[str, Any]:  # fmt: skip
    """Three epochs: what each rank reads, one that is slower in the first, the barrier after it."""
    draw = np.random.default_rng((seed, ranks))
    local = np.array([[reading], [later], [later]]) * (
        1 + noise * draw.standard_normal() + 0.001 * draw.standard_normal((3, ranks))
    )
    slow, barrier = (each * (1 + 0.05 * draw.standard_normal()) for each in (slow, barrier))
    local[0, -1] += slow
    ends = np.repeat(local.max(axis=1)[:, None], ranks, axis=1)
    ends[0] += barrier
    return {"local_times": local, "global_times": ends, "span_input": local}


def first_epochs_of(root: Path, large: Callable[[int], dict[str, Any]]) -> ExperimentResults:
    study = Study(root)
    for repeat in range(4):
        study.run({"ranks": 1}, None, samples=320, arrays=times(1, repeat))
        study.run({"ranks": 1024 // 64}, None, samples=320 * 16, arrays=large(repeat))
    return study.results()


def test_the_account_of_the_first_epoch() -> None:
    samples = times(4, 1, slow=12.0, barrier=0.5, noise=0.0)
    account = first_epoch_account(samples, account_of(samples, {}, 4), 4)
    middle = sorted(samples["local_times"][0])[1]
    assert account.form == "first" and account.terms["input"] == pytest.approx(middle)
    assert account.terms["persistent"] == pytest.approx(samples["local_times"][0].max() - middle)
    assert account.terms["barrier"] == pytest.approx(0.5, rel=0.2)
    assert account.term("unattributed") == pytest.approx(0, abs=1e-9)
    alone = {name: array[:1] for name, array in samples.items()}
    assert first_epoch_account(alone, account_of(alone, {}, 4), 4) is None  # it is of that epoch
    trains = {**samples, "span_input": samples["local_times"] / 2}
    assert first_epoch_account(trains, account_of(trains, {}, 4), 4) is None


def test_its_largest_loss_is_told_beside_that_of_later_epochs(tmp_path: Path) -> None:
    """The published reading: 50 % in the first epoch; ranks are slow by themselves."""
    study = first_epochs_of(tmp_path, lambda seed: times(16, seed, 2 * BASE, 1.5 * LATER))
    every = said(largest_loss(study))
    (finding,) = [each for each in every if each.evidence["table"] == FirstEpochRow.TABLE]
    assert finding.state == CLEAR and finding.evidence["term"] == "input"
    assert "the largest loss is input, 1" in finding.sentence
    assert finding.sentence.endswith("s: without it the first epoch reaches 100 % of the ideal.")
    rows = {row["term"]: row for row in study.rows("first_epoch") if row["ranks"] == 16}
    assert rows["input"]["loss"] == pytest.approx(1e3 * BASE, rel=0.03)
    parts = sum(row["value"] for name, row in rows.items() if name not in ("elapsed", "ideal"))
    assert parts == pytest.approx(rows["elapsed"]["value"])
    assert {row["form"] for row in study.rows("efficiency")} == {"epochs"}
    (drawing,) = first_epoch_figures(study)
    assert drawing.panels[0].x.label.startswith("Time of the first epoch [s]")
