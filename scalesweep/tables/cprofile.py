"""What profiled runs have left: the functions that cProfile saw take longest, and the files."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.profilers import CPROFILE, FOLDER
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.record_reader import read_record

MAX_RUNS = 12
_TIMEOUT_S = 300
# Directories that say nothing about a function: where Python packages are, and our own checkout.
_BEFORE_PACKAGE = re.compile(
    r"^.*/(?:(?:site|dist)-packages|workflow/benchmarks|lib/python[\d.]+)/"
)
_RANK_FILE = re.compile(rf"{FOLDER}/rank(\d+)\.prof")


def profile_files(run_folder: Path) -> list[Path]:
    """Files of a profiled run, as its record names them; raises UserError if that is not whole."""
    record = read_record(run_folder / RECORD)
    attempt = run_folder / f"attempt-{record['attempt']}"
    try:
        files = [attempt / name for name in record["profile"]["files"]]
    except (KeyError, TypeError):
        raise UserError(f"{run_folder.name}: the record names no files of a profile") from None
    return [path for path in files if path.resolve().is_relative_to(attempt.resolve())]


def functions_table(
    experiment: PlanExperiment, runs: Path, unread: list[str] | None = None
) -> pd.DataFrame | None:
    """Per point that ran under cProfile its functions by falling time; None where none did.

    ``experiment`` is an entry of plan.json, ``runs`` the folder of the site's runs; ``unread``
    takes the ids of those whose profiles cannot be read. Times are seconds and means over the
    ranks: ``own_s`` spent in the function itself, ``total_s`` with all that it called (the one that
    the profile itself began with is the whole). ``share`` is own_s over the sum of all own times.
    A few dozen rows a point, of at most MAX_RUNS points.
    """
    profiled = [
        run
        for run in experiment["profiles"]
        if run["kind"] == CPROFILE and run["status"] == Status.DONE
    ]
    frames = []
    unread = [] if unread is None else unread
    for run in profiled[:MAX_RUNS]:
        try:
            files = profile_files(runs / run["run_id"])
        except (UserError, OSError):
            unread.append(run["run_id"])  # the record has been touched since the plan was made
            continue
        frame = _functions([path for path in files if _RANK_FILE.search(str(path))])
        if frame is None:
            unread.append(run["run_id"])
        else:
            # A parameter named like one of the columns is identified by the run's id alone.
            names = [name for name in experiment["axes"] if name not in frame]
            point = {name: run["point"][name] for name in names}
            for position, (name, value) in enumerate({"run_id": run["run_id"], **point}.items()):
                frame.insert(position, name, [value] * len(frame))
            frames.append(frame)
    return pd.concat(frames, ignore_index=True) if frames else None


def _functions(files: Sequence[Path]) -> pd.DataFrame | None:
    """Functions of one run by falling own time, from the profiles of its ranks."""
    profile = _read(files)
    if not profile["ranks"]:
        return None
    top = profile["functions"]
    values = np.array([function[3:] for function in top], np.float64).reshape(-1, 3)
    whole = profile["whole"]
    return pd.DataFrame(
        {
            "profiled_ranks": profile["ranks"],
            "function": [name for _, _, name, *_ in top],
            "place": [_place(file, line) for file, line, *_ in top],
            "calls": values[:, 0] / profile["ranks"],
            "own_s": values[:, 1] / profile["ranks"],
            "total_s": values[:, 2] / profile["ranks"],
            "share": values[:, 1] / whole if whole > 0 else np.nan,
        }
    )


def _read(files: Sequence[Path]) -> dict[str, Any]:
    """What files of cProfile hold; those that are not whole are left out."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("_cprofile_reader.py"))]
    names = "\0".join(map(str, files)).encode(errors="surrogateescape")
    try:
        done = subprocess.run(
            command, input=names, capture_output=True, timeout=_TIMEOUT_S, check=True
        )
        return dict(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return {"ranks": 0}


def _place(file: str, line: int) -> str:
    """``horovod/tensorflow/mpi_ops.py:120``; empty for what is built in."""
    return "" if file.startswith("~") else f"{_BEFORE_PACKAGE.sub('', file)}:{line}"
