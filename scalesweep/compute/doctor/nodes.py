"""The doctor's look at every node of the job, or at this machine: folder, clocks, GPUs, power.

Standard library only.
"""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING, Check, Checks
from scalesweep.compute.doctor.order import DoctorOrder
from scalesweep.compute.doctor.programs import said_in
from scalesweep.compute.node_step import on_each_node
from scalesweep.compute.program import environment

NODES, FOLDER, FILES, CLOCKS, LOAD, GPUS, POWER = NAMES = (
    "compute nodes", "results folder", "file system", "clocks", "load", "GPUs", "power counters",
)  # fmt: skip
# Times of a small file, and differences between clocks, that are worth a word, in seconds.
SLOW_FILE_S = 0.05
CLOCK_OFF_S, CLOCK_WRONG_S = 0.01, 1.0
# Processes at work beside a run, as a share of the CPUs, that are worth a word; one is our own.
LOAD_SHARE, LOAD_OWN = 0.5, 1.0
ROUNDS = 12
# Less than the deadline of these checks (main.NODES_S): what answers late is told apart.
FACTS_S, ANSWER_S = 11.0, 1.0

Facts = Mapping[str, Any]


class Clock(NamedTuple):
    """How far a node's clock is ahead of this one's, give or take ``error`` (both in seconds)."""

    host: str
    ahead: float
    error: float


def examine(order: DoctorOrder) -> Checks:
    """The outcomes of ``NAMES``."""
    with _Probes(order) as probes:
        facts = probes.facts()
        hosts = ", ".join(sorted(fact["host"] for fact in facts))
        if len(facts) < order["nodes"]:
            where = f"{len(facts)} of {order['nodes']} nodes answer{f' ({hosts})' if hosts else ''}"
            said = probes.complaint()
            mend = "see whether the others see scalesweep's folder and that of the results"
            yield Check(NODES, FAILED, f"{where}{': ' if said else ''}{said}", mend)
            return
        yield Check(NODES, OK, f"{hosts}: Snakemake's Python {facts[0]['python']} starts there")
        yield from judge_folder(facts, order["token"], str(Path(order["folder"]).parents[1]))
        yield judge_clocks(probes.clocks(len(facts)) if len(facts) > 1 else [])
    yield judge_load(facts)
    yield judge_gpus(facts, order["gpus_per_node"], order["site_file"])
    yield judge_power(facts)


def judge_folder(facts: Sequence[Facts], token: str, results: str) -> Iterator[Check]:
    """Whether every node sees the results folder, and how long a small file takes there."""
    blind = [fact for fact in facts if fact.get("token") != token]
    if blind:
        why = blind[0].get("folder_error") or "another folder lies there"
        move = "put results on a file system that all nodes share: --results FOLDER"
        yield Check(FOLDER, FAILED, f"{blind[0]['host']} does not see {results}: {why}", move)
        yield Check(FILES, SKIPPED, f"needs {FOLDER}")
        return
    yield Check(FOLDER, OK, f"{results} is seen from {_nodes(facts)}")
    slowest = max(facts, key=lambda fact: float(fact["files"]["median"]))
    times = slowest["files"]
    detail = (
        f"a small file takes {1000 * times['median']:.1f} ms on {slowest['host']} "
        f"(written, renamed, removed; longest {1000 * times['longest']:.0f} ms)"
    )
    slow = times["median"] > SLOW_FILE_S
    mend = "every run writes some 20 files: put results on a faster file system" if slow else ""
    yield Check(FILES, WARNING if slow else OK, detail, mend)


def judge_clocks(clocks: Sequence[Clock]) -> Check:
    """Whether the clocks of the nodes agree, as far as can be told."""
    if len(clocks) < 2:
        return Check(CLOCKS, SKIPPED, "one node: nothing to compare")
    first, last = min(clocks, key=lambda c: c.ahead), max(clocks, key=lambda c: c.ahead)
    apart, error = last.ahead - first.ahead, first.error + last.error
    detail = (
        f"{last.host} is {1000 * apart:.1f} ms ahead of {first.host}, "
        f"give or take {1000 * error:.1f} ms"
    )
    sure = apart - error
    state = FAILED if sure > CLOCK_WRONG_S else WARNING if sure > CLOCK_OFF_S else OK
    mend = "phases, spans and power go by each node's clock: synchronise them (chrony, ntpd)"
    return Check(CLOCKS, state, detail, "" if state == OK else mend)


def judge_load(facts: Sequence[Facts]) -> Check:
    """Whether a node is at work already: the mean number of processes in the last minute."""
    busiest = max(facts, key=lambda fact: float(fact["load"][0] / fact["load"][1]))
    load, cpus, host = float(busiest["load"][0]), float(busiest["load"][1]), busiest["host"]
    detail = f"{load:.1f} processes at work in the last minute on the {cpus:.0f} CPUs of {host}"
    if load <= LOAD_SHARE * cpus + LOAD_OWN:
        return Check(LOAD, OK, detail)
    mend = "measure when the machine is quiet: what else runs there is part of every time"
    return Check(LOAD, WARNING, detail, mend)


