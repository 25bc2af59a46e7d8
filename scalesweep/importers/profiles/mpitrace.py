"""Text profiles of mpitrace (IBM's HPC Toolkit lineage): ``mpi_profile.<job>.<rank>``.

A file has the MPI calls of one rank with their counts, average bytes and seconds; that of rank 0
ends with a table of all ranks. By default only rank 0 and those with the least, median and most
communication leave a file, so that the table of all ranks, of two decimals, is what is left.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scalesweep.analysis.pop import rank_factors
from scalesweep.analysis.profile import Function, Message, Profile, RankTimes
from scalesweep.importers.imported_run import ImportRefusedError, Refusal
from scalesweep.importers.profiles.source import (
    ReadResult,
    lines_of,
    metric,
    number,
    text_of,
)

TOOL = "mpitrace"
MAX_RANKS = 1_000_000
_HEAD = re.compile(r"Data for (?:MPI rank|MPI task|rank) (\d{1,7}) of (\d{1,7})\b")
_CALL = re.compile(r"\s*(MPI_\w+)\s+(\d{1,18})\s+(\S+)\s+(\S+)\s*")
_TOTAL = re.compile(r"\s*total (communication|elapsed) time\s+= +(\S+) +seconds\.?\s*")
_SIZES = re.compile(r"(MPI_\w+)\s+#calls\s+avg\. bytes\s+time\(sec\)\s*")
_SIZE = re.compile(r"\s+(\d{1,18})\s+(\S+)\s+(\S+)\s*")
_TABLE = re.compile(r"\s*taskid\s+hostname\s+comm\(s\)\s+elapsed\(s\)")
_TASK = re.compile(r"\s*(\d{1,7})\s+(\S+)\s+(\S+)\s+(\S+)(?:\s+\S+)*\s*")
_ALL = "all ranks"
_JOB = re.compile(r"(?P<job>.*?)[._](?P<rank>\d{1,7})")


@dataclass
class _Rank:
    """One file: its rank, the calls, and the table of all ranks if it has one."""

    file: Path
    rank: int
    ranks: int
    elapsed: float = math.nan
    communication: float = math.nan
    calls: list[tuple[str, int, float]] = field(default_factory=list)
    sizes: list[tuple[str, int, float, float]] = field(default_factory=list)
    table: dict[int, tuple[float, float]] = field(default_factory=dict)


def recognise(head: str) -> bool:
    """Whether a file begins as a profile of mpitrace does."""
    return any(_HEAD.match(line.strip()) for line in head.splitlines()[:20])


def read(files: Sequence[Path]) -> ReadResult:
    """A profile for each job: files of one folder whose names differ in the rank only."""
    result = ReadResult([], [])
    jobs: dict[tuple[Path, str], list[_Rank]] = {}
    for file in files:
        try:
            output = _rank(file, text_of(file))
        except ImportRefusedError as error:
            result.refusals.append(Refusal(file, str(error), error.line))
            continue
        match = _JOB.fullmatch(file.name)
        job = match["job"] if match and int(match["rank"]) == output.rank else file.name
        jobs.setdefault((file.parent, job), []).append(output)
    for members in jobs.values():
        try:
            result.profiles.append(_profile(members))
        except ImportRefusedError as error:
            result.refusals.append(Refusal(members[0].file, str(error)))
    return result


def _rank(file: Path, text: str) -> _Rank:
    output: _Rank | None = None
    where = ""  # the operation whose sizes are listed, or the table of all ranks
    for line, content in enumerate(lines_of(text), 1):
        if head := _HEAD.match(content.strip()):
            if output:
                raise ImportRefusedError("two ranks in one file", line)
            output = _Rank(file, int(head[1]), int(head[2]))
            if not 0 <= output.rank < output.ranks <= MAX_RANKS:
                raise ImportRefusedError(f"rank {output.rank} of {output.ranks}", line)
        elif output is not None:
            where = _add_line(output, content, where, line)
    if output is None:
        raise ImportRefusedError("no line 'Data for MPI rank'")
    _check(output)
    return output


def _add_line(output: _Rank, content: str, where: str, line: int) -> str:
    """Add what a line says; returns what the next lines are about."""
    if total := _TOTAL.fullmatch(content):
        _add_total(output, total[1], number(total[2], f"total {total[1]} time", line), line)
        return ""
    if sizes := _SIZES.fullmatch(content):
        return sizes[1]
    if _TABLE.match(content):
        return _ALL
    if where == _ALL:
        if task := _TASK.fullmatch(content):
            _add_task(output, task, line)
    elif size := _SIZE.fullmatch(content):
        if not where:
            raise ImportRefusedError("sizes of an operation without its name", line)
        values = number(size[2], "bytes", line), number(size[3], "seconds", line)
        output.sizes.append((where, int(size[1]), *values))
    elif call := _CALL.fullmatch(content):
        name, seconds = call[1], number(call[4], "seconds", line)
        if seconds < 0 or name in [known for known, _, _ in output.calls]:
            raise ImportRefusedError(f"{name} occurs twice, or its time is negative", line)
        output.calls.append((name, int(call[2]), seconds))
    return where


def _add_total(output: _Rank, what: str, seconds: float, line: int) -> None:
    before = output.communication if what == "communication" else output.elapsed
    if math.isfinite(before) or seconds < 0:
        raise ImportRefusedError(f"total {what} time is there twice, or negative", line)
    if what == "communication":
        output.communication = seconds
    else:
        output.elapsed = seconds


def _add_task(output: _Rank, task: "re.Match[str]", line: int) -> None:
    rank = int(task[1])
    times = number(task[3], "comm(s)", line), number(task[4], "elapsed(s)", line)
    if rank in output.table or rank >= output.ranks or not 0 <= times[0] <= times[1]:
        raise ImportRefusedError(f"task {rank} is there twice, or its times are impossible", line)
    output.table[rank] = times


def _check(output: _Rank) -> None:
    """A cut or edited file: what is missing, or does not add up."""
    for value, what in ((output.communication, "communication"), (output.elapsed, "elapsed")):
        if not math.isfinite(value):
            raise ImportRefusedError(f"has no 'total {what} time': cut off?")
    if output.elapsed <= 0 or output.communication > output.elapsed:
        raise ImportRefusedError("more time in MPI than elapsed")
    calls = {name: count for name, count, _ in output.calls}
    for name in {operation for operation, _, _, _ in output.sizes}:
        sized = sum(count for operation, count, _, _ in output.sizes if operation == name)
        if sized != calls.get(name):
            raise ImportRefusedError(
                f"{calls.get(name)} calls of {name}, but {sized} by size: lines are missing or "
                "changed"
            )
    together = sum(seconds for _, _, seconds in output.calls)
    # Each is rounded to a millisecond.
    if abs(together - output.communication) > 0.0006 * (len(output.calls) + 1):
        raise ImportRefusedError(
            f"the calls take {together:.3f} s, the total is {output.communication:.3f} s: "
            "lines are missing or changed"
        )
    if output.table and len(output.table) != output.ranks:
        raise ImportRefusedError(
            f"{len(output.table)} of {output.ranks} ranks in its table of all: cut off?"
        )


def _profile(members: Sequence[_Rank]) -> Profile:
    """The profile of one job from the files of its ranks, which need not be all of them.

    Raises ImportRefusedError if the files are of several jobs, the times of a rank are missing, or
    no rank has time outside of MPI.
    """
    ranks = {member.ranks for member in members}
    by_rank = {member.rank: member for member in members}
    if len(ranks) > 1 or len(by_rank) < len(members):
        raise ImportRefusedError(
            "files of several jobs have one name: put each job in its own folder"
        )
    count = ranks.pop()
    times, words = _times(by_rank, count)
    elapsed = np.array([times[rank][1] for rank in range(count)])
    mpi = np.array([times[rank][0] for rank in range(count)])
    useful = elapsed - mpi
    try:
        factors = rank_factors(useful, float(elapsed.max()))
    except ValueError:
        raise ImportRefusedError("no rank has any time outside of MPI") from None
    first = by_rank[min(by_rank)]
    return Profile(
        tool=TOOL,
        file=first.file,
        ranks=count,
        elapsed_s=float(elapsed.max()),
        rank_times=RankTimes(elapsed, useful, mpi),
        factors=factors,
        functions=tuple(_functions(by_rank)),
        messages=tuple(_messages(first)),
        metrics={
            "runtime": metric(float(elapsed.max()), "s", "lower"),
            "mpi_time": metric(float(mpi.mean()), "s", "lower", "rank"),
            "useful_time": metric(float(useful.mean()), "s", "lower", "rank"),
        },
        notes={"times": words, "ranks_with_a_file": len(by_rank)},
    )


def _times(by_rank: Mapping[int, _Rank], count: int) -> tuple[dict[int, tuple[float, float]], str]:
    """(MPI, elapsed) seconds of every rank, and where they are from."""
    if len(by_rank) == count:
        own = {rank: (output.communication, output.elapsed) for rank, output in by_rank.items()}
        return own, "of the file of each rank"
    table = next((output.table for output in by_rank.values() if output.table), {})
    if not table:
        raise ImportRefusedError(
            f"{len(by_rank)} of {count} ranks have a file, and none has the table of all ranks"
        )
    return table, "of the table of all ranks, rounded to 0.01 s"


def _functions(by_rank: Mapping[int, _Rank]) -> list[Function]:
    functions = []
    for rank, output in sorted(by_rank.items()):
        rest = output.elapsed - output.communication
        functions.append(Function("outside of MPI", rank, "cpu", 1, rest, output.elapsed))
        functions += [
            Function(name, rank, "cpu", calls, seconds, seconds)
            for name, calls, seconds in output.calls
        ]
    return functions


def _messages(output: _Rank) -> list[Message]:
    return [
        Message(operation, size, calls, seconds / calls)
        for operation, calls, size, seconds in output.sizes
        if calls > 0 and size > 0 and seconds > 0
    ]
