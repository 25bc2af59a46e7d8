"""The table `trace_stamps`: a run's trace of PyTorch's profiler beside its own time stamps, and
beside those of the measured run that it repeats."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.torch_trace import TorchTrace
from scalesweep.analysis.trace_and_stamps import SideBySide, StampedSteps, side_by_side
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import number
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.profilers import split_name
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.run_arrays import read_arrays

STEP, COMPUTATION, EXCHANGE = "step", "computation", "exchange"
# Trace and stamps agree within this share of what the stamps say, or that share of a step.
AGREE, OF_STEP = 0.05, 0.005
_ARRAYS = {"step": "step_times", COMPUTATION: "span_compute", EXCHANGE: "span_communication"}
_MS = 1e3


@dataclass(frozen=True, kw_only=True)
class TraceBeside(DeclaredRow, table="trace_stamps", leading=("run_id",)):
    """A step, its computation or its exposed exchange by the trace of a run and by the stamps of
    the same steps of the same run; means over its ranks."""

    run_id: str = column("the run that was traced")
    quantity: str = column("step, computation or exchange (exposed)")
    trace_ms: float = column("by its trace", "ms")
    stamps_ms: float = column("by its own time stamps", "ms")
    difference: float | None = column("trace over stamps, less 1", "1")
    agrees: bool = column("whether they differ by 5 % at most, or by 0.5 % of a step")
    why: str = column("why they differ; empty where they agree")
    measured_ms: float | None = column(
        "by the stamps of the measured run, which no profiler slows down", "ms"
    )
    steps: int = column("steps that both show of a rank", "1")
    traced_ranks: int = column("ranks that were compared", "1")


def stamps_of(folder: Path) -> list[StampedSteps]:
    """The stamps of a run's ranks; empty where it has none, or they cannot be read."""
    try:
        record, samples = read_arrays(folder)
        ranks = int(record["point"].get("ranks", 1))
        arrays = {name: rank_matrix(samples, array, ranks) for name, array in _ARRAYS.items()}
        between = rank_matrix(samples, "span_between", ranks)
    except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE):
        return []
    step, compute, exchange = (arrays[name] for name in _ARRAYS)
    if step is None or compute is None or exchange is None:
        return []
    if not step.shape == compute.shape == exchange.shape:
        return []
    whole = step if between is None or between.shape != step.shape else step + between
    return [StampedSteps(whole[:, r], compute[:, r], exchange[:, r]) for r in range(ranks)]


def beside_of(trace: TorchTrace, stamps: Sequence[StampedSteps], rank: int) -> SideBySide | None:
    """A rank's trace beside its stamps; None where there are none, or of other steps."""
    return side_by_side(trace, stamps[rank]) if rank < len(stamps) else None


def beside_rows(
    run: Mapping[str, Any], ranks: Sequence[SideBySide], runs: Path, axes: Sequence[str]
) -> Iterator[TraceBeside]:
    """A row per quantity of a traced run."""
    if not ranks:
        return

    def mean(name: str) -> float:
        return float(np.mean([getattr(each, name) for each in ranks])) * _MS

    measured = stamps_of(runs / split_name(run["run_id"])[0])
    step, rest = mean("step"), mean("trace_rest")
    for quantity, by_trace, by_stamps in (
        (STEP, mean("trace_step"), step),
        (COMPUTATION, mean("trace_compute"), mean("compute")),
        (EXCHANGE, mean("trace_exchange"), mean("exchange")),
    ):
        agrees = _agree(by_trace, by_stamps, step)
        yield TraceBeside(
            point={name: run["point"].get(name) for name in axes},
            run_id=run["run_id"],
            quantity=quantity,
            trace_ms=by_trace,
            stamps_ms=by_stamps,
            difference=by_trace / by_stamps - 1 if by_stamps > 0 else None,
            agrees=agrees,
            why="" if agrees else _why(quantity, by_trace, by_stamps, rest, step),
            measured_ms=_measured(quantity, measured),
            steps=min(each.steps for each in ranks),
            traced_ranks=len(ranks),
        )


def _agree(trace: float, stamps: float, step: float) -> bool:
    return abs(trace - stamps) <= max(AGREE * stamps, OF_STEP * step)


def _why(quantity: str, trace: float, stamps: float, rest: float, step: float) -> str:
    """Why a trace says something else than stamps of the same steps, both in ms."""
    if quantity == COMPUTATION:
        words = (
            f"{number(rest)} ms in which no operation runs (Python between operations, the "
            "profiler itself) are computation to the stamps and rest to the trace"
        )
        if _agree(trace + rest, stamps, step):
            return f"{words}: with them they agree"
        return f"{words}: with them the trace has {number(trace + rest)} ms"
    if quantity == EXCHANGE and trace > stamps:
        return (
            "stamps count waiting from the last gradient of a rank on, the trace also earlier "
            "moments in which an exchange and no operation runs"
        )
    if quantity == EXCHANGE:
        return "operations run while the rank waits, and count as computation in the trace"
    return "some windows of the trace hold time between steps that the stamps do not count"


def _measured(quantity: str, ranks: Sequence[StampedSteps]) -> float | None:
    """Mean over the ranks of a run's stamps, in ms."""
    if not ranks:
        return None
    name = {STEP: "step", COMPUTATION: "compute", EXCHANGE: "exchange"}[quantity]
    values: list[Floats] = [getattr(each, name) for each in ranks]
    return float(np.mean([each.mean() for each in values])) * _MS
