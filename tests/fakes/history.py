"""Made-up sessions of a history, without campaigns."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.history.store import VERDICT, append, frame_of
from scalesweep.judge.change import REGRESSION
from scalesweep.judge.metrics import METRIC

FACTS = {"CPU": "CPU A", "tensorflow": "2.18.1", "horovod": "0.28.1", "HOROVOD_CYCLE_TIME": "1"}
DAY_0 = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class FakeSession:
    """A session of the day ``day``: repeats of each point (by label) of ``metric``. ``ledger``: ms
    per step by term, of all points; ``parts`` too. ``ranks N`` has N workers."""

    day: int
    points: Mapping[str, Sequence[float]]
    facts: Mapping[str, str] = field(default_factory=lambda: FACTS)
    site: str = "here"
    tags: str = ""
    scaling: str = "weak"
    device: str = "cpu"
    ledger: Mapping[str, float] = field(default_factory=dict)
    parts: Sequence[Mapping[str, float]] = ()  # seconds by part, of each repeat


def commit_of(day: int) -> str:
    """The commit of a day: 40 digits that begin with its number."""
    return f"{day:04d}".ljust(40, "c")


def make_session(fake: FakeSession) -> pd.DataFrame:
    """Rows of a history, which ``store.append`` takes."""
    rows: list[dict[str, Any]] = []
    group = f"{fake.site}-{fake.day}-{fake.device}-{fake.scaling}"
    for number, (label, values) in enumerate(fake.points.items()):
        workers = int(label.split()[-1]) if label.startswith("ranks ") else 1
        for repeat, value in enumerate(values):
            started = DAY_0 + timedelta(days=fake.day, minutes=number, seconds=repeat)
            run_id = f"b-r1-{number:08d}{repeat:04d}"
            head = {
                "group": group, "campaign": "nightly", "site": fake.site, "source": "measured",
                "results": f"/scratch/results/{fake.day}", "experiment": "e", "benchmark": "b",
                "version": 1, "scaling": fake.scaling, "device": fake.device,
                "identity": json.dumps({"p": label}), "point": json.dumps({"ranks": 1, "p": label}),
                "label": label, "workers": workers, "run_id": run_id, "repeat": repeat,
                "started": started, "ended": started + timedelta(seconds=1), "read_from": "",
                "commit": commit_of(fake.day), "dirty": False, "better": "lower",
                "commit_time": DAY_0 + timedelta(days=fake.day),
                "subject": f"Change {fake.day}", "tags": fake.tags, "repository": "/src/program",
                "program": "", "hosts": "node1", "launcher": "mpirun",
                "facts": json.dumps(dict(fake.facts)),
            }  # fmt: skip
            parts = fake.parts[repeat] if fake.parts else {}
            for kind, metric, phase, number_of, unit in (
                (METRIC, "step_time", "run", value, "s"),
                *(("term", term, "steps", ms, "ms") for term, ms in fake.ledger.items()),
                *(("part", part, "run", seconds, "s") for part, seconds in parts.items()),
            ):
                judged = kind == METRIC
                rows.append({
                    **head, "kind": kind, "metric": metric, "phase": phase, "value": number_of,
                    "unit": unit, "main": judged, "judged": judged,
                })  # fmt: skip
    return frame_of(rows)


def make_history(folder: Path, sessions: int = 14) -> None:
    """Write a history with a verdict of every kind: weak scaling on a CPU, strong scaling on a GPU.

    Two ranks get slower by 10 % in session 10 with nothing else; eight get faster with another
    Horovod in session 8; four have a single spike.
    """
    shutil.copytree(_made(sessions).name, folder, dirs_exist_ok=True)


@cache
def _made(sessions: int) -> "tempfile.TemporaryDirectory[str]":
    """It, made once: half a second each time is much for tests that take less."""
    folder = tempfile.TemporaryDirectory(prefix="history-")
    rng = np.random.default_rng(1)
    fakes = []
    for day in range(sessions):
        facts = {**FACTS, "horovod": "0.28.2" if day >= 8 else "0.28.1"}

        def around(level: float, noise: float = 0.005) -> list[float]:
            return [level * float(np.exp(rng.normal(0, noise))) for _ in range(3)]

        slow = 1.1 if day >= 10 else 1.0
        points = {
            "ranks 1": around(1.0),
            "ranks 2": around(1.05 * slow),
            "ranks 4": around(1.2 * (1.4 if day == 5 else 1.0)),
            "ranks 8": around(1.4 * (0.9 if day >= 8 else 1.0)),
            "ranks 16": around(1.5, 0.1),
        }
        ledger = {"Computation": 900 * slow, "Transfer": 50.0, "One step": 950 * slow}
        tags = "v1.0" if day == 3 else ""
        fakes.append(FakeSession(day, points, facts=facts, ledger=ledger, tags=tags))
        fakes.append(
            FakeSession(day, {"ranks 1": around(0.1)}, device="gpu", scaling="strong", site="gpus")
        )
    fakes.append(FakeSession(0, {"ranks 1": [1.0, 1.1]}, site="new", device=""))
    append(Path(folder.name), pd.concat(map(make_session, fakes)))
    return folder


def alternate_of(
    base: int, new: int, verdict: str = REGRESSION, ratio: float = 1.1, label: str = "ranks 2"
) -> pd.DataFrame:
    """The commits of two days measured alternately, at a point of ``make_history``."""
    row = {
        "started": "2026-02-01T00:00:00Z", "base": commit_of(base), "new": commit_of(new),
        "subject": f"Change {new}", "label": f"e: {label}", "site": "here", "source": "measured",
        "benchmark": "b", "version": 1, "device": "cpu", "identity": json.dumps({"p": label}),
        "kind": METRIC, "metric": "step_time", "phase": "run", "verdict": verdict, "ratio": ratio,
        "low": ratio - 0.02, "high": ratio + 0.02, "p": 0.001, "pairs": 5, "first_bad": False,
    }  # fmt: skip
    return pd.DataFrame([row]).reindex(columns=VERDICT)
