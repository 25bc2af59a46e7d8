"""Experiments of runs with planted faults (tests/acceptance/faults.py), up to their tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalesweep.experiment.results import ExperimentResults
from tests.acceptance.faults import Arrays, Noise, Program, planted_run
from tests.fakes.training import Point, Training, make_training

RATE = "total_images_per_second"
_BATCH = 32


def planted_study(
    root: Path,
    program: Program,
    ranks: int = 2,
    repeats: int = 3,
    steps: int = 60,
    noise: Noise = Noise(),  # noqa: B008
    spans: tuple[str, ...] = ("between",),
    seed: int = 0,
    changed: Callable[[Arrays], None] = lambda arrays: None,
    alone: Callable[[Arrays], None] = lambda arrays: None,
    notes: Mapping[str, Any] | None = None,
    rate: Callable[[int, float], float] = lambda ranks, value: value,
) -> ExperimentResults:
    """An experiment of one rank without faults and of ``ranks`` with those of a program, through
    records, summary and tables; ``changed`` may change the arrays of the latter, ``alone`` those of
    the former, ``rate`` the rate of images that runs of so many ranks state."""

    def run_of(point: Point, repeat: int, spans: tuple[str, ...]) -> Arrays:
        count = int(point["ranks"])
        own = program if count > 1 else replace(program, faults={}, exchange=0.2)
        return planted_run(own, count, steps, seed * 1000 + repeat, noise, spans)

    def arrays(found: Arrays, point: Point, repeat: int) -> None:
        found.clear()
        found |= run_of(point, repeat, spans)
        (changed if point["ranks"] > 1 else alone)(found)

    def changes(point: Point, repeat: int) -> dict[str, Any]:
        whole = run_of(point, repeat, ("between",))  # the rate is of all the time
        wall = float((whole["step_times"] + whole["span_between"]).sum(axis=0).max())
        images = fake.samples(point)
        value = rate(int(point["ranks"]), images / wall)
        stated = {"value": value, "unit": "images/s", "better": "higher", "scope": "total"}
        return {"metrics": {RATE: stated}, "notes": dict(notes or {})}

    fake = Training(
        axes={"ranks": [1, ranks]}, name="steps", repeats=repeats, scaling="weak", compare=None,
        samples=lambda point: _BATCH * steps * int(point["ranks"]), main_metric=RATE,
        arrays=arrays, changes=changes, watts=lambda point, repeat: None,
    )  # fmt: skip
    return make_training(root, fake)["steps"]
