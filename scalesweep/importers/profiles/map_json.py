"""Profiles of Linaro MAP (Arm's, Allinea's before) as ``map --export=FILE.json FILE.map`` writes
them.

Read are the activities of the main thread: the share of every sampling window that the processes
spent computing, in MPI, in I/O and so on (Forge user guide, "JSON format":
docs.linaroforge.com, forge/map/exporting_profiler_data_json_format; arm-hpc/allinea_json_analysis
reads the same keys). The export has no functions.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scalesweep.analysis.profile import NOT_LISTED, Function, Profile
from scalesweep.core.formatting import finite
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import ReadResult, metric, read_each, text_of

TOOL = "map"
_SIGNS = ('"info"', '"number_of_processes"', '"runtime"')
_PERCENT = 100.0
_LEFT = 0.01  # of a window: what rounded shares may lack or have too much


def recognise(head: str) -> bool:
    """Whether a file begins as an export of MAP does."""
    return head.lstrip().startswith("{") and all(sign in head for sign in _SIGNS)


def read(files: Sequence[Path], ranks: int | None = None) -> ReadResult:
    """A profile of each file; ``ranks`` must agree with what it says, if they are given."""
    return read_each(files, lambda file: [_profile(file, ranks)])


def _profile(file: Path, ranks: int | None) -> Profile:
    """The activities of a file in seconds of a process. Raises ImportRefusedError."""
    info, activity = _content(text_of(file))
    count = _whole(info.get("number_of_processes"), "info.number_of_processes")
    runtime = _whole(info.get("runtime"), "info.runtime") / 1000
    if ranks and ranks != count:
        raise ImportRefusedError(f"has {count} processes, but --ranks {ranks}")
    shares = _shares(activity)
    functions = [
        Function(name, None, "cpu", None, share * runtime, None)
        for name, share in shares.items()
        if share > 0
    ]
    rest = 1 - sum(shares.values())
    notes: dict[str, object] = {"times": "shares of the main threads' samples times the run time"}
    if rest > _LEFT:
        functions.append(Function(NOT_LISTED, None, "cpu", None, rest * runtime, None))
        notes["not_listed"] = f"{100 * rest:.1f} % of the time is in no activity"
    mpi = sum(share for name, share in shares.items() if "_mpi" in name)
    return Profile(
        tool=TOOL,
        file=file,
        ranks=count,
        elapsed_s=runtime,
        functions=tuple(functions),
        metrics={
            "runtime": metric(runtime, "s", "lower"),
            "mpi_time": metric(mpi * runtime, "s", "lower", "rank"),
        },
        notes=notes,
    )


def _content(text: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """``info``, and the activities of the main thread."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ImportRefusedError("not JSON: damaged") from None
    try:
        info, activity = content["info"], content["samples"]["activity"]["main_thread"]
    except (KeyError, TypeError):
        raise ImportRefusedError("no info or samples.activity.main_thread: not whole?") from None
    if not isinstance(info, dict) or not isinstance(activity, dict):
        raise ImportRefusedError("info and samples.activity.main_thread must be objects")
    return info, activity


def _whole(value: Any, where: str) -> int:
    """A positive whole number, which some versions write as text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, bool) or not finite(value) or not 0 < value < 1e15 or value % 1:
        raise ImportRefusedError(f"{where} is {str(value)[:30]!a}, not a positive whole number")
    return int(value)


def _shares(activity: Mapping[str, Any]) -> dict[str, float]:
    """The mean share of each activity over the windows, which are equally long."""
    series: dict[str, list[float]] = {}
    for name, values in activity.items():
        if not isinstance(values, list) or not all(finite(value) for value in values):
            raise ImportRefusedError(f"activity {name[:40]!a} is not a list of numbers")
        if any(value < 0 for value in values):
            raise ImportRefusedError(f"activity {name[:40]!a} has a share below 0")
        series[name] = values
    lengths = {len(values) for values in series.values()}
    if len(lengths) != 1 or not min(lengths):
        raise ImportRefusedError("the activities have no samples, or not equally many")
    sums = [math.fsum(window) for window in zip(*series.values(), strict=True)]
    whole = _PERCENT if max(sums) > 1 + _LEFT else 1.0
    if max(sums) > whole * (1 + _LEFT):
        raise ImportRefusedError(
            f"the activities of a window add up to {max(sums):.4g}, not 1 or 100 %: damaged"
        )
    return {name: math.fsum(values) / len(values) / whole for name, values in series.items()}
