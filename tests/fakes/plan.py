"""Plans of tests, which name only what they are about: the rest is filled in."""

from collections.abc import Mapping
from typing import Any

from scalesweep.core.plan_format import Plan

_RUN = {
    "repeat": 0, "position": 1, "point": {"ranks": 1}, "work": None, "status": "new", "cause": "",
    "detail": "", "threads_per_core": None, "reused": False,
}  # fmt: skip
_PROFILE = {
    "kind": "cprofile", "point": {"ranks": 1}, "status": "new", "cause": "", "detail": "",
    "to_run": False,
}  # fmt: skip
_PARAMETER = {"unit": None, "doc": "", "default": None, "workload": False}
_EXPERIMENT = {
    "name": "e", "description": "", "control": False, "benchmark": "b", "summary": "", "version": 1,
    "main_metric": None, "metrics": {}, "scaling": "none", "scale": "ranks",
    "scale_parameters": ["ranks"], "axes": [], "linked": [], "work": [], "fixed": {},
    "parameters": {}, "runs": [], "profiles": [], "excluded": [], "points": 1,
    "wall_s": None,
}  # fmt: skip
_PLAN = {
    "campaign": "c", "description": "", "file": "c.yaml", "site": "here", "results": "results",
    "created": "2026-01-02T00:00:00+00:00", "experiments": [], "jobs": None,
}  # fmt: skip


def whole_plan(said: Mapping[str, Any]) -> Plan:
    """A plan with all of its fields, those that ``said`` lacks being filled in."""
    experiments = [_experiment(entry) for entry in said.get("experiments", [])]
    order = {"seed": None, "of": sum(len(entry["runs"]) for entry in experiments)}
    plan: Any = {**_PLAN, "order": order, **said, "experiments": experiments}
    return plan


def _experiment(said: Mapping[str, Any]) -> dict[str, Any]:
    entry = {**_EXPERIMENT, **said}
    entry["runs"] = [
        {**_RUN, "to_run": run.get("status", "new") in ("new", "failed"), **run}
        for run in entry["runs"]
    ]
    entry["profiles"] = [{**_PROFILE, **run} for run in entry["profiles"]]
    entry["parameters"] = {name: {**_PARAMETER, **it} for name, it in entry["parameters"].items()}
    return entry