def judge_gpus(facts: Sequence[Facts], wanted: int, site_file: str) -> Check:
    """Whether every node shows the GPUs that the site file promises."""
    for fact in facts:
        gpus = fact["gpus"]
        if isinstance(gpus, str):
            return Check(
                GPUS, FAILED if wanted else WARNING, f"{fact['host']}: {gpus}",
                "mend the driver of this node, or leave it out (slurm.extra: --exclude=NODE)",
            )  # fmt: skip
        if len(gpus) < wanted:
            return Check(
                GPUS, FAILED, f"{fact['host']} shows {len(gpus)} of {wanted}",
                f"set gpus_per_node or slurm.gres in {site_file} to what a job gets",
            )  # fmt: skip
        if len(gpus) > wanted:
            return Check(
                GPUS, WARNING, f"{fact['host']} shows {len(gpus)}, {site_file} says {wanted}",
                f"set gpus_per_node: {len(gpus)} in {site_file}, or runs may share them",
            )  # fmt: skip
    if not wanted:
        return Check(GPUS, OK, "none, as the site file says")
    models = sorted({name for fact in facts for name in fact["gpus"]})
    return Check(GPUS, OK, f"{wanted} on each node: {', '.join(models)}")


def judge_power(facts: Sequence[Facts]) -> Check:
    """Whether every node has a counter of power or energy that can be read."""
    if any("power" not in fact for fact in facts):
        return Check(POWER, SKIPPED, "switched off in the site file (power: off)")
    for fact in facts:
        if why := fact["power"]["missing"]:
            mend = (
                "reports will lack energy; docs/guide/energy.md says how counters become readable"
            )
            return Check(POWER, WARNING, why, mend)
    names = list(dict.fromkeys(name for fact in facts for name in fact["power"]["domains"]))
    more = f" and {len(names) - 4} more" if len(names) > 5 else ""
    shown = names if not more else names[:4]
    return Check(POWER, OK, f"{', '.join(shown)}{more} on {_nodes(facts)}")


def _nodes(facts: Sequence[Facts]) -> str:
    return f"{len(facts)} nodes" if len(facts) > 1 else str(facts[0]["host"])


class _Probes:
    """One probe on each node, through which each can be asked for its time."""

    def __init__(self, order: DoctorOrder) -> None:
        self._nodes = order["nodes"]
        self._errors = Path(order["folder"], "nodes.err")
        software = order["parts"][0]["software"]
        power = software.get("power")
        probe = str(Path(__file__).with_name("node_probe.py"))
        words = [sys.executable, "-I", "-S", probe, "--folder", order["folder"]]
        if power:
            words += ["--sources", ",".join(power["sources"]), "--sysfs", power["sysfs"]]
        if order["in_slurm"]:
            words = on_each_node(self._nodes, "doctor") + words
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=environment(software),
            )  # fmt: skip
        self._text = b""

    def __enter__(self) -> "_Probes":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def facts(self) -> list[dict[str, Any]]:
        """What the probes have found, as many as answer in time."""
        return self._read(self._nodes, FACTS_S)

    def clocks(self, nodes: int) -> list[Clock]:
        """How far each node's clock is ahead, from the quickest of some rounds.

        The time that a node names was between the question and the answer (Cristian's algorithm:
        Distributed Computing 3, 1989, 146-158).
        """
        best: dict[str, Clock] = {}
        for number in range(ROUNDS):
            asked = time.time()
            assert self._process.stdin is not None
            self._process.stdin.write(f"{number}\n".encode())
            self._process.stdin.flush()
            for answer in self._read(nodes, ANSWER_S):
                half = (answer["received"] - asked) / 2
                clock = Clock(answer["host"], answer["time"] - asked - half, half)
                known = best.get(clock.host)
                if known is None or half < known.error:
                    best[clock.host] = clock
        return list(best.values())

    def _read(self, count: int, seconds: float) -> list[dict[str, Any]]:
        """So many answers, each with the time at which it was there; fewer after so many seconds,
        or if the probes end."""
        assert self._process.stdout is not None
        answers: list[dict[str, Any]] = []
        deadline = time.monotonic() + seconds
        while len(answers) < count and (left := deadline - time.monotonic()) > 0:
            if not select.select([self._process.stdout], [], [], left)[0]:
                break
            content = os.read(self._process.stdout.fileno(), 65536)
            if not content:
                break
            received = time.time()
            *lines, self._text = (self._text + content).split(b"\n")
            for line in lines:
                answers += [{**said, "received": received} for said in said_in(line.decode())]
        return answers

    def complaint(self) -> str:
        """The last line that the step has written to its standard error."""
        lines = self._errors.read_text(errors="replace").splitlines()
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
