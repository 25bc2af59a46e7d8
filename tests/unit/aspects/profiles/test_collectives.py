"""Tables of the exchange in traces, and what the report says of late ranks and of stamps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.kineto_lateness import latest_of
from scalesweep.aspects.profiles.collectives import (
    CollectiveTime,
    RankLateness,
    collective_rows,
)
from scalesweep.aspects.profiles.late_findings import late_ranks
from scalesweep.aspects.profiles.trace import trace_rows
from scalesweep.aspects.profiles.trace_stamps import TraceBeside
from scalesweep.core.record import write_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.profiles.detect import read_source
from scalesweep.report.profiles_section import profiles_section
from scalesweep.table.declared import frame_of
from tests.fakes import torch_trace
from tests.fakes.plan import whole_plan
from tests.fakes.records import make_record
from tests.fakes.table_inputs import of_files
from tests.unit.aspects.profiles.test_trace import profiled
from tests.unit.importers.test_kineto import steps, text_of, write


def experiment(profiles: list[dict[str, Any]], runs: list[dict[str, Any]]) -> Any:
    plan = whole_plan({"experiments": [{"name": "e", "axes": ["ranks"], "runs": runs, "fixed": {},
                                        "profiles": profiles}]})  # fmt: skip
    return plan["experiments"][0]


def results_of(entry: Any, *rows: list[Any]) -> ExperimentResults:
    frames = ((of_kind[0].TABLE, frame_of(of_kind)) for of_kind in rows)
    return ExperimentResults(entry, {name: each for name, each in frames if each is not None})


def imported(tmp_path: Path, late_us: float) -> tuple[Any, list[Any]]:
    """An imported recording of 60 steps of two ranks, of which one is late."""
    texts = [text_of(steps(count=60)), text_of(steps(late_us, 5e6, count=60), 1)]
    (profile,) = read_source(write(tmp_path / "source", *texts)).profiles
    folder = tmp_path / "imported" / "p-r2-00"
    folder.mkdir(parents=True)
    write_record(folder, {**make_record("p-r2-00", attempt=1), "notes": dict(profile.notes)}, None)
    run = {"run_id": "p-r2-00", "repeat": 0, "point": {"ranks": 2}, "status": "done"}
    entry = experiment([], [run])
    return entry, list(collective_rows(of_files(entry, folder.parent, [], ["p-r2-00"])))


def test_imported_traces_fill_the_tables(tmp_path: Path) -> None:
    entry, rows = imported(tmp_path, 150)
    calls = [row for row in rows if isinstance(row, CollectiveTime)]
    assert [(row.rank, row.calls, row.bytes, row.waiting) for row in calls] == [
        (0, 1.0, 4_000_000.0, False), (1, 1.0, 4_000_000.0, False),
    ]  # fmt: skip
    assert [row.exposed_ms for row in calls] == pytest.approx([0.2, 0.15])
    assert calls[0].bus_bandwidth == pytest.approx(4e6 / 150e-6)
    late = [row for row in rows if isinstance(row, RankLateness)]
    assert [(row.latest, row.clock_ahead_ms) for row in late] == [
        (False, 0.0), (True, pytest.approx(5000)),
    ]  # fmt: skip
    results = results_of(entry, calls, late)
    (said,) = late_ranks(results)
    assert said.level == "note" and "rank 1 begins the collectives of group default_pg" in said.text
    shown = profiles_section(results, tmp_path, str)
    assert shown["lateness"][0]["rows"][0]["rank"] == "1 (late throughout)"
    assert shown["collectives"][0]["rows"][0]["exposed"] == "0.175 (0.150 to 0.200)"


def test_lateness_that_is_no_part_of_a_step_is_no_sentence(tmp_path: Path) -> None:
    entry, rows = imported(tmp_path, 5)
    late = [row for row in rows if isinstance(row, RankLateness)]
    assert late[1].latest and late[1].late_median_ms == pytest.approx(5e-3)
    assert late_ranks(results_of(entry, late)) == []


def test_who_is_late_now_and_then_is_not_named() -> None:
    rng = np.random.default_rng(5)
    step = np.repeat(np.arange(64), 3)

    def named(own: np.ndarray) -> int | None:
        late = np.repeat(own, 3, axis=0)
        return latest_of(late - late.min(axis=1, keepdims=True), step)

    noise = rng.normal(0, 1, (64, 4))
    assert named(noise) is None
    slow = np.array([0.0, 0.0, 6.0, 0.0])
    assert named(noise + slow) == 2
    half = noise + np.where(np.arange(64)[:, None] < 40, slow, 0)
    assert named(half) is None  # not throughout
    few = np.repeat(noise[:39] + slow, 3, axis=0)
    assert latest_of(few, step[: len(few)]) is None


@pytest.mark.parametrize("exchange_ms", [2.0, 3.0])
def test_a_trace_beside_its_stamps(tmp_path: Path, exchange_ms: float) -> None:
    """Steps of 10 ms: 5 of operations, 2 of Gloo that they do not hide, 3 of input and nothing."""
    lengths = np.array([10.0, 10.1, 9.9, 10.2, 9.8, 10.0])
    events, at = [], 0.0
    for length in [10.0, *lengths.tolist()]:  # a step ends at its end
        at += length
        for each in torch_trace.on_cpu()[1:12]:
            events.append({**each, "ts": each["ts"] + 1e3 * (at - 10)})
    run = profiled(tmp_path, "e-r1-00.torch", [torch_trace.text(events)])
    shape = np.ones((6, 1))
    np.savez(
        tmp_path / "samples.npz",
        **{
            "step_times": lengths[:, None] / 1e3,
            "span_input": 1e-3 * shape,
            "span_compute": (lengths[:, None] - 1 - exchange_ms) / 1e3,
            "span_communication": exchange_ms * 1e-3 * shape,
        },
    )
    record = {**make_record("e-r1-00", attempt=1), "point": {"ranks": 1},
              "profile": {"kind": "torch", "files": ["profile/rank0.json.gz"]}}  # fmt: skip
    write_record(tmp_path / "e-r1-00.torch", record, tmp_path / "samples.npz")
    rows = [row for row in trace_rows(of_files(experiment([run], []), tmp_path, []))
            if isinstance(row, TraceBeside)]  # fmt: skip
    step, computation, exchange = rows
    assert step.agrees and step.trace_ms == pytest.approx(10, rel=1e-3) and step.steps == 6
    assert not computation.agrees
    assert computation.why.endswith(
        "with them they agree" if exchange_ms == 2.0 else "with them the trace has 7.05 ms"
    )
    assert exchange.agrees == (exchange_ms == 2.0)
    assert exchange.why == "" or "operations run while the rank waits" in exchange.why
    results = results_of(experiment([run], []), rows)
    (shown,) = profiles_section(results, tmp_path, str)["trace_stamps"]
    assert shown["rows"][0]["why"] == "agree" and shown["slower"] == ""
