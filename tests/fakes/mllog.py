"""Logs in MLPerf's format, with made-up numbers."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from scalesweep.analysis.profile import Profile
from scalesweep.importers.imported_run import ImportedRun, Refusal
from tests.conftest import ROOT
from tests.fakes.imported_runs import Read

T0 = 1_600_000_000_000  # ms
TRAINING, EPOCH = 100_500, 122_750
FILE = ROOT / "tests/acceptance/imports/logs/mlperf_cosmoflow.txt"
EVENTS = [json.loads(text[9:]) for text in FILE.read_text().splitlines()]
# Up to the first epoch, 10 s behind T0, and that epoch: its evaluation is within, then rest 2 s.
BEGIN = [event["key"] for event in EVENTS].index("epoch_start")
HEAD, ONE_EPOCH = EVENTS[:BEGIN], EVENTS[BEGIN : BEGIN + 5]


def line(key: str, ms: int, value: Any = None, **metadata: Any) -> str:
    """One event."""
    kinds = {"start": "INTERVAL_START", "stop": "INTERVAL_END"}
    content = {
        "namespace": "",
        "time_ms": ms,
        "event_type": kinds.get(key.rpartition("_")[2], "POINT_IN_TIME"),
        "key": key,
        "value": value,
        "metadata": {"file": "train.py", "lineno": 7, **metadata},
    }
    return f":::MLLOG {json.dumps(content)}\n"


def training(
    errors: Sequence[float] = (0.4, 0.2, 0.12),
    ms: int = T0,
    status: str | None = "success",
    **told: Any,
) -> list[str]:
    """The log of the acceptance tests with other epochs and values (None is left out), from ``ms``
    on; with ``status`` None it ends without run_stop."""
    events = [it | {"value": told.get(it["key"], it["value"])} for it in HEAD]
    events = [it for it in events if told.get(it["key"], "") is not None]
    new = told.keys() - {it["key"] for it in HEAD}
    events += [HEAD[-1] | {"key": key, "value": told[key]} for key in sorted(new)]
    for number, error in enumerate(errors):
        for it in ONE_EPOCH:
            value = error if it["key"] == "eval_error" else None
            later = {"time_ms": it["time_ms"] + number * EPOCH, "value": value}
            events.append(it | later | {"metadata": it["metadata"] | {"epoch_num": number}})
    lines = [f":::MLLOG {json.dumps(it | {'time_ms': it['time_ms'] + ms - T0})}\n" for it in events]
    if status is not None:
        lines.append(line("run_stop", ms + 10_030 + len(errors) * EPOCH, status=status))
    return lines


def run_time(epochs: int = 3) -> float:
    """Seconds from run_start to run_stop of ``training``."""
    return (5000 + epochs * EPOCH + 30) / 1000


def one(read: Read, lines: Iterable[str], ranks: int | None = 32) -> ImportedRun:
    (found,), refusals = read(lines, ranks=ranks)
    assert refusals == []
    return found


def why(read: Read, lines: Iterable[str]) -> Refusal:
    runs, (refusal,) = read(lines, ranks=32)
    assert runs == []
    return refusal


def values(run: ImportedRun | Profile) -> dict[str, float]:
    return {name: metric["value"] for name, metric in run.metrics.items()}


def swap(lines: list[str], old: str, new: str) -> list[str]:
    assert any(old in text for text in lines)
    return [text.replace(old, new) for text in lines]
