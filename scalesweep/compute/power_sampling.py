"""The launcher's part: samplers started before the program, stopped after it, and their result.

Standard library only. Costs some calls of stat where there is nothing to read.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from scalesweep.compute.job_spec import Order, PowerOrder
from scalesweep.compute.power import nothing
from scalesweep.compute.power.counters import host_name, nothing_here
from scalesweep.compute.program import environment, is_anywhere
from scalesweep.compute.program_output import read_spans
from scalesweep.core.files import write_atomic
from scalesweep.core.record import POWER, described, last_lines

_LOG = "power.log"
# A step with one sampler on each node, next to the program's own: it may share everything with it.
_SRUN = (
    "srun", "--overlap", "--nodes={nodes}", "--ntasks={nodes}", "--ntasks-per-node=1",
    "--cpus-per-task=1", "--mem=0", "--mpi=none", "--cpu-bind=none", "--wait=0",
    "--kill-on-bad-exit=0", "--job-name=power",
)  # fmt: skip
# A program is not kept waiting longer for its samplers.
READY_S = 10.0
_END_S = 4.0  # after the end of its input a sampler has so long for its last sample


class Sampling:
    """Samplers around a program: ``with Sampling(spec, work) as sampling: <the program>``.

    ``spec``: the launcher's order; its ``power`` has interval_s, sources, sysfs and nodes, or is
    None (switched off). ``work``: folder of the attempt, which every node must see.
    """

    def __init__(self, spec: Order, work: Path) -> None:
        self._spec, self._work = spec, work
        self._asked = spec.get("power")
        self._missing = "" if self._asked else "switched off (power: off)"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the samplers, if there is something to read, and wait for their first samples."""
        if self._asked:
            self._missing = self._why_not(self._asked) or self._start(self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the samplers and wait for their last samples."""
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
                break

    def _why_not(self, asked: PowerOrder) -> str:
        """Why no sampler is started; empty if one is. Nodes of one job are the same: what the
        first one lacks is not looked for on the others."""
        nodes = asked["nodes"]
        if why := nothing_here(asked["sysfs"], asked["sources"], host_name()):
            return why
        if nodes > 1 and "SLURM_JOB_ID" not in os.environ:
            return f"the run takes {nodes} nodes: samplers start on other nodes in a Slurm job only"
        if is_anywhere(self._spec["params"]):
            return f"on which {nodes} of the nodes of its Slurm job it is is not known"
        return ""

    def _start(self, asked: PowerOrder) -> str:
        """Start a sampler on each of the run's nodes; why that is not possible, else empty."""
        given = {**asked, "out": str(self._work.resolve())}
        sampler = str(Path(__file__).parent / "power" / "sampler.py")
        program = [sys.executable, "-I", "-S", sampler, json.dumps(given)]
        if asked["nodes"] > 1:
            program = [word.format(nodes=asked["nodes"]) for word in _SRUN] + program
        with (self._work / _LOG).open("wb") as log:
            try:
                # Their end is that of their input, which a launcher killed with -9 closes too.
                self._process = subprocess.Popen(
                    program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                    env=environment(self._spec), start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                return f"{program[0]} cannot be started: {error.strerror}"
        assert self._process.stdout is not None
        # Each sampler says so when it has its first sample, or has none.
        said, last = b"", time.monotonic() + READY_S
        while said.count(b"\n") < asked["nodes"] and (left_s := last - time.monotonic()) > 0:
            if select.select([self._process.stdout], [], [], left_s)[0]:
                content = os.read(self._process.stdout.fileno(), 65536)
                if not content:
                    break
                said += content
        return ""

    def result(self, window: tuple[float, float]) -> dict[str, Any]:
        """``{"energy": ...}`` for the record (nothing if the order names no power).

        ``window``: when the program ran (Unix seconds). Leaves power.csv in the attempt's folder
        if there are samples. Phases and work are read from the program's native.json, if any.
        """
        if "power" not in self._spec:
            return {}
        interval_s = float(self._asked["interval_s"]) if self._asked else None
        if self._missing or self._asked is None:
            return {"energy": nothing(self._missing, interval_s)}
        # Imported where there are samples: every other launch is spared the milliseconds.
        from scalesweep.compute.power.energy import energy_of, power_table, read_host

        try:
            hosts = [read_host(path) for path in sorted(self._work.glob("power-*.json"))]
            why = (last_lines(self._work / _LOG) or ["it said nothing"])[-1]
        except (OSError, ValueError, KeyError) as error:
            hosts, why = [], f"what it left cannot be read: {error}"
        if not hosts:
            return {"energy": nothing(f"the sampler failed: {why}", interval_s)}
        energy = energy_of(hosts, self._asked["nodes"], window, *read_spans(self._work))
        if table := power_table(hosts):
            write_atomic(self._work / POWER, table)
            energy["table"] = described(self._work / POWER)
        return {"energy": energy}
