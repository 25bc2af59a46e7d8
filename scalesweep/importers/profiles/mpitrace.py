"""Text profiles of mpitrace (IBM's HPC Toolkit lineage): ``mpi_profile.<job>.<rank>``.

A file has the MPI calls of one rank with their counts, average bytes and seconds; that of rank 0
ends with a table of all ranks. By default only rank 0 and those with the least, median and most
communication leave a file, so that the table of all ranks, of two decimals, is what is left.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scalesweep.analysis.pop import rank_factors
from scalesweep.analysis.profile import Function, Message, Profile, RankTimes
from scalesweep.importers.imported_run import ImportRefusedError, Refusal
from scalesweep.importers.profiles.base import CLOSE, lines_of, number, times_of

_HEAD = re.compile(r"Data for (?:MPI rank|MPI task|rank) (\d{1,7}) of (\d{1,7})\b")
_CALL = re.compile(r"\s*(MPI_\w+)\s+(\d{1,18})\s+(\S+)\s+(\S+)\s*")
_TOTAL = re.compile(r"\s*total (communication|elapsed) time\s+= +(\S+) +seconds\.?\s*")
_SIZES = re.compile(r"(MPI_\w+)\s+#calls\s+avg\. bytes\s+time\(sec\)\s*")
_SIZE = re.compile(r"\s+(\d{1,18})\s+(\S+)\s+(\S+)\s*")
_TABLE = re.compile(r"\s*taskid\s+hostname\s+comm\(s\)\s+elapsed\(s\).*")
_TASK = re.compile(r"\s*(\d{1,7})\s+\S+\s+(\S+)\s+(\S+)(?:\s+\S+)*\s*")
_JOB = re.compile(r"(?P<job>.*?)[._](?P<rank>\d{1,7})")
_ALL = "all ranks"


@dataclass
class _Rank:
    """One file: its rank, the calls, those by size, and the table of all ranks if it has one."""

    file: Path
    rank: int
    ranks: int
    totals: dict[str, float] = field(default_factory=dict)  # communication and elapsed, s
    calls: list[Function] = field(default_factory=list)
    sizes: list[tuple[str, int, float, float]] = field(default_factory=list)
    table: dict[int, tuple[float, float]] = field(default_factory=dict)
    where: str = ""  # the operation whose sizes are listed, or the table of all ranks

    def add(self, content: str, line: int) -> None:
        """Add what a line says."""
        if self.where == _ALL and (task := _TASK.fullmatch(content)):
            times = number(task[2], "comm(s)", line), number(task[3], "elapsed(s)", line)
            self.table[int(task[1])] = times
        elif self.where and (size := _SIZE.fullmatch(content)):
            values = number(size[2], "bytes", line), number(size[3], "seconds", line)
            self.sizes.append((self.where, int(size[1]), *values))
        elif sizes := _SIZES.fullmatch(content):
            self.where = sizes[1]
        elif _TABLE.fullmatch(content):
            self.where = _ALL
        elif total := _TOTAL.fullmatch(content):
            self.totals[total[1]] = number(total[2], f"total {total[1]} time", line)
        elif call := _CALL.fullmatch(content):
            seconds = number(call[4], "seconds", line)
            self.calls.append(Function(call[1], self.rank, "cpu", int(call[2]), seconds, seconds))

    @property
    def times(self) -> tuple[float, float]:
        """Seconds of MPI and elapsed. Raises ImportRefusedError for a file that was cut, or whose
        calls do not add up."""
        if self.totals.keys() != {"communication", "elapsed"} or not self.calls:
            raise ImportRefusedError("no calls, or no total times: cut off?")
        mpi, elapsed = self.totals["communication"], self.totals["elapsed"]
        together = sum(call.exclusive_s for call in self.calls)
        rounding = 0.0006 * (len(self.calls) + 1)
        if abs(together - mpi) > CLOSE * mpi + rounding or mpi > elapsed * (1 + CLOSE):
            raise ImportRefusedError(
                f"the calls take {together:.3f} s, the total is {mpi:.3f} s of {elapsed:.3f} s: "
                "lines are missing or changed"
            )
        return mpi, elapsed

    @property
    def functions(self) -> list[Function]:
        """The calls, and what is outside of them."""
        mpi, elapsed = self.times
        outside = Function("outside of MPI", self.rank, "cpu", 1, elapsed - mpi, elapsed)
        return [outside, *self.calls]


def sign(head: str) -> bool:
    """Whether a file begins as a profile of mpitrace does."""
    return any(_HEAD.match(line.strip()) for line in head.splitlines()[:20])


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
    output: _Rank | None = None
    for line, content in enumerate(lines_of(file), 1):
        if head := _HEAD.match(content.strip()):
            output = _Rank(file, int(head[1]), int(head[2]))
        elif output is not None:
            output.add(content, line)
    if output is None or not output.times:
        raise ImportRefusedError("no line 'Data for MPI rank'")
    return output


def _profile(members: Sequence[_Rank]) -> Profile:
    """The profile of one job from the files of its ranks, which need not be all of them.

    Raises ImportRefusedError if times of a rank are missing, ValueError if no rank has time outside
    of MPI.
    """
    first = members[0]
    words = "of the file of each rank"
    times: Mapping[int, tuple[float, float]] = {member.rank: member.times for member in members}
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
        tool="mpitrace",
        file=first.file,
        ranks=first.ranks,
        elapsed_s=runtime,
        rank_times=RankTimes(elapsed, useful, mpi),
        factors=rank_factors(useful, runtime),
        functions=tuple(it for member in members for it in member.functions),
        messages=tuple(
            Message(operation, size, calls, seconds / calls)
            for operation, calls, size, seconds in first.sizes
            if calls > 0 and size > 0 and seconds > 0
        ),
        metrics=times_of(runtime, float(mpi.mean()), float(useful.mean())),
        notes={"times": words, "ranks_with_a_file": len(members)},
    )
