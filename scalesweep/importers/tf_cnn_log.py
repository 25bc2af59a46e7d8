"""Logs of tf_cnn_benchmarks, line by line: which lines belong to one job.

A log holds any number of jobs one after another, each of one process or, under Horovod, of
several whose lines are mixed. What is printed: tensorflow/benchmarks,
scripts/tf_cnn_benchmarks/benchmark_cnn.py (print_info, benchmark_one_step).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scalesweep.compute.log_lines import Line
from scalesweep.importers.command_echo import Echo, is_damaged, read_assignment, read_echo
from scalesweep.importers.tf_timestamps import TensorFlowLog, is_startup

PROGRAMS = ("tf_cnn_benchmarks.py",)
PER_DEVICE = "per device"
_COMMANDS = (*PROGRAMS, "python", "mpirun", "horovodrun", "srun")
KEYS = (
    "TensorFlow", "Model", "Dataset", "Mode", "SingleSess", "Batch size", "Num batches",
    "Num epochs", "Devices", "NUMA bind", "Data format", "Layout optimizer", "RewriterConfig",
    "Optimizer", "Variables", "AllReduce", "Use NCCL", "Sync", "Staged vars", "Horovod on",
)  # fmt: skip

# Versions that print through a logger put its name, or level, time and place, before a line.
_LOGGER = re.compile(
    r"(?:INFO:tensorflow:|I\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,20} \S{1,80}:\d{1,6}\] )", re.ASCII
)
_HEADER = re.compile(rf"({'|'.join(map(re.escape, KEYS))}): +(\S.{{0,20000}}?)\s*", re.ASCII)
_PER_DEVICE = re.compile(r"\s{4,}(\d{1,9}(?:\.0)?) per device\s*", re.ASCII)
_PARAMETERS = re.compile(r"number of parameters: (\d{1,15})(?:\.0)?\s*", re.ASCII)
# The program prints one decimal, two and three: fewer are a cut number. TensorFlow may write its
# own line right behind the loss.
_STEP = re.compile(
    r"(?P<step>[1-9]\d{0,8})\s+images/sec: (?P<mean>\d{1,12}\.\d)"
    r"(?: \+/- (?P<uncertainty>\d{1,12}\.\d) \(jitter = (?P<jitter>\d{1,12}\.\d)\))?"
    r"(?:\s+(?P<loss>-?\d{1,30}\.\d{3}|-?inf|nan)(?=\s|\d{4}-\d\d-\d\d |$).*)?\s*",
    re.ASCII,
)
_TOTAL = re.compile(r"total images/sec: (\d{1,15}\.\d\d)\s*", re.ASCII)
_RULE = re.compile(r"-{3,}\s*|\s*")
_SRUN = re.compile(r" *\d{1,7}: ?(?:TensorFlow|Model): +\S")


class Step(NamedTuple):
    """A line of progress: cumulative since the warm-up. Rates in images/s."""

    line: int
    step: int
    mean: float
    uncertainty: float | None
    jitter: float | None
    loss: float | None


class Value(NamedTuple):
    """Something that was printed, and where."""

    line: int
    text: str


@dataclass
class Process:
    """What one process printed; without labels, what all processes of a job did."""

    headers: dict[str, list[Value]] = field(default_factory=dict)
    parameters: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    totals: list[Value] = field(default_factory=list)

    @property
    def started(self) -> int:
        """How many headers began."""
        return len(self.headers.get("Model", ()))

    def first(self, key: str) -> str:
        """The value of a header line, empty if there is none."""
        return self.headers[key][0].text if key in self.headers else ""


@dataclass
class Job:
    """The lines of one job. ``broken`` are lines of it that cannot be read."""

    first_line: int
    echo: Echo | None = None
    tensorflow: TensorFlowLog = field(default_factory=TensorFlowLog)
    processes: dict[int | None, Process] = field(default_factory=dict)
    broken: list[Value] = field(default_factory=list)
    last_line: int = 0
    # What was read, for the digest.
    evidence: list[str] = field(default_factory=list)
    # Whether nothing but rules has come since the last total.
    at_total: bool = False

    @property
    def empty(self) -> bool:
        """Whether the benchmark has not printed anything."""
        return not self.processes

    @property
    def has_header(self) -> bool:
        """Whether any line of a header belongs to the job."""
        return any(process.headers for process in self.processes.values())

    @property
    def horovod_ranks(self) -> int:
        """Ranks that the list of devices names; 0 without one."""
        return max(
            (p.first("Devices").count("'horovod/") for p in self.processes.values()), default=0
        )

    @property
    def complete(self) -> bool:
        """Whether every process that has begun has printed its total."""
        return bool(self.processes) and all(
            len(process.totals) >= max(1, process.started) for process in self.processes.values()
        )

    @property
    def stepped(self) -> bool:
        """Whether a process has got beyond its warm-up."""
        return any(process.steps for process in self.processes.values())

    def takes(self, line: Line, key: str, value: str) -> bool:
        """Whether the first line of a header, ``key``, can be of this job.

        Horovod's ranks all print the same header; without labels they are distinguished from the
        next job by their number, and because TensorFlow has not started again.
        """
        if self.empty:
            return True
        own = self.processes.get(line.rank)
        if own is None:
            return not self.complete or len(self.processes) < self.horovod_ranks
        if line.rank is None and (own.first(key) or value) == value:
            begun = len(own.headers.get(key, ()))
            return begun < self.horovod_ranks or ("Devices" not in own.headers and not own.steps)
        return key not in own.headers and not own.steps


def is_srun_label(text: str) -> bool:
    """Whether a line of a header follows a label of ``srun --label``."""
    return _SRUN.match(text) is not None


def split_jobs(lines: Iterable[Line]) -> Iterator[Job]:
    """The jobs of a log in order, cut ones too."""
    splitter = _Splitter()
    for line in lines:
        yield from splitter.add(line)
    yield from splitter.close()


class _Splitter:
    """Puts lines into the job that they belong to, and ends a job where the next begins."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self.variables: dict[str, str] = {}
        self.continued: Line | None = None
        # A damaged line after the job at hand: what comes next may have lost its beginning.
        self.damage: Value | None = None

    def close(self) -> Iterator[Job]:
        """End the job at hand."""
        if self.job is not None and not self.job.empty:
            yield self.job
        self.job = None

    def add(self, line: Line) -> Iterator[Job]:
        """Take a line; yields the job that it ends."""
        text = _LOGGER.sub("", line.text, count=1)
        line = line._replace(text=text)
        if is_damaged(text):
            damage = Value(line.number, text.strip()[:60])
            if self.job and not self.job.complete:
                self.job.broken.append(damage)
            else:
                self.damage = damage
        if (command := self._command(line)) is not None:
            echo = read_echo(command.text, PROGRAMS, command.number)
            if echo is not None:
                if line.rank is not None and self.job and self.job.echo and not self.job.stepped:
                    return  # each rank shows the command of the job that has begun
                yield from self.close()
                self._open(line, replace(echo, variables=self.variables))
                self.variables = {}
                return
        elif self.continued is not None:
            return
        assignment = read_assignment(text)
        self.variables = {**self.variables, **dict([assignment])} if assignment else {}
        yield from self._benchmark(line)

    def _command(self, line: Line) -> Line | None:
        """The line, or the whole command if it is the last of several joined by backslashes."""
        text = line.text.rstrip()
        if self.continued is None:
            if not text.endswith("\\") or not any(word in text for word in _COMMANDS):
                return line
            self.continued = line._replace(text=text[:-1])
            return None
        joined = f"{self.continued.text} {text.rstrip(chr(92))}"[:20_000]
        if text.endswith("\\"):
            self.continued = self.continued._replace(text=joined)
            return None
        whole, self.continued = self.continued._replace(text=joined), None
        return whole

    def _open(self, line: Line, echo: Echo | None = None) -> Job:
        self.job = Job(line.number, echo)
        if self.damage:
            self.job.broken.append(self.damage)
            self.damage = None
        return self.job

    def _benchmark(self, line: Line) -> Iterator[Job]:
        if header := _HEADER.fullmatch(line.text):
            yield from self._header(line, header[1], header[2])
        elif per_device := _PER_DEVICE.fullmatch(line.text):
            self._put(line).headers.setdefault(PER_DEVICE, []).append(
                Value(line.number, per_device[1])
            )
        elif parameters := _PARAMETERS.fullmatch(line.text):
            self._put(line).parameters.append(Value(line.number, parameters[1]))
        elif "images/sec:" in line.text:
            yield from self._progress(line)
        else:
            yield from self._other(line)

    def _header(self, line: Line, key: str, value: str) -> Iterator[Job]:
        if key in ("TensorFlow", "Model") and self.job and not self.job.takes(line, key, value):
            yield from self.close()
        process = self._put(line)
        process.headers.setdefault(key, []).append(Value(line.number, value))

    def _progress(self, line: Line) -> Iterator[Job]:
        step, total = _STEP.fullmatch(line.text), _TOTAL.fullmatch(line.text)
        if step or total:
            if self._is_beyond(line, total is not None):
                yield from self.close()
            process = self._put(line)
            if step:
                process.steps.append(_step(step, line.number))
            elif total and self.job:
                process.totals.append(Value(line.number, total[1]))
                self.job.at_total = True
        elif self.job is not None and not self.job.empty and not self.job.complete:
            self.job.broken.append(Value(line.number, line.text.strip()[:60]))

    def _is_beyond(self, line: Line, is_total: bool) -> bool:
        """Whether a line of progress comes after the job at hand, its own header being lost."""
        job = self.job
        if job is None or not job.complete or (is_total and job.at_total):
            return False
        own = job.processes.get(line.rank)
        expected = job.horovod_ranks if line.rank is None else 1
        return own is None or len(own.totals) >= max(1, expected)

    def _other(self, line: Line) -> Iterator[Job]:
        job = self.job
        if _RULE.fullmatch(line.text):
            return
        if job is not None:
            job.at_total = False
            others = line.rank is not None and line.rank not in job.processes
            if is_startup(line.text) and (job.complete or job.stepped) and not others:
                yield from self.close()
        if self.job is None:
            self._open(line)
        assert self.job is not None
        self.job.tensorflow.add(line)

    def _put(self, line: Line) -> Process:
        """The process that printed a line; remembers what was read."""
        job = self.job or self._open(line)
        if job.empty:
            job.first_line = job.echo.line if job.echo else line.number
        job.last_line = line.number
        job.at_total = False
        job.evidence.append(line.text.strip())
        return job.processes.setdefault(line.rank, Process())


def _step(match: "re.Match[str]", line: int) -> Step:
    def number(name: str) -> float | None:
        return None if match[name] is None else float(match[name])

    return Step(
        line,
        int(match["step"]),
        float(match["mean"]),
        number("uncertainty"),
        number("jitter"),
        number("loss"),
    )
