"""What TALP, PyPOP and HolisticTraceAnalysis say of the same arrays, by their own formulas.

TALP (bsc-pm/dlb, doc/user_guide/source/talp_metrics.rst): useful time is all outside of MPI; load
balance = mean / max useful time, communication efficiency = max useful time / elapsed time. PyPOP
(numericalalgorithmsgroup/pypop, pypop/metrics/mpi.py, additive): 1 - (max u - mean u) / T,
1 - (T' - max u) / T and T' / T, T' on an ideal network. HolisticTraceAnalysis
(facebookresearch): temporal breakdown into compute, non-compute (communication) and idle; a
straggler is the rank whose communication kernels start late (hta/analyzers/straggler.py).
"""

from collections.abc import Mapping

import numpy as np
import pytest

from scalesweep.analysis.step_account import account_of
from scalesweep.analysis.step_delays import causes_of, gain
from scalesweep.analysis.step_work import StepWork, step_work
from scalesweep.core.paths import REPO
from tests.acceptance.faults import Arrays, Noise, Program, always, in_turn, on_any, planted_run

QUIET = Noise(0.5, 0.2)
ROWS: Mapping[str, Program] = {
    "nothing": Program(),
    "slow reader": Program(faults={"input": always(40, 1)}),
    "both ranks late": Program(faults={"compute": always(30, 1), "input": always(30, 0)}),
    "input-bound": Program(batch_ms=100, faults={"compute": always(30, 1)}),
    "alternating": Program(faults={"compute": in_turn(40, 2)}),
    "random stalls": Program(faults={"compute": on_any(500, 5, 2)}),
    "logging on rank 0": Program(faults={"between": always(40, 0)}),
}


def work_of(arrays: Arrays) -> StepWork:
    work = step_work(arrays, {}, 2)
    assert work is not None
    return work


def talp(work: StepWork) -> tuple[float, float]:
    """Load balance and communication efficiency."""
    useful = work.own.sum(axis=0)
    elapsed = float((work.own + work.exchange).sum(axis=0).max())
    return float(useful.mean() / useful.max()), float(useful.max() / elapsed)


def pypop(work: StepWork) -> tuple[float, float, float]:
    """Load balance, serialisation and transfer, additive; on an ideal network a step lasts as long
    as its last rank works."""
    useful = work.own.sum(axis=0)
    elapsed = float((work.own + work.exchange).sum(axis=0).max())
    ideal = float(work.own.max(axis=1).sum())
    high, mean = float(useful.max()), float(useful.mean())
    return 1 - (high - mean) / elapsed, 1 - (ideal - high) / elapsed, ideal / elapsed


def hta_straggler(work: StepWork) -> tuple[int, float]:
    """The rank whose communication starts latest in most steps, and in how many: all ranks' ends
    are one, so that its communication is the shortest."""
    counts = np.bincount(work.exchange.argmin(axis=1), minlength=work.shape[1])
    return int(counts.argmax()), float(counts.max() / work.shape[0])


def hta_breakdown(work: StepWork) -> list[float]:
    """Shares of compute, non-compute and idle time, mean over the ranks."""
    whole = (work.own + work.exchange).sum()
    compute, exchange = work.causes["compute"].sum() / whole, work.exchange.sum() / whole
    return [float(compute), float(exchange), float(1 - compute - exchange)]


def test_without_host_time_the_factors_are_those_of_talp_and_pypop() -> None:
    program = Program(inside=0.0, faults={"compute": in_turn(20, 2), "input": always(9, 1)})
    arrays = planted_run(program, noise=QUIET)
    parts = ("span_input", "span_compute", "span_communication")
    arrays["step_times"] = np.sum([arrays[name] for name in parts], axis=0)
    del arrays["span_between"]
    account, work = account_of(arrays, {}, 2), work_of(arrays)
    assert account is not None
    factors = account.factors()
    balance, communication = talp(work)
    assert factors["load_balance"] == pytest.approx(balance, rel=1e-9)
    assert factors["serialisation"] * factors["transfer"] == pytest.approx(communication, rel=1e-9)


def words(row: str) -> str:
    """A row of the table in docs/reference/step_causes.md."""
    work = work_of(planted_run(ROWS[row], noise=QUIET))
    balance, communication = talp(work)
    _, serial, transfer = pypop(work)
    rank, share = hta_straggler(work)
    shares = " / ".join(f"{100 * one:.0f}" for one in hta_breakdown(work))
    causes = causes_of(work)
    alone = max((gain(work, [one], causes.bound) for one in causes.delays), default=0.0)
    every = gain(work, causes.delays, causes.bound)
    step = float(work.periods.mean())
    return (
        f"| {row} | {balance:.2f} | {communication:.2f} | {serial:.2f} | {transfer:.2f} | "
        f"rank {rank}, {100 * share:.0f} % | {shares} | {100 * alone / step:.0f} % | "
        f"{100 * every / step:.0f} % |"
    )


@pytest.mark.parametrize("row", ROWS)
def test_the_page_has_their_numbers_beside_the_replay(row: str) -> None:
    assert words(row) in (REPO / "docs" / "reference" / "step_causes.md").read_text(), words(row)


def test_what_the_others_cannot_tell() -> None:
    """A load balance of 1 hides delays that alternate; a rank that is late may cost nothing."""
    alternating = work_of(planted_run(ROWS["alternating"], noise=QUIET))
    assert talp(alternating)[0] > 0.99
    assert gain(alternating, causes_of(alternating).delays) / alternating.elapsed > 0.35
    late = work_of(planted_run(ROWS["both ranks late"], noise=QUIET))
    assert talp(late)[0] > 0.99
    assert gain(late, causes_of(late).delays) / late.elapsed > 0.25
    bound = work_of(planted_run(ROWS["input-bound"], noise=QUIET))
    causes = causes_of(bound)
    straggler = [one for one in causes.delays if one.cause == "compute"]
    assert talp(bound)[0] < 0.9
    assert gain(bound, straggler, causes.bound) / bound.elapsed < 0.02
