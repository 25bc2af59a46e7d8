"""plan.json, order.json and native.json: what is written is read, damage is one line."""

import ast
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute import job_spec
from scalesweep.compute.job_spec import Order, await_order, read_order, write_order
from scalesweep.compute.native_format import Native
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.files import sealed
from scalesweep.core.paths import BENCHMARKS
from scalesweep.core.plan_format import read_plan
from scalesweep.jobs.run_spec import run_spec
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.slurm.job_shape import Shape
from scalesweep.state.run_state import RunState


def test_programs_and_launcher_name_the_same_fields() -> None:
    """The benchmarks have a type of their own, because they import nothing of scalesweep."""
    tree = ast.parse((BENCHMARKS / "harness" / "native.py").read_text())
    theirs = next(
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Native"
    )
    names = {node.target.id for node in theirs.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    assert names == set(Native.__annotations__)


@pytest.fixture
def plan_file(
    campaign_of: Callable[..., Campaign], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A plan with something in each of its parts."""
    monkeypatch.chdir(tmp_path)
    campaign = campaign_of(
        "axes: {ranks: [1, 2], size: [4, 8]}\nrepeats: 2\n"
        "exclude: [{when: 'ranks == 2 and size == 8', reason: too many}]"
    )
    runs = campaign.unique_runs()
    states = dict.fromkeys(runs, RunState("new"))
    states[f"{next(iter(runs))}.cprofile"] = RunState("done", "1")
    shapes = dict.fromkeys(runs, Shape(1, 1, 1, 2, 6))
    plan = build_plan(campaign, states, shapes, [])
    write_plan(campaign, plan, as_json=True)
    path = campaign.results.resolve() / "plan.json"
    assert {**read_plan(path), "digest": ""} == {**plan, "digest": ""}
    return path


def test_a_plan_that_was_changed_is_refused(plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text().replace("too many", "too mony"))
    with pytest.raises(UserError, match="was changed after it was written"):
        read_plan(plan_file)


def without(*keys: str | int) -> Callable[[Any], None]:
    """Take a field out of a plan."""

    def change(plan: Any) -> None:
        for key in keys[:-1]:
            plan = plan[key]
        del plan[keys[-1]]

    return change


def with_text(*keys: str | int) -> Callable[[Any], None]:
    """Put text in the place of a field."""

    def change(plan: Any) -> None:
        for key in keys[:-1]:
            plan = plan[key]
        plan[keys[-1]] = "x"

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("site"), "lacks 'site': written by another version of scalesweep"),
        (without("order", "of"), "order: lacks 'of'"),
        (without("experiments", 0, "axes"), "experiments[0]: lacks 'axes'"),
        (without("experiments", 0, "runs", 1, "status"), "experiments[0].runs[1]: lacks 'status'"),
        (without("experiments", 0, "excluded", 0, "reason"), "excluded[0]: lacks 'reason'"),
        (without("experiments", 0, "parameters", "size", "unit"), "parameters.size: lacks 'unit'"),
        (without("jobs", "shapes", 0, "basis"), "jobs.shapes[0]: lacks 'basis'"),
        (with_text("experiments"), "not a plan (no list 'experiments')"),
        (with_text("experiments", 0), "not a plan (experiments[0]: not an object)"),
        (with_text("experiments", 0, "runs"), "not a plan (experiments[0].runs is not a list)"),
        (with_text("experiments", 0, "runs", 0), "experiments[0].runs[0]: not an object"),
        (with_text("experiments", 0, "parameters"), "experiments[0].parameters is not an object"),
        (with_text("jobs"), "not a plan (jobs: not an object)"),
        (with_text("jobs", "shapes"), "not a plan (jobs.shapes is not a list)"),
    ],
)
def test_a_damaged_plan_is_one_line(
    plan_file: Path, change: Callable[[Any], None], said: str
) -> None:
    plan = json.loads(plan_file.read_bytes())
    del plan["digest"]
    change(plan)
    for text in (json.dumps(plan), sealed(plan)):
        plan_file.write_text(text)
        with pytest.raises(UserError) as error:
            read_plan(plan_file)
        assert said in str(error.value) and str(error.value).startswith(f"{plan_file}: ")


def test_an_order_is_read_as_it_was_written(
    campaign_of: Callable[..., Campaign], tmp_path: Path
) -> None:
    campaign = campaign_of("axes: {ranks: [1, 2]}")
    run_id, (experiment, run) = next(iter(campaign.unique_runs().items()))
    order = run_spec(campaign, experiment, run)
    order["order"] = {"seed": 3, "position": 1, "of": 2}
    order["extract"] = {"metrics": [], "digest": "d", "srun_labels": False, "work": {}}
    order["asked"] = {"nodes": 1, "minutes": 6, "limit_s": 60.0, "mem_mb": None}
    path = tmp_path / run_id / "order.json"
    write_order(path, order)
    assert json.dumps(read_order(path)) == json.dumps(order)


def test_an_order_that_lacks_something_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    other: Any = {"command": "make data"}
    write_order(path, other)
    with pytest.raises(UserError, match=r"cannot read the job specification \(it lacks 'argv'\)"):
        read_order(path)
    path.write_text(json.dumps(other | {"digest": "0"}))
    with pytest.raises(UserError, match="it was changed: its digest differs"):
        read_order(path)


def test_a_job_waits_for_its_own_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "order.json"
    order: Any = dict.fromkeys(Order.__required_keys__, "x")
    digest = write_order(path, {**order, "run_id": "new"})
    assert json.loads(path.read_bytes())["digest"] == digest
    content = path.read_bytes()
    # What a network file system still shows, and then shows no more.
    write_order(path, {**order, "run_id": "old"})
    monkeypatch.setattr(job_spec, "_POLL_S", 0.01)
    threading.Timer(0.2, path.write_bytes, [content]).start()
    assert await_order(path, digest)["run_id"] == "new"
    path.unlink()
    threading.Timer(0.2, path.write_bytes, [content]).start()
    assert await_order(path, digest)["run_id"] == "new"
    # Another order was written meanwhile, for a job that was requeued.
    monkeypatch.setattr(job_spec, "CACHED_S", 0.1)
    assert await_order(path, "0" * 32)["run_id"] == "new"
    path.unlink()
    with pytest.raises(UserError, match="cannot read the job specification"):
        await_order(path, digest)
