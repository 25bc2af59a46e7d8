"""The doctor's probe of one node: facts first, then the time whenever it is asked for.

    python -I -S node_probe.py --folder DIR [--sources NAMES --sysfs ROOT]

Prints ``@doctor {...}``, then one more such line for each line of its input, until that ends.
Standard library only.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from scalesweep.compute.doctor.order import HERE
from scalesweep.compute.doctor.programs import MARK
from scalesweep.compute.power.domains import host_name
from scalesweep.compute.power.sources import find, why_nothing

# Small files that are written, renamed, looked at and removed, as for the files of a run.
FILES = 20
_KIB = b"\0" * 4096


def facts_of(folder: Path, sources: list[str] | None, sysfs: str) -> dict[str, Any]:
    """What is found here; a time is in seconds, and what cannot be told is an error in words."""
    facts: dict[str, Any] = {"host": host_name(), "python": sys.version.split()[0]}
    facts["gpus"] = _gpus()
    facts["load"] = [os.getloadavg()[0], len(os.sched_getaffinity(0))]
    try:
        facts["token"] = (folder / HERE).read_text()
        facts["files"] = file_times(folder)
    except OSError as error:
        facts["folder_error"] = f"{error.filename or folder}: {error.strerror}"
    if sources is not None:
        facts["power"] = _power(sources, sysfs)
    return facts


def file_times(folder: Path) -> dict[str, float]:
    """Median and longest time of writing a small file for good, renaming and removing it."""
    times = []
    path = folder / f"{host_name()}.{os.getpid()}"
    for _ in range(FILES):
        begin = time.perf_counter()
        with path.open("wb") as file:
            file.write(_KIB)
            file.flush()
            os.fsync(file.fileno())
        renamed = path.replace(path.with_suffix(".renamed"))
        renamed.stat()
        renamed.unlink()
        times.append(time.perf_counter() - begin)
    return {"median": statistics.median(times), "longest": max(times)}


def _gpus() -> list[str] | str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    words = [program, "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"nvidia-smi: {error}"
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        return f"nvidia-smi: {said[0]}"
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _power(sources: list[str], sysfs: str) -> dict[str, Any]:
    """Names of the domains that gave a value, and why there is none."""
    meters, refused = find(sysfs, sources, 1.0)
    names: dict[str, None] = {}
    for meter in meters:
        with contextlib.suppress(OSError, ValueError):
            for reading in (*meter.sample(), *meter.close()):
                names[reading.domain] = None
        refused |= {name: why for name, (_, why) in meter.lost.items()}
    missing = "" if names else why_nothing(sources, refused, host_name())
    return {"domains": list(names), "missing": missing}


def _say(facts: dict[str, Any]) -> None:
    print(f"{MARK}{json.dumps(facts)}", flush=True)


def main() -> None:
    """Say what is here; answer with the time until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sources")
    parser.add_argument("--sysfs", default="/sys")
    args = parser.parse_args()
    sources = args.sources.split(",") if args.sources else None
    _say(facts_of(args.folder, sources, args.sysfs))
    for line in sys.stdin:
        _say({"host": host_name(), "asked": line.strip(), "time": time.time()})


if __name__ == "__main__":
    main()
