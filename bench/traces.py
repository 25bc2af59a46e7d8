"""Traces of PyTorch's profiler: our numbers beside HolisticTraceAnalysis's, and what reading costs.

HolisticTraceAnalysis is installed into an environment that this makes for itself (``--venv`` keeps
one); where it cannot be, the column says so. Traces: two made ranks of GPUs of which each part is
known, with whole microseconds and with nanoseconds; two ranks of PyTorch over Gloo, where `make
torch` was called; and those in the folder that TRACES names. A row per rank and number: what was
planted, ours, HTA's, and why they differ.

    python -m bench.traces [--json FILE] [--venv FOLDER] [--megabytes N]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, line, write_json
from bench.lib.planted_traces import (
    COMPUTATION,
    COPIES,
    EXPOSED,
    OVERLAPPED,
    STEP,
    write_gloo,
    write_planted,
)
from bench.lib.projects import ROOT
from bench.torch_loop import TORCH
from scalesweep.analysis.kineto_stream import NoTraceError, read_stream
from scalesweep.analysis.trace_account import TraceAccount, account_of_rank
from scalesweep.compute.log_lines import open_packed

HTA = "HolisticTraceAnalysis==0.5.0"
STEPS = 6
MOST_MIB, LEAST_RATE = 400.0, 60.0
_SAME = 1e-3
_UNLAUNCHED = "HTA leaves out kernels whose launch the trace does not show"
WHY = {
    "window": "HTA: from the first kernel to the end of the last one; ours: the profiler's steps",
    "idle": f"as the window; and {_UNLAUNCHED}",
    "computation": _UNLAUNCHED,
    "not computation": _UNLAUNCHED,
    "overlap": _UNLAUNCHED,
}


def environment(folder: Path) -> Path | str:
    """A Python that has HTA, or why there is none."""
    python = folder / "bin" / "python"
    if not python.exists():
        try:
            venv.create(folder, with_pip=True)
            install = [str(python), "-m", "pip", "install", "-q", HTA]
            subprocess.run(install, check=True, capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.SubprocessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()
            return f"{HTA} cannot be installed: {said[-1] if said else error}"[:200]
    return python


def ours(file: Path) -> TraceAccount | str:
    """The account of a file, or why there is none."""
    try:
        with open_packed(file) as stream:
            trace = read_stream(stream)
    except (NoTraceError, OSError) as error:
        return str(error)
    if trace.unseen and not trace.on_gpu:
        return trace.unseen
    return account_of_rank(trace) or "shows nothing"


def our_numbers(account: TraceAccount) -> dict[str, float]:
    """In microseconds, and the overlap in percent."""
    numbers = {
        "window": account.window_s,
        "computation": account.computation_s,
        "not computation": account.exposed_s + account.copies_s,
        "idle": account.idle_s,
    }
    numbers = {name: 1e6 * value for name, value in numbers.items()}
    if account.communication_s > 0:
        numbers["overlap"] = 100 * account.overlapped_s / account.communication_s
    return numbers


def hta_numbers(said: Any, rank: int) -> dict[str, float] | str:
    """The same of HTA's tables."""
    if isinstance(said, str):
        return said
    if isinstance(said["temporal"], str):
        return str(said["temporal"])
    row = next((each for each in said["temporal"] if each["rank"] == rank), None)
    if row is None:
        return "has no such rank"
    numbers = {
        "window": row["kernel_time(us)"],
        "computation": row["compute_time(us)"],
        "not computation": row["non_compute_time(us)"],
        "idle": row["idle_time(us)"],
    }
    overlap = said["overlap"] if isinstance(said["overlap"], list) else []
    share = next((each["comp_comm_overlap_pctg"] for each in overlap if each["rank"] == rank), None)
    if share is not None:
        numbers["overlap"] = share
    return numbers


def planted(late_ms: float) -> dict[str, float]:
    """What was planted in a rank that comes so late, as ``our_numbers``."""
    overlapped = max(OVERLAPPED - late_ms, 0.0)
    exposed = EXPOSED + OVERLAPPED - late_ms - overlapped
    parts = {
        "window": STEP,
        "computation": COMPUTATION,
        "not computation": exposed + COPIES,
        "idle": STEP - COMPUTATION - exposed - COPIES,
    }
    numbers = {name: 1e3 * STEPS * value for name, value in parts.items()}
    return {**numbers, "overlap": 100 * overlapped / (overlapped + exposed)}


def sources(folder: Path) -> Iterator[tuple[str, Path, dict[int, dict[str, float]]]]:
    """Each folder of traces with its name, and what was planted in them by rank."""
    for name, kernels in (("whole microseconds", 60), ("nanoseconds", 700)):
        write_planted(folder / name, STEPS, kernels, 0.5)
        yield name, folder / name, {0: planted(0.0), 1: planted(0.5)}
    if TORCH.exists():
        write_gloo(folder / "gloo", TORCH)
        yield "Gloo, two ranks of PyTorch", folder / "gloo", {}
    else:
        print("PyTorch is missing (make torch): no traces over Gloo")
    if named := os.environ.get("TRACES"):
        for place, file in enumerate(sorted(Path(named).rglob("*.json*"))):
            alone = folder / f"real{place}"
            alone.mkdir()
            shutil.copy(file, alone / file.name.replace(".gz.json", ".json"))
            yield str(file.relative_to(named)), alone, {}


