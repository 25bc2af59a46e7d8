"""Steps by rank: tables, who is named a straggler and who must not be; their warm-up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.rank_stats import own_times, rank_times
from scalesweep.analysis.rank_stats import slow_ranks as slow_of
from scalesweep.aspects.draw import draw
from scalesweep.aspects.find import find
from scalesweep.aspects.steps.ranks import VICTIM, RankRow
from scalesweep.aspects.warm_up import WarmUp, WarmUpCurve, warm_up_table
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.training import Point, Training, study_of

pytestmark = pytest.mark.slow
Array = Any
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
    """An experiment of one scale whose runs keep ``array`` as ``times`` draws it. ``local_times``
    of epochs stand for the rank's own work, as those of data_loading."""

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


def test_own_times_are_without_the_first_epoch_and_with_reading() -> None:
    """The warm-up of steps has an array of its own."""
    local, reading, compute = 1 + np.random.default_rng(1).random((3, 4, 3))
    assert len(own_times({"step_times": local}, 3)["step"][0]) == 4
    assert len(own_times({"local_times": local}, 3)["epoch"][0]) == 3
    assert [*own_times({"local_times": local, "span_input": reading}, 3)] == ["input", "epoch"]
    assert [*own_times({"local_times": local, "step_times": local}, 3)] == ["step"]
    steps = {"step_times": 3 * local, "span_input": reading, "span_compute": compute}
    own, whole = own_times(steps, 3)["step-work"]
    assert own == pytest.approx((reading + compute)[1:]) and whole == pytest.approx(3 * local[1:])


def test_noise_alone_seldom_names_a_rank_and_a_slow_one_is_found() -> None:
    """docs/methods/intervals.md has more kinds of noise; here 60 campaigns of three runs."""
    named, right = 0, 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        quiet = [steady(5, 0.05)(draw, 16, 0) for _ in range(3)]
        named += bool(slow_of([rank_times(times, times) for times in quiet]))
        late = [steady(5, 0.05, {7: 1.2})(draw, 16, 0) for _ in range(3)]
        slow = slow_of([rank_times(times, times) for times in late])
        right += [(it.place, it.ratio.low < 1.2 < it.ratio.high) for it in slow] == [(7, True)]
    assert named <= 3 and right >= 52


def test_the_largest_finished_scale_of_every_series(tmp_path: Path) -> None:
    fake = ranked(
        steady(5, 0.05), axes={"ranks": [1, 2, 4, 8], "mode": ["a", "b"]},
        fate=lambda p, r: "TIMEOUT" if p["ranks"] == 8 and p["mode"] == "b" else "done",
        changes=lambda p, r: {},
    )  # fmt: skip
    rows = study_of(tmp_path, fake).of(RankRow)
    assert {(row.point["ranks"], row.point["mode"]) for row in rows} == {(8, "a"), (4, "b")}
    assert {row.host for row in rows} == {None} and len(rows) == 3 * 8 + 3 * 4


def moved(draw: Draw, ranks: int, repeat: int) -> Array:
    return steady(50, 0.05, {repeat: 1.3})(draw, ranks, repeat)


def once(draw: Draw, ranks: int, repeat: int) -> Array:
    return steady(50, 0.05, {3: 1.5} if repeat == 1 else None)(draw, ranks, repeat)


def coupled(draw: Draw, ranks: int, _repeat: int) -> Array:
    """Each step ends on all ranks when the slowest, always the first, is done."""
    own = 0.1 * np.exp(0.1 * draw.standard_normal((50, ranks)))
    own[:, 0] *= 1.5
    ends = np.cumsum(own.max(axis=1))[:, None] + 0.01 * draw.random((50, ranks))
    return np.diff(np.vstack([np.zeros(ranks), ends]), axis=0)


def turned(_point: Any, repeat: int) -> dict[str, Any]:
    """Hosts of eight ranks, which are others in each run."""
    return {"resources": {"hosts": [f"n{(rank - repeat) % 8}" for rank in range(8)]}}


