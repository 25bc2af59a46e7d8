"""Traces of other versions, devices and programs, and damaged ones: one clear line each."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.kineto_calls import NOTE
from scalesweep.analysis.kineto_stream import NoTraceError, RankTrace, read_stream
from scalesweep.analysis.trace_account import OPTIMIZER, PROFILER, account_of_rank, windows_of
from scalesweep.importers.profiles.detect import read_source
from tests.unit.importers.test_kineto import allreduce, event, one_of, steps, text_of, write


def read(text: str) -> RankTrace:
    return read_stream(io.BytesIO(text.encode()))


def refusal(folder: Path, *texts: str) -> str:
    source = read_source(write(folder, *texts))
    assert source.profiles == [] and source.others == []
    (refused,) = source.refusals
    assert "\n" not in refused.reason
    return refused.reason


def step(begin: float, number: int, *more: dict[str, Any]) -> list[dict[str, Any]]:
    return [event("user_annotation", f"ProfilerStep#{number}", begin, 1000), *more]


def test_what_stands_behind_the_events_is_read_too(tmp_path: Path) -> None:
    """Who rewrites a trace, or Kineto on demand, puts the rank there."""
    for rank in (0, 1):
        body = {"traceEvents": steps(), "distributedInfo": {"rank": rank, "world_size": 2},
                "baseTimeNanoseconds": 1_700_000_000_000_000_000}  # fmt: skip
        (tmp_path / f"{rank}.json").write_text(json.dumps(body))
    (profile,) = read_source(tmp_path).profiles
    assert (profile.ranks, profile.profiled_ranks) == (2, None)
    trace = read((tmp_path / "1.json").read_text())
    assert (trace.rank, trace.world) == (1, 2)


def test_groups_of_one_name_are_not_matched_with_each_other(tmp_path: Path) -> None:
    """Two groups "tp" of two ranks each: those of ranks 2 and 3 begin 400 us later in each step,
    which is no lateness."""
    texts = []
    for rank in range(4):
        pair, late = rank // 2, 100 * (rank % 2)
        members = f"[{2 * pair}, {2 * pair + 1}]"
        events = []
        for number in range(6):
            at = 1000 * number + 400 * pair
            more = {"Process Group Description": "tp", "Process Group Ranks": members}
            events += step(1000 * number, number, event("kernel", "gemm", at, 50),
                           allreduce(at + 100 + late, 200 - late, number, **more))  # fmt: skip
        texts.append(text_of(events, rank, 4))
    late = one_of(tmp_path, *texts).notes[NOTE]["late"]
    assert [(row["rank"], row["members"]) for row in late] == [
        (0, "0, 1"), (1, "0, 1"), (2, "2, 3"), (3, "2, 3"),
    ]  # fmt: skip
    assert [row["late_mean_ms"] for row in late] == pytest.approx([0, 0.1, 0, 0.1])


def test_times_may_be_counted_from_another_time_on_each_rank(tmp_path: Path) -> None:
    """Of rank 1 from one second later, with a clock that is 3 ms ahead."""
    bases = [
        text_of(steps(100 * rank, -997_000 * rank), rank).replace(
            '"schemaVersion": 1', f'"schemaVersion": 1, "baseTimeNanoseconds": {base}'
        )
        for rank, base in ((0, 1_700_000_000_000_000_000), (1, 1_700_000_001_000_000_000))
    ]
    first, second = one_of(tmp_path, *bases).notes[NOTE]["late"]
    assert (first["clock_ahead_ms"], second["clock_ahead_ms"]) == pytest.approx((0, 3), abs=1e-3)
    assert second["late_mean_ms"] == pytest.approx(0.1, abs=1e-3)


def test_calls_whose_ends_do_not_coincide_are_other_calls(tmp_path: Path) -> None:
    """No numbers, no members: what two ranks called at different times tells of no lateness."""

    def made(shift: float) -> list[dict[str, Any]]:
        events = []
        for number in range(30):
            at = 1000 * number + shift * ((number * 7) % 5)
            call = allreduce(at, 50, number)
            del call["args"]["Seq"]
            events += step(1000 * number, number, call)
        return events

    profile = one_of(tmp_path, text_of(made(0)), text_of(made(150), 1))
    assert profile.notes[NOTE]["late"] == []
    assert profile.notes["call_time"].startswith("of one rank")


def test_a_group_without_a_description_goes_by_its_name() -> None:
    call = allreduce(0, 100, 0, **{"Process Group Description": "undefined",
                                   "Process Group Name": "3"})  # fmt: skip
    head = text_of([call])
    config = '"pg_config": [{"pg_name": "3", "ranks": [1, 0]}]'
    (kind,) = read(head.replace('"backend": "nccl"', f'"backend": "nccl", {config}')).calls
    assert (kind.group, kind.members) == ("3", (0, 1))


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("cuda_runtime", "cudaLaunchKernel", "starts kernels on GPUs and shows none"),
        ("cuda_runtime", "hipLaunchKernel", "starts kernels on GPUs and shows none"),
        ("xpu_runtime", "urEnqueueKernelLaunchWithArgsExp", "starts kernels on XPUs"),
        ("mtia_ccp_events", "dma_request", "computes on MTIA"),
        ("hpu_op", "gemm", "computes on HPU"),
    ],
)
def test_a_device_whose_work_is_not_there(tmp_path: Path, kind: str, name: str, words: str) -> None:
    """Its operations on the host are no computation."""
    events = [event("cpu_op", "aten::mm", 0, 100), event(kind, name, 10, 5)]
    assert words in refusal(tmp_path, text_of(events))


def test_a_packed_trace_that_was_cut(tmp_path: Path) -> None:
    """One rank's file is refused with its reason; the other is read."""
    write(tmp_path, text_of(steps()), text_of(steps(), 1))
    path = tmp_path / "rank0.pt.trace.json.gz"
    path.write_bytes(path.read_bytes()[:-200])
    source = read_source(tmp_path)
    assert "packed file is damaged" in source.refusals[0].reason
    assert [profile.profiled_ranks for profile in source.profiles] == [1]


