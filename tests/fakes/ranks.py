"""Made-up runs whose ranks have times of their own, with or without one that is slow."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fakes.training import Point, Training

Draw = np.random.Generator
# Times [step, rank] of a run, from a generator, the number of ranks and the repeat.
Times = Callable[[Draw, int, int], Any]


def steady(steps: int, noise: float, slow: dict[int, float] | None = None) -> Times:
    """Lognormal scatter around 0.1 s; each rank of ``slow`` takes so many times as long."""

    def times(draw: Draw, ranks: int, _repeat: int) -> Any:
        found = 0.1 * np.exp(noise * draw.standard_normal((steps, ranks)))
        for rank, factor in (slow or {}).items():
            found[:, rank] *= factor
        return found

    return times


def ranked(
    times: Times,
    ranks: int = 8,
    name: str = "ranked",
    array: str = "step_times",
    per_host: int = 4,
    seed: int = 1,
    **changes: Any,
) -> Training:
    """An experiment of one scale whose runs keep ``array`` as ``times`` draws it.

    ``local_times`` of epochs stand for the rank's own work, as those of data_loading.
    """

    def arrays(found: dict[str, Any], point: Point, repeat: int) -> None:
        found.clear()
        draw = np.random.default_rng([seed, *name.encode(), point["ranks"], repeat])
        drawn = times(draw, int(point["ranks"]), repeat)
        if array == "local_times":
            whole = np.vstack([3 * drawn[:1], drawn])  # a first epoch, which is left out
            ends = np.tile(1.01 * whole.max(axis=1, keepdims=True), int(point["ranks"]))
            found |= {"local_times": whole, "span_input": whole, "global_times": ends}
        elif array == "span_input":
            local = np.full_like(drawn, 1.0)
            found |= {"local_times": local, "span_input": drawn, "global_times": local * 1.01}
        elif array == "spans":
            wait = 0.01 + drawn.max(axis=1, keepdims=True) - drawn
            found |= {"step_times": drawn + wait, "span_compute": drawn, "span_communication": wait}
            found |= dict.fromkeys(("span_input", "span_between"), np.zeros_like(drawn))
        else:
            found[array] = drawn

    hosts = [f"n{rank // per_host}" for rank in range(ranks)]
    words: dict[str, Any] = {
        "axes": {"ranks": [ranks]}, "name": name, "arrays": arrays, "epoch_s": lambda p: 1.0,
        "changes": lambda p, r: {"resources": {"hosts": hosts}}, "scaling": "none",
    }  # fmt: skip
    return Training(**{**words, **changes})
