"""Text profiles of mpitrace (IBM's HPC Toolkit lineage): ``mpi_profile.<job>.<rank>``.

A file has the MPI calls of one rank with their counts, average bytes and seconds; that of rank 0
ends with a table of all ranks. By default only rank 0 and those with the least, median and most
communication leave a file, so that the table of all ranks, of two decimals, is what is left.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.pop import rank_factors
from scalesweep.analysis.profile import Function, Message, Profile, RankTimes
from scalesweep.importers.imported_run import ImportRefusedError, Refusal
from scalesweep.importers.profiles.base import CLOSE, lines_of, times_of

_N = r"(\d+(?:\.\d+)?)"
_HEAD = re.compile(r"\s*Data for (?:MPI rank|MPI task|rank) (\d{1,7}) of (\d{1,7})\b", re.M)
_CALL = re.compile(rf"\s*(MPI_\w+)\s+(\d{{1,18}})\s+{_N}\s+{_N}\s*")
_TOTAL = re.compile(rf"\s*total (?:communication|elapsed) time\s+= +{_N} +seconds\.?\s*")
_SIZES = re.compile(r"(MPI_\w+)\s+#calls\s+avg\. bytes\s+time\(sec\)\s*")
_SIZE = re.compile(rf"\s+(\d{{1,18}})\s+{_N}\s+{_N}\s*")
_TABLE = re.compile(r"\s*taskid\s+hostname\s+comm\(s\)\s+elapsed\(s\).*")
_TASK = re.compile(rf"\s*(\d{{1,7}})\s+\S+\s+{_N}\s+{_N}(?:\s+\S+)*\s*")
_JOB = re.compile(r"(?P<job>.*?)[._](?P<rank>\d{1,7})")
_Times = Mapping[int, tuple[float, float]]


class _Rank(NamedTuple):
    """One file: its rank of so many, seconds of MPI and elapsed, the calls, those by size, and the
    seconds of all ranks if it has their table."""

    file: Path
    rank: int
    ranks: int
    times: tuple[float, float]
    functions: list[Function]
    messages: list[Message]
    table: _Times


def sign(head: str) -> bool:
    """Whether a file begins as a profile of mpitrace does."""
    return any(_HEAD.match(line) for line in head.splitlines()[:20])


def read(files: Sequence[Path], ranks: int | None = None) -> Iterator[Profile | Refusal]:
    """A profile for each job: files of one folder whose names differ in the rank only."""
    jobs: dict[tuple[Path, str], list[_Rank]] = {}
    for file in files:
        try:
            output = _rank(file)
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line)
            continue
        match = _JOB.fullmatch(file.name)
        job = match["job"] if match and int(match["rank"]) == output.rank else file.name
        jobs.setdefault((file.parent, job), []).append(output)
    for members in jobs.values():
        try:
            yield _profile(sorted(members, key=lambda it: it.rank))
        except (ImportRefusedError, ValueError) as error:
            yield Refusal(members[0].file, str(error))


def _rank(file: Path) -> _Rank:
    """What a file says. Raises ImportRefusedError for one that was cut, or whose calls do not add
    up."""
    totals, calls, messages = [], [], []
    table: dict[int, tuple[float, float]] = {}
    head, operation = None, ""
    for line in lines_of(file):
        head = head or _HEAD.match(line)
        if of_size := _SIZES.fullmatch(line):
            operation = of_size[1]
        elif _TABLE.fullmatch(line):
            operation = "all ranks"
        elif operation == "all ranks" and (task := _TASK.fullmatch(line)):
            table[int(task[1])] = float(task[2]), float(task[3])
        elif operation and (size := _SIZE.fullmatch(line)):
            count, mean, seconds = int(size[1]), float(size[2]), float(size[3])
            if count and mean and seconds:
                messages.append(Message(operation, mean, count, seconds / count))
        elif total := _TOTAL.fullmatch(line):
            totals.append(float(total[1]))
        elif call := _CALL.fullmatch(line):
            calls.append((call[1], int(call[2]), float(call[4])))
    if not head or len(totals) != 2 or not calls:
        raise ImportRefusedError("no line 'Data for MPI rank', no calls, or no total times")
    (mpi, elapsed), rank = totals, int(head[1])
    together = sum(seconds for *_, seconds in calls)
    rounding = 0.0006 * (len(calls) + 1)
    if abs(together - mpi) > CLOSE * mpi + rounding or mpi > elapsed * (1 + CLOSE):
        raise ImportRefusedError(
            f"the calls take {together:.3f} s, the total is {mpi:.3f} s of {elapsed:.3f} s: "
            "lines are missing or changed"
        )
    functions = [Function("outside of MPI", rank, "cpu", 1, elapsed - mpi, elapsed)]
    functions += [Function(name, rank, "cpu", n, own, own) for name, n, own in calls]
    return _Rank(file, rank, int(head[2]), (mpi, elapsed), functions, messages, table)


def _profile(members: Sequence[_Rank]) -> Profile:
    """The profile of one job from the files of its ranks, which need not be all of them.

    Raises ImportRefusedError if times of a rank are missing, ValueError if no rank has time outside
    of MPI.
    """
    first, words = members[0], "of the file of each rank"
    times: _Times = {member.rank: member.times for member in members}
    if len(times) < first.ranks:
        times = next((member.table for member in members if member.table), {})
        words = "of the table of all ranks, rounded to 0.01 s"
    if sorted(times) != list(range(first.ranks)):
        raise ImportRefusedError(
            f"{len(members)} of {first.ranks} ranks have a file, and none has the table of all "
            "ranks"
        )
    mpi, elapsed = np.array([times[rank] for rank in range(first.ranks)]).T
    useful, runtime = elapsed - mpi, float(elapsed.max())
    return Profile(
        tool="mpitrace", file=first.file, ranks=first.ranks,
        rank_times=RankTimes(elapsed, useful, mpi),
        functions=tuple(it for member in members for it in member.functions),
        messages=tuple(first.messages),
        metrics=times_of(
            runtime, float(mpi.mean()), float(useful.mean()), rank_factors(useful, runtime)
        ),
        notes={"times": words, "ranks_with_a_file": len(members)},
    )  # fmt: skip