# Times, how they are kept -> state (empty: nobody is named), and what the sentence begins with.
CASES: dict[str, tuple[Times, dict[str, Any], str, str]] = {
    "a step": (steady(50, 0.05, {3: 1.2}), {}, "open", "Rank 3 on n0 is slow: its step takes 1."),
    "own work": (steady(50, 0.05, {3: 1.2}), {"array": "local_times"}, "clear",
                 "Rank 3 on n0 is slow: its own work in an epoch takes 1.2"),
    "one run": (steady(50, 0.05, {1: 1.3}), {"repeats": 1}, "open", "Rank 1 on n0 is slow"),
    "one run of three": (once, {}, "", ""),
    "a host": (steady(50, 0.05, {4: 1.2, 5: 1.2}), {"per_host": 2, "array": "local_times"},
               "clear", "Host n2 is slow: its ranks' own work in an epoch takes 1."),
    "a host with other ranks": (moved, {"changes": turned, "array": "local_times"}, "clear",
                                "Host n0 is slow"),
    "two ranks": (steady(50, 0.05, {1: 1.2}), {"ranks": 2, "array": "local_times"}, "clear",
                  "Rank 1 on n0 is slow: its own work in an epoch takes 1.19"),
    "input": (steady(6, 0.05, {7: 2.3}), {"array": "span_input", "per_host": 1}, "clear",
              "Rank 7 on n7 is slow: its wait for input in an epoch takes"),
    "steps that wait for all": (coupled, {}, "", ""),
    "spans, of which causes tell": (steady(8, 0.05, {3: 1.5}), {"array": "spans"}, "", ""),
    "spans of few steps": (steady(6, 0.05, {3: 1.5}), {"array": "spans"}, "clear",
                           "Rank 3 on n0 is slow: its own work in a step takes 1."),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_who_is_named(tmp_path: Path, name: str) -> None:
    times, words, state, begin = CASES[name]
    results = study_of(tmp_path, ranked(times, **words))
    said = [each for each in find(results) if each.rule == "stragglers"]
    assert [each.state for each in said] == [state][: len(state)]
    for finding in said:
        assert finding.sentence.startswith(begin) and len(finding.sentence.split()) <= 25
        reason = "one run" if name == "one run" else VICTIM
        assert finding.reason == (reason if state == "open" else "")


def test_a_figure_marks_and_names_stragglers(tmp_path: Path) -> None:
    study = study_of(tmp_path, ranked(steady(50, 0.05, {13: 1.2}), ranks=64))
    (figure,) = [drawing for drawing in draw(study) if drawing.name.startswith("ranks-")]
    (ax,) = figure.figure.axes
    assert figure.name == "ranks-step"
    assert "rank 13, n3, slower" in ax.get_legend_handles_labels()[1]
    (mark,) = [line for line in ax.lines if line.get_marker() == "^"]
    assert list(mark.get_xdata()) == [13]
    quiet = study_of(tmp_path / "quiet", ranked(steady(50, 0.05), ranks=100))
    (figure,) = [drawing for drawing in draw(quiet) if drawing.name.startswith("ranks-")]
    assert set(figure.panels[0].frame["style"]) == {"dots"}


# --- where steps become steady ---

DECLARED, REAL, STEPS = 5, 12, 60


def warming(root: Path, drift: float = 0.0) -> ExperimentResults:
    """Runs whose first 12 steps take three times as long, the first six, of which they leave out
    five; ``drift``: how much longer the last step takes than the first."""

    def arrays(found: dict[str, Any], point: dict[str, Any], repeat: int) -> None:
        ranks = int(point["ranks"])
        times = steady(STEPS, 0.02)(np.random.default_rng([ranks, repeat]), ranks, repeat)
        times[:REAL] *= 1 if drift else 3
        times[0] *= 2
        times *= np.linspace(1, 1 + drift, STEPS)[:, None]
        found.clear()
        found |= {"step_times": times[DECLARED:], "warmup_step_times": times[:DECLARED]}

    fake = ranked(steady(STEPS, 0.02), name="warm", arrays=arrays, axes={"ranks": [2]})
    return study_of(root, fake)


def test_declared_and_detected_warm_up_reach_table_page_and_figure(tmp_path: Path) -> None:
    results = warming(tmp_path)
    (row,) = results.of(WarmUp)
    assert (row.count, row.declared, row.detected) == (STEPS, DECLARED, REAL)
    assert row.detected_s == pytest.approx((REAL + 1) * 0.3, rel=0.05)
    assert (row.first_ms, row.steady_ms) == pytest.approx((600, 100), rel=0.02)
    curve = results.of(WarmUpCurve)
    assert [row.step for row in curve] == list(range(1, STEPS + 1))
    assert all(row.p10_ms < row.p50_ms < row.p90_ms for row in curve)
    cells = {cell.text: cell.bad for cell in warm_up_table(results, 10).rows[0]}
    assert cells["12"] and not cells["5"]  # longer than declared: marked
    (drawing,) = [each for each in draw(results) if each.name == "warm-up"]
    for ax in drawing.figure.axes:
        line, _longest, *lines = ax.get_lines()
        assert len(line.get_xdata()) == STEPS
        assert np.median(line.get_ydata()) == pytest.approx(100, rel=0.05)
        assert [float(each.get_xdata()[0]) for each in lines] == [DECLARED + 0.5, REAL + 0.5]


def test_nothing_is_steady_of_runs_that_become_slower_all_the_time(tmp_path: Path) -> None:
    results = warming(tmp_path, drift=1.0)
    (row,) = results.of(WarmUp)
    assert row.unsteady == row.runs > 0
    assert (row.detected, row.detected_s, row.steady_ms) == (None,) * 3
    assert "not steady" in [cell.text for cell in warm_up_table(results, 10).rows[0]]
    (drawing,) = [each for each in draw(results) if each.name == "warm-up"]
    assert "1 point not steady" in drawing.caption
    assert len(drawing.figure.axes[0].get_lines()) == 3  # two curves, and the declared warm-up
