"""Profiles of other tools that the acceptance tests read, changed."""

import json
import sqlite3
from pathlib import Path

from tests.conftest import ROOT

FOLDER = ROOT / "tests" / "acceptance" / "imports" / "profiles"


def database(path: Path, tool: str, *more: str) -> Path:
    """The recording of nsys or nvprof that the acceptance tests have, after ``more`` statements."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript((FOLDER / f"{tool}.sql").read_text())
    for statement in more:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def timeline(steps: int) -> str:
    """Horovod's timeline with its first step, and the last of 10 ms as often as it takes."""
    events = json.loads((FOLDER / "horovod.json").read_text())
    first = [event for event in events if event.get("ts", 0) < 20_000]
    last = [event for event in events if event.get("ts", 0) >= 30_000]
    later = [e | {"ts": e["ts"] + 10_000 * n} for n in range(-1, steps - 2) for e in last]
    return json.dumps(first + later, indent=0)