def compare(python: Path | str, folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the comparison, and the figures that have a bound."""
    known = list(sources(folder))
    said: dict[str, Any] = {}
    if isinstance(python, Path):
        result = folder / "hta.json"
        script = ROOT / "bench/lib/hta_numbers.py"
        variables = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"}
        words = [str(python), str(script), str(result), *(str(path) for _, path, _ in known)]
        subprocess.run(words, check=True, env=variables, stdout=subprocess.DEVNULL)
        said = json.loads(result.read_text())
    rows = []
    worst = {"planted": 0.0, "HTA": 0.0}
    for name, path, truth in known:
        for rank, file in enumerate(sorted(path.glob("*.json*"))):
            account = ours(file)
            theirs: dict[str, float] | str = str(python)
            if said:
                theirs = hta_numbers(said[str(path)], _rank(said[str(path)], rank))
            if isinstance(account, str):
                has = theirs if isinstance(theirs, str) else "has numbers"
                rows.append({"trace": name, "rank": rank, "number": "all", "ours": account,
                             "HTA": has})  # fmt: skip
                continue
            for number, value in our_numbers(account).items():
                of_hta = theirs if isinstance(theirs, str) else theirs.get(number)
                true = truth.get(rank, {}).get(number)
                apart = of_hta / value - 1 if isinstance(of_hta, int | float) and value else None
                rows.append({
                    "trace": name, "rank": rank, "number": number, "planted": true, "ours": value,
                    "HTA": of_hta, "difference": apart,
                    "why": WHY[number] if apart is not None and abs(apart) > _SAME else "",
                })  # fmt: skip
                if true:
                    worst["planted"] = max(worst["planted"], abs(value / true - 1))
                if true and apart is not None and number in ("computation", "overlap"):
                    worst["HTA"] = max(worst["HTA"], abs(apart))
            rows += _idle_by_cause(name, rank, said.get(str(path)))
    figures = [figure("made traces: largest difference of ours to what was planted",
                      100 * worst["planted"], "%", 0.1)]  # fmt: skip
    if said:
        both = "made traces: largest difference of computation and overlap, HTA's and ours"
        figures.append(figure(both, 100 * worst["HTA"], "%", 0.1))
    return rows, figures


def _idle_by_cause(name: str, place: int, said: Any) -> list[dict[str, Any]]:
    """Rows of HTA's idle time of each stream by cause, which ours does not define."""
    rank, idle = _rank(said, place), said.get("idle") if isinstance(said, dict) else None
    why = "HTA: of each stream by cause; ours: when nothing runs on the rank, without a cause"
    head = {"trace": name, "rank": place, "ours": None, "why": why}
    return [
        {**head, "number": f"{each['idle_category']}, stream {each['stream']}",
         "HTA": each["idle_time"]}
        for each in (idle if isinstance(idle, list) else ())
        if each["rank"] == rank and each["idle_time"]
    ]  # fmt: skip


def _rank(said: Any, place: int) -> int:
    """The rank that HTA has at a place of its table."""
    rows = said.get("temporal") if isinstance(said, dict) else None
    return int(rows[place]["rank"]) if isinstance(rows, list) and place < len(rows) else place


def reading(folder: Path, megabytes: int) -> list[dict[str, Any]]:
    """What it costs to read a trace of so many megabytes: memory of a process, and its rate."""
    write_planted(folder / "large", max(int(megabytes * 1e6 / 289_000), 1), 600, 0.0)
    file = folder / "large" / "rank0.json"
    size = file.stat().st_size
    code = (
        "import resource,sys,time;from bench.traces import ours;from pathlib import Path;"
        "begin=time.process_time();ours(Path(sys.argv[1]));"
        "print(time.process_time()-begin,resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    words = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(words, check=True, cwd=ROOT, capture_output=True, text=True)
    seconds, kibibytes = map(float, done.stdout.split())
    name = f"reading {size / 1e6:.0f} MB: memory of the process"
    rate = size / 1e6 / seconds
    return [
        figure(name, kibibytes / 1024, "MiB", MOST_MIB),
        figure("reading, MB of text in a second of CPU", rate, "", LEAST_RATE, "higher"),
    ]


def text_of(value: Any) -> str:
    """A cell of the table."""
    return f"{value:12,.1f}" if isinstance(value, int | float) else f"{value or '-':>12}"


def main() -> int:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--venv", type=Path, help="keep HTA's environment here")
    parser.add_argument("--megabytes", type=int, default=300, help="of the trace that is read")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, figures = compare(environment(arguments.venv or folder / "venv"), folder)
        figures += reading(folder, arguments.megabytes)
    for row in rows:
        cells = [text_of(row.get(each)) for each in ("planted", "ours", "HTA")]
        apart = row.get("difference")
        cells += ["" if apart is None else f"{100 * apart:+8.3f} %", row.get("why", "")]
        print(f"{row['trace'][:40]:40} {row['rank']:2} {row['number']:22}", *cells)
    for each in figures:
        print(line(each))
    write_json({"figures": figures, "rows": rows}, arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
