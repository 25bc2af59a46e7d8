"""Where the time of the first epoch goes: planted losses, and when no cause is named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.step_account import first_epoch_account
from scalesweep.aspects.breakdown.figure import first_epoch_figures, ledger_figures
from scalesweep.aspects.breakdown.first_epoch_loss import RULES, first_epoch_loss
from scalesweep.aspects.find import find
from scalesweep.core.plan_format import Plan
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, OPEN, Finding
from tests.fakes.epoch_study import Study
from tests.fakes.finding_rows import spoken
from tests.fakes.plan import whole_plan

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


def study_of(
    root: Path, large: Callable[[int], dict[str, Any]], repeats: int = 4, base: float = BASE,
    **fixed: str,
) -> ExperimentResults:  # fmt: skip
    study = Study(root)
    study.experiment["fixed"] = fixed
    for repeat in range(repeats):
        study.run({"ranks": 1}, None, samples=320, arrays=times(1, repeat, base))
        study.run({"ranks": 1024 // 64}, None, samples=320 * 16, arrays=large(repeat))
    plan: Plan = whole_plan({"experiments": [study.experiment]})
    return ExperimentResults(plan["experiments"][0], study.tables())


def said(study: ExperimentResults) -> Finding:
    (finding,) = spoken(first_epoch_loss(study))
    return RULES[0].say(finding)


def test_the_account_of_the_first_epoch() -> None:
    samples = times(4, 1, slow=12.0, barrier=0.5, noise=0.0)
    account = first_epoch_account(samples, {}, 4)
    assert account is not None
    middle = sorted(samples["local_times"][0])[1]
    assert account.form == "first" and account.terms["input"] == pytest.approx(middle)
    assert account.terms["persistent"] == pytest.approx(samples["local_times"][0].max() - middle)
    assert account.terms["barrier"] == pytest.approx(0.5, rel=0.2)
    assert account.term("unattributed") == pytest.approx(0, abs=1e-9)
    alone = {name: array[:1] for name, array in samples.items()}
    assert first_epoch_account(alone, {}, 4) is None  # its usual account is of that epoch
    trains = {**samples, "span_input": samples["local_times"] / 2}
    assert first_epoch_account(trains, {}, 4) is None


def test_files_are_the_cause_where_later_epochs_exclude_the_node(tmp_path: Path) -> None:
    """The published reading: 50 % in the first epoch; ranks are slow by themselves."""
    study = study_of(tmp_path, lambda seed: times(16, seed, 2 * BASE, 1.5 * LATER))
    finding = said(study)
    assert finding.state == CLEAR and finding.evidence["term"] == "input"
    assert "the first epoch loses most to reading, 1" in finding.sentence
    assert finding.sentence.endswith("s: it is the files.")
    rows = {row["term"]: row for row in study.rows("first_epoch") if row["ranks"] == 16}
    assert rows["input"]["loss"] == pytest.approx(1e3 * BASE, rel=0.03)
    parts = sum(row["value"] for name, row in rows.items() if name not in ("elapsed", "ideal"))
    assert parts == pytest.approx(rows["elapsed"]["value"])
    # It does not change what is said of the later ones, and is in the report.
    assert {row["form"] for row in study.rows("efficiency")} == {"epochs"}
    assert "first epoch" in {each.rule for each in find(study)}
    (drawing,) = first_epoch_figures(study)
    assert drawing.figure.axes[0].get_xlabel() == "Time of the first epoch [s]"
    assert len(ledger_figures(study)) == 1


@pytest.mark.parametrize(
    ("change", "base", "term", "words"),
    [
        # One rank's files are slow: the others wait.
        ({"slow": 60.0}, BASE, "imbalance", "most to load imbalance, "),
        # Ranks read as fast as at the reference, and the end of the epoch takes long.
        ({"barrier": 60.0}, BASE, "barrier", "most to the barrier at its end, "),
        # As slow in later epochs: the pipeline or the node, or nothing stays in memory.
        ({"reading": 2 * BASE, "later": 20 * LATER}, BASE, "input", "later epochs read long too"),
        # The reference read from memory: the files are not slower at scale, they are read at all.
        ({"reading": 2 * BASE}, LATER, "input", "may have read from memory"),
    ],
)
def test_other_causes_are_told_apart_or_none_is_named(
    tmp_path: Path, change: dict[str, float], base: float, term: str, words: str
) -> None:
    finding = said(study_of(tmp_path, lambda seed: times(16, seed, **change), base=base))
    assert finding.state == CLEAR and finding.evidence["term"] == term
    assert words in finding.sentence and "it is the files" not in finding.sentence


@pytest.mark.parametrize("kept", [{"cache": "memory"}, {"pipeline": "cached"}])
def test_no_cause_is_named_where_later_epochs_do_not_decode_again(
    tmp_path: Path, kept: dict[str, str]
) -> None:
    """Ranks of a node that share its cores to decode look like slow files then."""
    finding = said(study_of(tmp_path, lambda seed: times(16, seed, 2 * BASE), **kept))
    assert finding.state == CLEAR and finding.evidence["term"] == "input"
    (name, value), *_ = kept.items()
    assert f"; with {name} {value} later epochs do not decode" in finding.sentence
    assert "it is the files" not in finding.sentence


def test_nothing_is_said_of_noise_and_nothing_is_clear_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    quiet = study_of(tmp_path / "a", lambda seed: times(16, seed + 9))
    assert not spoken(first_epoch_loss(quiet))
    single = said(study_of(tmp_path / "b", lambda seed: times(16, seed, 2 * BASE), repeats=1))
    assert (single.state, single.reason) == (OPEN, "the repeats leave it open")
