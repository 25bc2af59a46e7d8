"""What is said and kept of the pairs of several points."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from scalesweep.ab.outcome import Measured, report
from scalesweep.ab.pairs import Pairs, Target
from scalesweep.config.campaign_keys import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.history.store import load_alternate
from scalesweep.judge.change import INCONCLUSIVE, REGRESSION

HEAD = {
    "site": "here", "source": "measured", "benchmark": "b", "version": 1, "device": "cpu",
    "identity": "{}", "kind": "metric", "metric": "step_time", "phase": "run", "better": "lower",
    "started": "2026-02-01 00:00:00+00:00",
}  # fmt: skip


def measured(
    label: str, ratio: float, noise: float, pairs: int = 4, failure: Any = None
) -> Measured:
    logs = np.log(ratio) + np.random.default_rng(3).normal(0, noise, pairs)
    target = cast(Target, SimpleNamespace(label=label))
    return Measured(target, logs, HEAD if pairs else {}, failure)


def pairs_in(folder: Path, new: str = "b", history: Path | None = None) -> Pairs:
    settings = HistorySettings(folder=history) if history else None
    return cast(Pairs, SimpleNamespace(
        folder=folder, base="a" * 40, new=new * 40, campaign=SimpleNamespace(history=settings),
        repository=SimpleNamespace(subject=lambda commit: "Change"),
    ))  # fmt: skip


def test_lines_a_table_and_the_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history, folder = tmp_path / "history", tmp_path / "pairs"
    points = [measured("e: ranks 2", 1.5, 0.001), measured("e: ranks 4", 1.02, 0.05)]
    report(points, pairs_in(folder, history=history))
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("regression: e: ranks 2: step_time +50.0 [")
    assert said[1].startswith("inconclusive: e: ranks 4: step_time ") and "in 4 pairs." in said[1]
    table = pd.read_csv(folder / "verdicts.csv")
    assert table["verdict"].tolist() == [REGRESSION, INCONCLUSIVE]
    assert table["pairs"].tolist() == [4, 4]
    kept = load_alternate(history)
    assert (*kept.iloc[0][["base", "new", "first_bad"]],) == ("a" * 40, "b" * 40, False)
    # A commit against itself shows the noise, which is no news of a range of commits.
    with pytest.raises(UserError, match=r"^1 regression$"):
        report(points, pairs_in(folder, "a", history), fail_on=REGRESSION)
    assert len(load_alternate(history)) == 2


def test_a_failed_point_fails_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = measured("e: ranks 4", 1.0, 0.0, 0, ("new", "NON_ZERO_EXIT: exit code 3"))
    pairs = pairs_in(tmp_path)
    with pytest.raises(UserError, match="1 point failed"):
        report([measured("e: ranks 2", 1.5, 0.001), broken], pairs)
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "failed: e: ranks 4: new: NON_ZERO_EXIT: exit code 3"
    with pytest.raises(UserError, match="no pair of runs has been finished"):
        report([broken], pairs)
