"""Profiles of other tools, made up: small, whole, and with numbers that a test can work out."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

# What the acceptance tests read.
FOLDER = ROOT / "tests" / "acceptance" / "imports" / "profiles"
# Useful and MPI seconds of four ranks, of ten elapsed.
USEFUL = (8.0, 7.0, 6.0, 7.5)
ELAPSED = 10.0


def talp(
    useful: Sequence[float] = USEFUL, region: str = "Global", stated: float | None = None
) -> str:
    """TALP's JSON of pure MPI, elapsed ``ELAPSED``; ``stated`` instead of the right efficiency."""
    mean, top = sum(useful) / len(useful), max(useful)
    efficiency = mean / ELAPSED if stated is None else stated
    metrics = {
        "numCpus": len(useful), "numMpiRanks": len(useful), "numNodes": 1,
        "elapsedTime": int(ELAPSED * 1e9), "usefulTime": int(sum(useful) * 1e9),
        "mpiTime": int(sum(ELAPSED - u for u in useful) * 1e9),
        "parallelEfficiency": round(efficiency, 2),
        "mpiCommunicationEfficiency": round(top / ELAPSED, 2),
        "mpiLoadBalance": round(mean / top, 2), "ompParallelEfficiency": 0.0,
    }  # fmt: skip
    processes = [
        {"rank": rank, "pid": 100 + rank, "numCpus": 1, "elapsedTime": int(ELAPSED * 1e9),
         "usefulTime": int(u * 1e9), "mpiTime": int((ELAPSED - u) * 1e9)}
        for rank, u in enumerate(useful)
    ]  # fmt: skip
    content = {
        "dlbVersion": "3.5.0", "timestamp": "2026-01-01T00:00:00",
        "resources": {"numCpus": len(useful), "numNodes": 1, "numMpiRanks": len(useful)},
        "Application": {region: metrics}, "Process": {region: processes},
    }  # fmt: skip
    return json.dumps(content, indent=2) + "\n"


def mpitrace(rank: int, useful: Sequence[float] = USEFUL, table: bool = False) -> str:
    """mpitrace's text of one rank; with ``table`` that of all ranks at its end."""
    communication = ELAPSED - useful[rank]
    calls = {"MPI_Bcast": 0.5, "MPI_Allreduce": communication - 0.5}
    rule = "-" * 71 + "\n"
    text = (
        f"Data for MPI rank {rank} of {len(useful)}:\n"
        f"Times from MPI_Init() to MPI_Finalize().\n{rule}"
        f"MPI Routine                        #calls     avg. bytes      time(sec)\n{rule}"
    )
    for name, seconds in calls.items():
        text += f"{name:<28}{1000:>12}{1024.0:>15.1f}{seconds:>15.3f}\n"
    text += (
        f"{rule}total communication time = {communication:.3f} seconds.\n"
        f"total elapsed time       = {ELAPSED:.3f} seconds.\n"
        f"user cpu time            = 9.000 seconds.\n\n{rule}"
        "Message size distributions:\n\n"
        "MPI_Allreduce             #calls    avg. bytes      time(sec)\n"
        f"{900:>32}{8.0:>15.1f}{0.09:>15.3f}\n"
        f"{100:>32}{4194304.0:>15.1f}{0.5:>15.3f}\n\n"
    )
    if table:
        text += (
            f"{rule}\nMPI timing summary for all ranks:\n"
            "taskid       hostname     comm(s)  elapsed(s)     user(s)   system(s)    size(MB)\n"
        )
        for task, u in enumerate(useful):
            text += f"{task:>6}         nid001{ELAPSED - u:>12.2f}{ELAPSED:>12.2f}        9.00\n"
    return text


TAU_HEAD = (
    "-" * 87 + "\n"
    "%Time    Exclusive    Inclusive       #Call      #Subrs  Inclusive Name\n"
    "              msec   total msec                          usec/call \n" + "-" * 87 + "\n"
)


def tau_rows(useful: float) -> str:
    """Rows of a section: 10 s in all, ``useful`` of them outside of MPI, in two functions."""
    mpi = ELAPSED - useful
    rows = [
        ("100.0", "1,000", "10,000", "1", "2", "10000000", ".TAU application"),
        (f"{10 * (useful - 1):.1f}", f"{1000 * (useful - 1):,.0f}", f"{1000 * (useful - 1):,.0f}",
         "10", "0", "100000", "solve_dense"),
        (f"{10 * mpi:.1f}", f"{1000 * mpi:,.0f}", f"{1000 * mpi:,.0f}", "5", "0", "1000",
         "MPI_Allreduce() "),
        (f"{10 * mpi:.1f}", f"{1000 * mpi:,.0f}", f"{1000 * mpi:,.0f}", "5", "0", "1000",
         "MPI_Allreduce() [ <comm> = <ranks: 0, 1> <addr=0x1> ]"),
    ]  # fmt: skip
    return TAU_HEAD + "".join(
        f"{share:>5}{own:>13}{all_:>13}{calls:>12}{subs:>12}{each:>11} {name}\n"
        for share, own, all_, calls, subs, each, name in rows
    )


def tau(useful: Sequence[float] = USEFUL, nodes: bool = True) -> str:
    """What pprof prints: a section for each node, and the mean over them."""
    text = "Reading Profile files in profile.*\n\n"
    if nodes:
        for node, own in enumerate(useful):
            text += f"NODE {node};CONTEXT 0;THREAD 0:\n{tau_rows(own)}\n"
    mean = sum(useful) / len(useful)
    return text + f"FUNCTION SUMMARY (mean):\n{tau_rows(mean)}\n"


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


def timeline(steps: int = 3, closed: bool = True, ranks: int = 4) -> str:
    """Horovod's timeline: each step fuses two tensors (4,000 and 96 bytes), then reduces a third.

    In microseconds: NEGOTIATE_ALLREDUCE 100 of each tensor, those of the fused ones 50 apart;
    MPI_ALLREDUCE of the fused call 0 to 300 and 10 to 310, of the third 200.
    """
    shapes = {1: "[10, 100]", 2: "[24]", 3: "[2]"}
    events: list[Mapping[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": 0,
         "args": {"start_time_since_epoch_in_micros": 1}},
        *({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": f"grad_{pid}"}}
          for pid in shapes),
    ]  # fmt: skip
    for step in range(steps):
        at = 10_000 * (step + 1)
        for pid, delay in ((1, 0), (2, 50), (3, 500)):
            begin = at + delay
            events.append({"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": begin, "pid": pid})
            events += [
                {"ph": "X", "name": str(rank), "ts": begin + rank, "pid": pid, "dur": 0}
                for rank in range(ranks if step == 0 else 0)
            ]
            events.append({"ph": "E", "ts": begin + 100, "pid": pid})
        for pid, begin, end in ((1, 200, 500), (2, 210, 510), (3, 700, 900)):
            size = {"dtype": "float32", "shape": shapes[pid]}
            events += [
                {"ph": "B", "name": "ALLREDUCE", "ts": at + begin - 5, "pid": pid},
                {"ph": "B", "name": "MPI_ALLREDUCE", "ts": at + begin, "pid": pid},
                {"ph": "E", "ts": at + end, "pid": pid},
                {"ph": "E", "ts": at + end + 5, "pid": pid, "args": size},
            ]
    lines = ",\n".join(json.dumps(event) for event in events)
    return f"[\n{lines}{chr(10) + ']' if closed else ','}\n"
