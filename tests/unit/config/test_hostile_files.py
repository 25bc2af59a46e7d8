"""Campaign, site and benchmark files with anything in them: they load, or a line says why not.

A valid file is taken and some of its values are replaced, dropped, doubled or wrapped by hostile
ones. Nothing but UserError may come out, and nothing may be written.
"""

import copy
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scalesweep.config.benchmark
import scalesweep.config.site
from scalesweep.config.campaign import load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.status import Status
from scalesweep.jobs.run_spec import run_spec
from scalesweep.planning.plan import build_plan, plan_csv
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.run_state import RunState
from tests.conftest import ROOT
from tests.fakes.hostile import LEAVES, TEXTS, places

TOY = ROOT / "tests" / "toy"
CAMPAIGN = """
campaign: c
description: d
site: toy
results: results
budget: {node_hours: 10}
programs: {p: /bin/true}
experiments:
  e:
    benchmark: toy
    description: d
    scaling: weak
    axes: {ranks: {from: 1, to: 4, factor: 2}, rate: [0.5, 1.5], threads: [null, 2]}
    linked: [{behaviour: good, size: 1}, {behaviour: slow, size: 2}]
    fixed: {ranks_per_node: 2}
    exclude: [{when: "ranks == 4 and rate > 1", reason: r}, "size == 2 and ranks == 2"]
    extra: [{ranks: 3, rate: 1.0, threads: 1, behaviour: good, size: 5}]
    repeats: 2
    profile: cprofile
    time_limit_minutes: 5
    expected_minutes: 1
    memory_gib_per_rank: 1
    constraint: "knl&{behaviour}"
"""
SITE = """
site: toy
nodes: 4
cores_per_node: 8
memory_gib_per_node: 16
gpus_per_node: 1
oversubscribe: false
concurrent_runs: 1
time_limit_minutes: 5
python: python3
data: data
node_local: /tmp
stage_workers: 2
reserve_disk_gb: 1
prologue: [module load x]
env: {A: "1"}
programs: {p: /bin/true}
launch: {single: ["{python}"], multi: [srun, -n, "{ranks}", -N, "{nodes}"]}
slurm: {account: a, partition: p, constraint: knl, margin: 2, max_attempts: 2}
"""
BENCHMARK = (TOY / "benchmark.yaml").read_text()


@functools.cache
def parsed(text: str) -> Any:
    return yaml.safe_load(text)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A valid file with one to three changes, as YAML."""
    tree = copy.deepcopy(parsed(text))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(tree)))
        value = draw(LEAVES)
        if not path:
            if draw(st.integers(0, 9)) == 0:
                return yaml.safe_dump(value, allow_unicode=True)
            continue
        parent = tree
        for step in path[:-1]:
            parent = parent[step]
        match draw(st.sampled_from(["replace", "replace", "drop", "add", "wrap"])):
            case "replace":
                parent[path[-1]] = copy.deepcopy(value)
            case "drop":
                del parent[path[-1]]
            case "add" if isinstance(parent, dict):
                parent[draw(st.sampled_from([*TEXTS, 1, None]))] = copy.deepcopy(value)
            case "add":
                parent.append(copy.deepcopy(value))
            case _:
                parent[path[-1]] = [parent[path[-1]]]
    return yaml.safe_dump(tree, allow_unicode=True)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write the three files into a new folder, load the campaign and make its plan.

    Returns what was wrong with them, or None.
    """

    def plan(campaign: str = CAMPAIGN, site: str = SITE, benchmark: str = BENCHMARK) -> str | None:
        problem = None
        folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        try:
            shutil.copytree(TOY, folder / "benchmarks" / "toy")
            (folder / "benchmarks" / "toy" / "benchmark.yaml").write_text(benchmark)
            (folder / "sites").mkdir()
            (folder / "sites" / "toy.yaml").write_text(site)
            (folder / "c.yaml").write_text(campaign)
            monkeypatch.setattr(scalesweep.config.benchmark, "BENCHMARKS", folder / "benchmarks")
            monkeypatch.setattr(scalesweep.config.site, "SITES", folder / "sites")
            monkeypatch.chdir(folder)
            before = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
            try:
                loaded = load_campaign(folder / "c.yaml")
                runs = loaded.unique_runs()
                made = build_plan(loaded, {run_id: RunState(Status.NEW) for run_id in runs})
                plan_text(made)
                plan_csv(made)
                for experiment, run in list(runs.values())[:5]:
                    spec = run_spec(loaded, experiment, run)
                    inside = Path(spec["folder"]).resolve()
                    assert inside.parent == loaded.runs_folder.resolve()
            except UserError as error:
                assert str(error).strip()
                assert "\n" not in str(error)
                problem = str(error)
            after = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
            assert after == before
            return problem
        finally:
            monkeypatch.chdir("/")
            shutil.rmtree(folder)

    return plan


def test_the_files_are_valid_as_they_are(planned: Callable[..., str | None]) -> None:
    assert planned() is None


COMMON = settings(
    max_examples=100,
    deadline=5000,  # none takes seconds
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@COMMON
@given(text=damaged(CAMPAIGN))
@pytest.mark.slow
def test_a_damaged_campaign(planned: Callable[..., str | None], text: str) -> None:
    planned(campaign=text)


@COMMON
@given(text=damaged(SITE))
@pytest.mark.slow
def test_a_damaged_site(planned: Callable[..., str | None], text: str) -> None:
    planned(site=text)


@COMMON
@given(text=damaged(BENCHMARK))
@pytest.mark.slow
def test_a_damaged_benchmark(planned: Callable[..., str | None], text: str) -> None:
    planned(benchmark=text)
