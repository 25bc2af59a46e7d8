"""Where the time of a step goes: accounts of runs by hand, the table, and what is said of it."""

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.step_account import EPOCHS, STEPS, StepAccount, account_of
from scalesweep.aspects.steps.findings import largest_loss
from scalesweep.aspects.steps.ledgers import ledgers
from scalesweep.core.paths import REPO
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import as_text
from tests.fakes.finding_rows import said
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
    names = ("input", "compute", "persistent", "alternating", "transfer", "unattributed")
    found = {"elapsed": account.elapsed, **{name: account.term(name) or 0.0 for name in names}}
    found = {name: round(1e3 * seconds, 6) for name, seconds in found.items()}
    # Own work 86, 102 and 110, 98: C = 196, 200 ms; S = 102 + 110 ms; lower medians 4 (of 4 and
    # 8), 89 (of 90 and 89) and 3 (of 4 and 3, inside the steps).
    assert found == {
        "elapsed": 115, "input": 4, "compute": 89, "persistent": 4, "alternating": 6,
        "transfer": 9, "unattributed": 3,
    }  # fmt: skip
    page = (REPO / "docs" / "reference" / "step_causes.md").read_text()
    for name, value in found.items():
        assert f"| {name} | {value:g} |" in page
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


# --- the table ---


def account(ranks: int, **ms: float) -> StepAccount:
    """An account of terms in ms; what is not named is 0."""
    terms = ("input", "compute", "persistent", "alternating", "transfer", "barrier")
    named = {name: ms.get(name, 0.0) / 1e3 for name in terms}
    elapsed = sum(named.values()) + ms.get("unattributed", 0.0) / 1e3
    return StepAccount(STEPS, 10, ranks, elapsed, named, per_epoch=10)


def study_of(
    points: Sequence[tuple[dict[str, Any], Sequence[StepAccount], int]],
    scaling: str = "weak",
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
    (finding,) = said(largest_loss(study))
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
