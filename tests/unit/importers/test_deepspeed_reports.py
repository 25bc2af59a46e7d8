"""DeepSpeed's FLOPS profiler and its communication logger: units, sizes, and what is refused.

The formats are those of docs/_tutorials/flops-profiler.md and communication-logging.md
(deepspeedai/DeepSpeed), with other numbers.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.core.errors import UserError
from scalesweep.importers.detect_logs import read_source
from scalesweep.importers.imported_run import ImportedRun, Refusal
from tests.fakes.training_logs import LOGS

Read = Callable[..., tuple[list[ImportedRun], list[Refusal]]]
ENTRIES = {
    "world size": "4", "data parallel size": "4", "batch size per GPU": "80",
    "params per gpu": "336.23 M", "fwd MACs per GPU": "3139.93 G", "fwd flops per GPU": "6250.5 G",
    "fwd latency": "75.5 ms", "bwd latency": "0.125 s",
    "fwd FLOPS per GPU = fwd flops per GPU / fwd latency": "81.5 TFLOPS",
    "fwd+bwd FLOPS per GPU = 3 * fwd flops per GPU / (fwd+bwd latency)": "102.5 TFLOPS",
    "step latency": "34.5 us", "iter latency": "200.5 ms", "samples/second": "1596.01",
}  # fmt: skip
SUMMARY = """
Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)
broadcast
                    0B                  2                   0.19                0.10                0.00                0.00
                    2.0 MB              24                  2.50                0.08                397.06              372.24
all_gather_base | [Caller Func: allgather_fn]
                    128.0 KB            48                  3.50                0.07                29.79               27.93
                    6.0 MB              219                 16.50               0.07                1401.24             1200.00
log_summary_barrier
                    0B                  1                   0.11                0.11                0.00                0.00
"""  # noqa: E501


def profile(**changed: str) -> str:
    """A profile as it is printed."""
    entries = {**ENTRIES, **changed}
    return "-" * 20 + " DeepSpeed Flops Profiler\n" + "".join(
        f"{name + ': ':<70}  {text:<8}\n" for name, text in entries.items()
    )  # fmt: skip


def verbose(ms: float, size: str, bus: float) -> str:
    """A line of the logger for each call."""
    return (
        "[2022-06-26 01:39:56,470] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: "
        f"all_reduce | time (ms): {ms:.2f} | msg size: {size} | algbw (Gbps): 954.41  | busbw "
        f"(Gbps): {bus:.2f}\n"
    )


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a text into a log and read it."""

    def reader(text: str, ranks: int | None = None) -> Any:
        (tmp_path / "train.log").write_text(text)
        return read_source(tmp_path, ranks)[:2]

    return reader


def values(run: ImportedRun) -> dict[str, float]:
    """The metrics of a run."""
    return {name: metric["value"] for name, metric in run.metrics.items()}


def test_a_profile_in_its_units(read: Read) -> None:
    ((run,), refusals) = read("noise\n" + profile())
    assert refusals == []
    assert run.point == {"ranks": 4, "micro_batch_size": 80}
    assert values(run) == pytest.approx(
        {
            "forward_flop": 6250.5e9, "time_forward": 0.0755, "time_backward": 0.125,
            "flops_per_device_deepspeed": 102.5e12, "time_update": 34.5e-6, "step_time": 0.2005,
            "samples_per_second": 1596.01,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"bwd latency": "-2.9601e+08 us"}, "bwd latency of -2.9601e+08 us"),
        ({"iter latency": "0 us"}, "iter latency of 0 us"),
        ({"iter latency": "5.5 min"}, "iter latency of 5.5 min"),
        ({"world size": "0"}, "without world size or iter latency"),
    ],
)
def test_what_a_profile_cannot_be(read: Read, changed: dict[str, str], reason: str) -> None:
    runs, (refusal,) = read(profile(**changed))
    assert runs == []
    assert reason in refusal.reason


def test_a_summary_of_collectives_in_bytes(read: Read) -> None:
    runs, refusals = read(SUMMARY, 16)
    assert refusals == []
    by_name = {run.point["operation"]: run for run in runs}
    assert set(by_name) == {"broadcast", "all_gather_base", "log_summary_barrier"}
    gather = by_name["all_gather_base"]
    # 1200 Gbit/s are 150 GB/s, of the size that moved the most.
    assert values(gather) == pytest.approx(
        {"bus_bandwidth": 150e9, "total_time": 0.02, "calls": 267}
    )
    assert gather.samples["message_bytes"].tolist() == [128 * 1024, 6 * 1024**2]
    assert "bus_bandwidth" not in by_name["log_summary_barrier"].metrics


def test_calls_that_are_printed_one_by_one(read: Read) -> None:
    text = verbose(1.0, "6.0 MB", 80.0) + verbose(3.0, "6.0 MB", 40.0) + verbose(9.0, "2.0 B", 0.0)
    ((run,), _) = read(text, 8)
    # The mean over the time: (1 x 80 + 3 x 40) / 4 = 50 Gbit/s.
    assert values(run) == pytest.approx({"bus_bandwidth": 6.25e9, "total_time": 0.013, "calls": 3})
    _, (refusal,) = read(text)
    assert "--ranks N" in refusal.reason


def test_reports_beside_lines_of_progress_are_runs_of_their_own(read: Read) -> None:
    runs, _ = read(LOGS["DeepSpeed"].text + profile() + verbose(1.0, "6.0 MB", 80.0), 4)
    assert sorted(run.benchmark for run in runs) == [
        "deepspeed", "deepspeed_comms", "deepspeed_flops_profiler",
    ]  # fmt: skip


WHOLE = profile() + SUMMARY + verbose(1.0, "6.0 MB", 80.0)


@given(st.integers(0, len(WHOLE)), st.text(max_size=30), st.integers(0, 30))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.slow
def test_damage_ends_in_runs_or_reasons(read: Read, at: int, text: str, lost: int) -> None:
    changed = WHOLE[:at] + text.encode("utf-8", "replace").decode() + WHOLE[at + lost :]
    try:
        runs, refusals = read(changed, 8)
    except UserError:
        return
    assert all(refusal.reason for refusal in refusals)
    assert all(np.isfinite(list(values(run).values())).all() for run in runs)
