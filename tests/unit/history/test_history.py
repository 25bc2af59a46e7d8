"""From sessions to verdicts and the page: order, what changed along, baselines, hostile text."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import yaml

from scalesweep.analysis.verdicts import (
    CONFOUNDED,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    TOO_EARLY,
)
from scalesweep.config.history_settings import HistorySettings
from scalesweep.core.errors import UserError
from scalesweep.history.judged import History, Judged, read_history
from scalesweep.history.run import regressions, write_history
from scalesweep.history.store import append
from scalesweep.history.words import line_of
from tests.conftest import ROOT
from tests.fakes.history import FACTS, FakeSession, commit_of, make_history, make_session
from tests.fakes.pages import bare

HOSTILE = '"><script>alert(1)</script>${7*7}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("history")
    make_history(place)
    return place


@pytest.fixture(scope="module")
def history(folder: Path) -> History:
    return write_history(HistorySettings(folder))


def of(history: History, label: str, site: str = "here") -> Judged:
    (found,) = [one for one in history.series if (one.label, one.site) == (label, site)]
    return found


def judged_of(folder: Path, *fakes: FakeSession, baseline: str = "") -> Judged:
    append(folder, map(make_session, fakes))
    (found,) = read_history(folder, HistorySettings(folder, baseline=baseline)).series
    return found


def stepped(change: dict[str, object], before: int = 8, after: int = 3) -> list[FakeSession]:
    """Sessions of a point that is a tenth slower after a step, at which ``change`` happens too."""
    rng = np.random.default_rng(0)
    found = []
    for day in range(before + after):
        level = 1.0 if day < before else 1.1
        fake = FakeSession(day, {"p": list(level * np.exp(rng.normal(0, 0.005, 3)))})
        found.append(replace(fake, **change) if day >= before else fake)  # type: ignore[arg-type]
    return found


def test_every_kind_of_verdict(history: History) -> None:
    kinds = {one.label: one.verdict.kind for one in history.series if one.site == "here"}
    assert kinds == {
        "ranks 1": NO_CHANGE,
        "ranks 2": REGRESSION,
        "ranks 4": NO_CHANGE,
        "ranks 8": CONFOUNDED,
        "ranks 16": INCONCLUSIVE,
    }
    assert of(history, "ranks 1", "new").verdict.kind == TOO_EARLY
    assert "5 more sessions needed" in line_of(of(history, "ranks 1", "new"))
    worse = of(history, "ranks 2")
    assert regressions(history) == [worse]
    assert line_of(worse).startswith("regression: b on here, CPU, weak scaling, ranks 2: step_time")
    assert f"since {commit_of(9)[:10]}..{commit_of(10)[:10]} (Change 10)" in line_of(worse)
    assert worse.ledger["compute"] == pytest.approx((900, 990))
    assert worse.ledger["transfer"] == (50, 50)
    other = of(history, "ranks 8")
    assert "horovod (0.28.1 → 0.28.2) changed at the same time" in line_of(other)
    shown = of(history, "ranks 4").shown
    assert shown is not None and shown.spikes[5] and len(shown.levels) == 1


def test_weak_and_strong_cpu_and_gpu_are_apart(folder: Path, history: History) -> None:
    assert of(history, "ranks 1", "gpus").device == "gpu"
    page = bare((folder / "history.html").read_text())
    for name in ("b on here, CPU, weak scaling", "b on gpus, GPU, strong scaling"):
        assert f"<h2>{name}</h2>" in page
    assert page.index("<h2>Verdicts</h2>") < page.index("regression</span>")
    assert page.index("regression</span>") < page.index("confounded</span>")
    table = pd.read_csv(folder / "tables" / "verdicts.csv")
    assert len(table) == len(history.series) and table["verdict"][0] == REGRESSION


@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        ({}, REGRESSION, ""),
        ({"facts": {**FACTS, "tensorflow": "2.19"}}, CONFOUNDED, "tensorflow (2.18.1 → 2.19)"),
        ({"facts": {**FACTS, "new fact": "x"}}, REGRESSION, ""),  # not recorded before
        ({"hosts": "node2"}, CONFOUNDED, "hosts (node1 → node2)"),
        ({"commit": commit_of(7)}, CONFOUNDED, "the program is the same on both sides"),
        ({"commit": ""}, REGRESSION, ""),  # not known of which
    ],
)
def test_what_changed_along(
    tmp_path: Path, change: dict[str, object], kind: str, told: str
) -> None:
    found = judged_of(tmp_path, *stepped(change))
    assert found.verdict.kind == kind
    assert told in found.verdict.reason


@pytest.mark.parametrize(
    ("factor", "kind"),
    [(1.0, REGRESSION), (0.98, REGRESSION), (1.1, REGRESSION), (0.92, CONFOUNDED)],
)
def test_a_machine_that_is_slower_itself_confounds(
    tmp_path: Path, factor: float, kind: str
) -> None:
    """A canary that lost as much, not one that lost little or became faster."""
    rng = np.random.default_rng(2)
    fakes = [
        replace(fake, canary=5e9 * (factor if fake.day >= 8 else 1) * rng.uniform(0.99, 1.01))
        for fake in stepped({})
    ]
    found = judged_of(tmp_path, *fakes)
    assert found.verdict.kind == kind
    assert ("the machine's own speed (canary, compute)" in line_of(found)) == (kind == CONFOUNDED)


def test_hosts_that_always_change_confound_nothing(tmp_path: Path) -> None:
    fakes = [replace(fake, hosts=f"node{fake.day}") for fake in stepped({})]
    assert judged_of(tmp_path, *fakes).verdict.kind == REGRESSION


def test_sessions_are_in_the_order_of_their_commits(tmp_path: Path) -> None:
    """What is measured later of an old commit belongs to that commit."""
    fakes = stepped({})
    late = make_session(fakes[2])
    append(tmp_path, [make_session(fake) for fake in fakes[:2] + fakes[3:]])
    rows = {
        (site, run_id, "2026-03-01T00:00:00+00:00"): [
            {**row, "started": row["started"].replace(month=3, day=1)} for row in some
        ]
        for (site, run_id, _), some in late.rows.items()
    }
    append(tmp_path, [replace(late, first="20260301T000000Z", rows=rows)])
    (found,) = read_history(tmp_path).series
    assert [one.commit for one in found.sessions] == [commit_of(fake.day) for fake in fakes]


def test_a_commit_or_a_tag_is_the_baseline(folder: Path, tmp_path: Path) -> None:
    fakes = stepped({})
    fakes[1] = replace(fakes[1], tags="v1.0 stable")
    for name in ("v1.0", commit_of(1)[:10]):
        found = judged_of(tmp_path, *fakes, baseline=name)
        assert found.verdict.kind == REGRESSION and found.verdict.base == (1,)
    assert judged_of(tmp_path, *fakes, baseline=commit_of(8)[:10]).verdict.kind == NO_CHANGE
    with pytest.raises(UserError, match=r"baseline 'v2': no session of this commit or tag"):
        judged_of(tmp_path, *fakes, baseline="v2")


def test_margins_are_by_metric(tmp_path: Path) -> None:
    append(tmp_path, map(make_session, stepped({})))
    settings = HistorySettings(tmp_path, margins={"step_time": 0.2})
    (found,) = read_history(tmp_path, settings).series
    assert found.verdict.kind == NO_CHANGE and found.margin == 0.2


def test_text_from_sessions_is_escaped_and_damage_is_named(tmp_path: Path) -> None:
    fakes = stepped({"facts": {**FACTS, HOSTILE: HOSTILE, "horovod": HOSTILE}})
    sessions = [make_session(replace(fake, tags=HOSTILE, hosts=HOSTILE)) for fake in fakes]
    first, *_ = append(tmp_path, sessions)
    for rows in (rows for one in sessions for rows in one.rows.values()):
        for row in rows:
            cast(dict[str, Any], row).update(
                dict.fromkeys(("label", "subject", "results", "benchmark"), HOSTILE)
            )
    hostile = tmp_path / "hostile"
    *_, last = append(hostile, sessions)
    last.write_bytes(b"PAR1")
    write_history(HistorySettings(hostile))
    page = bare((hostile / "history.html").read_text())
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    assert "1 file of the history damaged" in page and last.name in page
    assert first.exists()


def test_values_that_have_no_logarithm_are_no_verdict(tmp_path: Path) -> None:
    found = judged_of(tmp_path, *(FakeSession(day, {"p": [0.0, 1.0]}) for day in range(8)))
    assert found.verdict.kind == TOO_EARLY and "not positive" in found.verdict.reason


def test_the_gitlab_recipe_does_what_the_github_one_does() -> None:
    """The latter is carried out by tests/workflow/test_history.py."""
    page = (ROOT / "docs" / "guide" / "history.md").read_text().partition("## A CI job")[2]
    github, gitlab = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    steps = [step["run"] for step in github["performance"]["steps"] if "run" in step]
    lines = [*dict.fromkeys(line for step in steps for line in step.splitlines())]
    for name, campaign in (("performance", "performance.yaml"), ("nightly", "nightly.yaml")):
        job = {**gitlab[gitlab[name]["extends"]], **gitlab[name]}
        assert job["variables"] == {"CAMPAIGN": campaign} and job["rules"][0]["if"]
        script = [line.replace("$CI_JOB_ID", "$GITHUB_RUN_ID") for line in job["script"]]
        assert [line.replace("$CAMPAIGN", "performance.yaml") for line in script] == lines
    assert gitlab[".measure"]["variables"] == {"GIT_DEPTH": "0"}  # all tags, as fetch-depth 0
    assert gitlab["pages"]["artifacts"] == {"paths": ["public"]}
    assert gitlab["pages"]["rules"][0]["when"] == "always"