def test_times_that_cannot_be_are_left_out_and_counted(tmp_path: Path) -> None:
    times = ((1_000_000, -5), (10**30, 5), (1_000_000, 10**25), (-1e300, 5))
    bad = [event("kernel", "gemm", begin, length) for begin, length in times]
    profile = one_of(tmp_path, text_of([*steps(), *bad], None))
    assert profile.metrics["computation"]["value"] == pytest.approx(4 * 600e-6)
    assert profile.notes["impossible_events"].startswith("4 events")


def test_a_rank_beyond_its_world() -> None:
    with pytest.raises(NoTraceError, match="rank 5 of 2 ranks"):
        read(text_of(steps(), 5, 2))


def test_without_the_profilers_steps_those_of_the_optimiser_count() -> None:
    """The windows between their ends; the first one's begin is not known. Windows in which our own
    ranks meet are none."""
    events = []
    for number in range(6):
        at = 1000 * number
        events += [event("cpu_op", "aten::mm", at, 400),
                   event("user_annotation", "Optimizer.step#SGD.step", at + 800, 100)]  # fmt: skip
    events.append(event("user_annotation", "scalesweep: ranks meet", 3950, 10))
    windows, count, kind = windows_of(read(text_of(events)))
    assert (kind, count) == (OPTIMIZER, 4)
    assert (windows[:, 1] - windows[:, 0]).tolist() == [1000.0] * 4
    other = event("user_annotation", "Optimizer.step#Adam.step", 500, 100)
    assert windows_of(read(text_of([*events, other])))[1] == 0  # two optimisers take turns


def test_a_pause_of_the_profiler_is_no_time_of_steps() -> None:
    events = [each for n in (0, 1, 10, 11)
              for each in step(1000 * n, n, event("kernel", "gemm", 1000 * n, 500))]  # fmt: skip
    account = account_of_rank(read(text_of(events)))
    assert account is not None and (account.window, account.steps) == (PROFILER, 4)
    assert account.window_s == pytest.approx(4e-3)
