"""What is said and kept of the pairs of several points."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from scalesweep.ab.commits import Repository
from scalesweep.ab.outcome import changes_of
from scalesweep.ab.run import report
from scalesweep.config.campaign import Campaign
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.history.evidence import load_evidence
from scalesweep.judge.change import INCONCLUSIVE, NO_CHANGE, REGRESSION

HEAD = {
    "site": "here", "source": "measured", "benchmark": "b", "version": 1, "device": "cpu",
    "identity": "{}", "scaling": "weak", "label": "ranks 2",
}  # fmt: skip
ROW = {"kind": "metric", "metric": "step_time", "phase": "run", "unit": "s", "better": "lower"}
REPOSITORY = SimpleNamespace(
    top="/src/program", time=lambda commit: "2026-01-01T00:00:00Z", subject=lambda commit: "Change"
)


def measured(label: str, ratio: float, noise: float, pairs: int = 4, failure: Any = None) -> Any:
    rng = np.random.default_rng(3)
    base = np.exp(rng.normal(0, noise, pairs))
    new = ratio * np.exp(rng.normal(0, noise, pairs))
    return SimpleNamespace(
        target=SimpleNamespace(label=label), base=list(base), new=list(new), failure=failure,
        head=HEAD if pairs else {}, row=ROW if pairs else {}, started=["2026-02-01T00:00:00+00:00"],
    )  # fmt: skip


def campaign(folder: Path | None = None, **settings: Any) -> Campaign:
    history = HistorySettings(folder, **settings) if folder else None
    return cast(Campaign, SimpleNamespace(name="c", history=history))


def test_many_points_pay_for_their_number(tmp_path: Path) -> None:
    one = measured("a", 1.1, 0.012)
    assert [v.verdict for v in changes_of(campaign(), [one])] == [REGRESSION]
    others = [measured(f"p{n}", 1.0, 0.012) for n in range(30)]
    first, *_ = changes_of(campaign(), [one, *others])
    assert first.verdict == INCONCLUSIVE and "one of 31 comparisons" in first.reason
    wide = campaign(tmp_path, margins={"step_time": 0.2})
    assert [v.verdict for v in changes_of(wide, [measured("a", 1.01, 0.001)])] == [NO_CHANGE]


def test_a_line_for_each_point_a_table_and_the_history(tmp_path: Path) -> None:
    said: list[str] = []
    history, folder = tmp_path / "history", tmp_path / "pairs"
    points = [measured("e: ranks 2", 1.5, 0.001), measured("e: ranks 4", 1.02, 0.05)]
    words = (campaign(history), cast(Repository, REPOSITORY))
    report(*words, points, folder, ("a" * 40, "b" * 40), said.append)
    assert said[0].startswith("regression: e: ranks 2: step_time +49.9 [")
    assert said[1].startswith("inconclusive: e: ranks 4: step_time -1 [-18, 19] % in 4 pairs. ")
    assert said[1].endswith("More pairs would hardly settle it.")
    table = pd.read_csv(folder / "verdicts.csv")
    assert table["verdict"].tolist() == [REGRESSION, INCONCLUSIVE]
    assert table["pairs"].tolist() == [4, 4]
    kept, _ = load_evidence(history)
    assert (kept.base, kept.new, kept.first_bad) == ("a" * 40, "b" * 40, False)
    # A commit against itself shows the noise, which is no news of a range of commits.
    report(*words, points, folder, ("a" * 40, "a" * 40), said.append)
    assert len(load_evidence(history)) == 2


def test_a_point_that_fails_is_named_and_fails_the_call(tmp_path: Path) -> None:
    said: list[str] = []
    broken = measured("e: ranks 4", 1.0, 0.0, 0, ("new", "NON_ZERO_EXIT: exit code 3"))
    words = (campaign(), cast(Repository, REPOSITORY))
    with pytest.raises(UserError, match="1 point failed"):
        both = [measured("e: ranks 2", 1.5, 0.001), broken]
        report(*words, both, tmp_path, ("a" * 40, "b" * 40), said.append)
    assert said[1] == "failed: e: ranks 4: new: NON_ZERO_EXIT: exit code 3"
    with pytest.raises(UserError, match="no pair of runs has been finished"):
        report(*words, [broken], tmp_path, ("a" * 40, "b" * 40), said.append)
