"""Profiled runs: which profiles there are, and where the run that is profiled lies.

A profiled run is one more run of a point. It costs time of its own, so it is never one of the
measured ones: its folder is ``<run_id>.<kind>``, and no table of times has it.

The kind ``noexchange`` is no profiler: the program trains as always, but each device by itself,
without the exchange of gradients. What a step takes less then is the exchange.

Standard library only, for the launcher.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

NONE = "none"
CPROFILE, HOROVOD_TIMELINE = "cprofile", "horovod_timeline"
TENSORFLOW, TORCH = "tensorflow", "torch"  # each framework's own profiler
NOEXCHANGE = "noexchange"
NSYS, TAU = "nsys", "tau"
KINDS = (CPROFILE, TENSORFLOW, TORCH, HOROVOD_TIMELINE, NSYS, TAU, NOEXCHANGE)
# What works with any program; the others are the business of our own ones' harness.
FOREIGN_KINDS = (HOROVOD_TIMELINE, NSYS, TAU)
# Kinds of programs of our own that run on a framework.
OF_FRAMEWORK = {TENSORFLOW: "tensorflow", HOROVOD_TIMELINE: "tensorflow", TORCH: "torch"}
UNSAID = "tensorflow"  # the framework of those that name none
# Profilers that are started in front of each rank's program, and what of them must be installed.
EXECUTABLES = {NSYS: ("nsys",), TAU: ("tau_exec", "pprof")}

LEFT_OUT = "left out"  # what such a program notes of the exchange (spans.exchange)
FOLDER = "profile"  # in the attempt's folder
TIMELINE = "horovod_timeline.json"
PPROF = "pprof.txt"  # what TAU's pprof prints of all ranks
_DATABASE = ".sqlite"  # of a rank that Nsight Systems has seen


def folder_name(run_id: str, kind: str) -> str:
    """Name of the folder of a run: its id, and for a profiled one the kind after it."""
    return run_id if kind == NONE else f"{run_id}.{kind}"


def split_name(name: str) -> tuple[str, str]:
    """Run id and kind of profile of a folder's name."""
    run_id, _, kind = name.partition(".")
    return run_id, kind or NONE


def environment(kind: str, work: Path) -> dict[str, str]:
    """Variables that make a program leave its profile in the attempt's folder ``work``."""
    if kind == NONE:
        return {}
    if kind == NOEXCHANGE:
        return {"SCALESWEEP_PROFILE": kind}
    folder = work.resolve() / FOLDER
    folder.mkdir()
    if kind == HOROVOD_TIMELINE:
        return {"HOROVOD_TIMELINE": str(folder / TIMELINE)}
    if kind in EXECUTABLES:
        return {}  # what starts the ranks' programs is told where to
    return {"SCALESWEEP_PROFILE": kind, "SCALESWEEP_PROFILE_FOLDER": str(folder)}


def wrapper(kind: str, python: str, script: Path) -> list[str]:
    """Words in front of each rank's program; ``script``: the launcher that starts profilers."""
    return [python, str(script), kind, f"{{out}}/{FOLDER}"] if kind in EXECUTABLES else []


def summary_words(kind: str, work: Path) -> list[str]:
    """The command that sums up what all ranks have left in the attempt's folder; empty: none.

    pprof reads the profiles in the folder that it is started in.
    """
    script = 'cd -- "$1" && exec pprof 2>pprof.log'
    return ["sh", "-c", script, "pprof", str(work.resolve() / FOLDER)] if kind == TAU else []


def lacks(kind: str, files: Sequence[str], notes: Any) -> str:
    """What a run of this kind should have left and has not; empty if it is whole.

    ``files`` of the profile, ``notes`` of the program (native.json).
    """
    if kind == NSYS and not any(name.endswith(_DATABASE) for name in files):
        return "nsys exported no rank's report; stdout.log and stderr.log have what it said"
    if kind == TAU and f"{FOLDER}/{PPROF}" not in files:
        return f"pprof printed nothing of the ranks' profiles ({FOLDER}/profile.*)"
    if kind != NOEXCHANGE:
        return "" if files else "the run wrote no profile"
    spans = notes.get("spans") if isinstance(notes, dict) else None
    if isinstance(spans, dict) and spans.get("exchange") == LEFT_OUT:
        return ""
    return "the program does not say that it left out the exchange"


def left_files(kind: str, work: Path) -> dict[str, Any]:
    """``profile`` of a record: the kind, and the files that are not empty, relative to ``work``."""
    folder = work / FOLDER
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return {"kind": kind, "files": [str(path.relative_to(work)) for path in files]}
