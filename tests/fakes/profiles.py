"""Profiles of other tools, made up: small, whole, and with numbers that a test can work out."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Useful and MPI seconds of four ranks, of ten elapsed.
USEFUL = (8.0, 7.0, 6.0, 7.5)
ELAPSED = 10.0


def modelfactors(factor: float = 1.0) -> str:
    """Strong scaling over 2, 4 and 8 processes; the efficiencies follow from the durations."""
    counts = (2, 4, 8)
    runtime = [1.0e6 * factor, 0.55e6, 0.3e6]
    ideal = [0.99e6 * factor, 0.54e6, 0.28e6]
    mean = [0.9e6 * factor, 0.46e6, 0.24e6]
    top = [0.95e6 * factor, 0.5e6, 0.26e6]
    ideal_top = [0.96e6 * factor, 0.51e6, 0.265e6]
    total = [m * n for m, n in zip(mean, counts, strict=True)]
    balance = [m / t for m, t in zip(mean, top, strict=True)]
    communication = [t / r for t, r in zip(top, runtime, strict=True)]
    serial = [t / r for t, r in zip(ideal_top, ideal, strict=True)]
    transfer = [c / s for c, s in zip(communication, serial, strict=True)]
    parallel = [b * c for b, c in zip(balance, communication, strict=True)]
    scaling = [total[0] / t for t in total]
    overall = [p * c for p, c in zip(parallel, scaling, strict=True)]
    speedup = [runtime[0] / r for r in runtime]

    def line(name: str, values: Sequence[float], scale: float = 100.0, digits: int = 6) -> str:
        return name + ";" + ";".join(f"{value * scale:.{digits}f}" for value in values) + "\n"

    return (
        "Number of processes;" + ";".join(map(str, counts)) + "\n"
        + line("Parallel efficiency", parallel) + line("Load balance", balance)
        + line("Communication efficiency", communication)
        + line("Serialization efficiency", serial) + line("Transfer efficiency", transfer)
        + line("Computation scalability", scaling) + line("Global efficiency", overall)
        + line("IPC scalability", [1.0, 0.97, 0.9]) + line("Speedup", speedup, 1)
        + line("Average IPC", [1.8, 1.7, 1.6], 1) + "#\n"
        + line("#Runtime (us)", runtime, 1, 2) + line("#Runtime (ideal)", ideal, 1, 2)
        + line("#Useful duration (average)", mean, 1, 2)
        + line("#Useful duration (maximum)", top, 1, 2)
        + line("#Useful duration (total)", total, 1, 2)
        + line("#Useful duration (ideal, max)", ideal_top, 1, 2)
    )  # fmt: skip


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


KERNELS = (
    ("void gemm_128x64<float>(int, float*)", 100, 600_000_000),
    ("ApplyAdamKernel", 50, 300_000_000),
    ("ncclDevKernel_AllReduce_Sum_f32", 50, 100_000_000),
)


def nsys_csv(scale: float = 1.0) -> str:
    """Tables of ``nsys stats --format csv``: kernels, then calls of the API."""
    total = sum(time for _, _, time in KERNELS)
    lines = [
        "Processing [report.sqlite] with [cuda_gpu_kern_sum.py]...",
        "",
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",
    ]
    for name, calls, time in KERNELS:
        own = int(time * scale)
        lines.append(
            f'{100 * time / total:.1f},{own},{calls},{own / calls:.1f},1.0,1,{own},0.1,"{name}"'
        )
    lines += ["", "Processing [report.sqlite] with [cuda_api_sum.py]...", "",
              "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",  # noqa: E501
              "100.0,5000,10,500.0,500.0,1,1000,1.0,cudaLaunchKernel"]  # fmt: skip
    return "\n".join(lines) + "\n"


def nsys_text() -> str:
    """The same kernels as the older text tables, whose columns a line of dashes measures."""
    head = " Time(%)  Total Time (ns)  Instances  Average  Minimum    Maximum       Name    \n"
    rule = " -------  ---------------  ---------  -------  -------  ---------  ---------------\n"
    total = sum(time for _, _, time in KERNELS)
    rows = "".join(
        f" {100 * time / total:7.1f}  {time:15d}  {calls:9d}  {1.0:7.1f}  {1:7d}  {time:9d}"
        f"  {name}\n"
        for name, calls, time in KERNELS
    )
    return head + rule + rows + "\n"


def nsys_sqlite(path: Path) -> Path:
    """An exported database with two overlapping kernels, a copy, and a diagnostic message."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce');
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
            VALUES (0, 4000000000, 1), (3000000000, 5000000000, 2);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (8000000000, 9000000000, 1);
        CREATE TABLE ANALYSIS_DETAILS (duration INTEGER);
        INSERT INTO ANALYSIS_DETAILS VALUES (10000000000);
        CREATE TABLE DIAGNOSTIC_EVENT (text TEXT);
        INSERT INTO DIAGNOSTIC_EVENT VALUES ('No OpenMP data was collected');
        """
    )
    database.commit()
    database.close()
    return path


_EVENT = "start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, streamId INT NOT NULL"
_CALL = "cbid INT NOT NULL, start INT NOT NULL, end INT NOT NULL, correlationId INT NOT NULL"
NVPROF_START = 1_496_933_427_000_000_000  # ns: the clock of the host


def nvprof_sqlite(path: Path, *more: str) -> Path:
    """A file of ``nvprof -o``, with the tables and columns that the readers in PyTorch
    (autograd/profiler.py) and in nvprof2json ask for, and what ``more`` statements add.

    From 0 to 10 s: a call at the begin and one at the end, a kernel from 1 to 3 s and, on another
    stream, one from 2 to 4 s, copies HtoD 5 to 6 s, DtoH 6 to 6.5 s, to a peer 7 to 7.25 s, a fill
    of 0.25 s, and a kernel without times.
    """

    def at(*seconds: float) -> str:
        return ", ".join(str(NVPROF_START + round(second * 1e9)) for second in seconds)

    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    kernel = f"(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {_EVENT}, name INT NOT NULL)"
    copy = f"(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, copyKind INT NOT NULL, {_EVENT})"
    activity = "CUPTI_ACTIVITY_KIND_"
    database.executescript(
        f"""
        CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL);
        INSERT INTO StringTable VALUES
            (1, '_ZN5Eigen8internal15EigenMetaKernelIfEEvT_'), (2, 'volta_sgemm_128x64_nn');
        CREATE TABLE {activity}KERNEL {kernel};
        CREATE TABLE {activity}CONCURRENT_KERNEL {kernel};
        INSERT INTO {activity}CONCURRENT_KERNEL (start, end, deviceId, streamId, name) VALUES
            ({at(1, 3)}, 0, 7, 1), ({at(2, 4)}, 0, 13, 2), (0, 0, 0, 7, 2);
        CREATE TABLE {activity}MEMCPY {copy};
        INSERT INTO {activity}MEMCPY (copyKind, start, end, deviceId, streamId) VALUES
            (1, {at(5, 6)}, 0, 7), (2, {at(6, 6.5)}, 0, 7);
        CREATE TABLE {activity}MEMCPY2 {copy};
        INSERT INTO {activity}MEMCPY2 (copyKind, start, end, deviceId, streamId) VALUES
            (10, {at(7, 7.25)}, 0, 7);
        CREATE TABLE {activity}MEMSET (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {_EVENT});
        INSERT INTO {activity}MEMSET (start, end, deviceId, streamId) VALUES ({at(8, 8.25)}, 0, 7);
        CREATE TABLE {activity}RUNTIME (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {_CALL});
        INSERT INTO {activity}RUNTIME (cbid, start, end, correlationId) VALUES
            (20, {at(0, 0.1)}, 1), (211, {at(0.9, 0.91)}, 2), (165, {at(9, 10)}, 3),
            (22, {at(9.9)}, 0, 4);
        """
    )
    for statement in more:
        database.execute(statement)
    database.commit()
    database.close()
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
