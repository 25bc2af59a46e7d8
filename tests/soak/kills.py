"""kill -9 of all that takes part in a campaign, in every phase of it.

`make soak` calls this with a campaign of 30 runs, the tests with a shorter one. A seed decides the
order of the kills and the moments within the phases; a violation names it.
"""

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.soak.campaign import Soaked, ViolationError, make_soaked, wait_until
from tests.soak.running import (
    GONE_S,
    await_end,
    child_of,
    gone,
    last_attempt,
    launcher_of,
    outcome_of,
    phase_of,
    run_of,
    script_of,
    told,
    words_of,
)

PROGRAM = ("import", "init", "warmup", "timed", "teardown")
# Of a run: its launcher is there, the program's phases, the program has ended.
RUN = ("start", *PROGRAM, "record")
# Scripts behind the runs, and what each makes.
CHAIN = {
    "plan": "plan.csv", "summarise": "summary.parquet", "accounting": "jobs.csv",
    "tables": ".outputs/tables", "figures": ".outputs/figures", "report": "report.html",
}  # fmt: skip
# What takes part in a run: Snakemake, the launcher, the process that looks after it, the one that
# copies its words into a log, the program that starts the ranks, and ranks.
TARGETS = ("snakemake", "launcher", "guard", "tee", "mpirun", "rank 0", "rank 1")
# Without these a run goes on.
SPARE = ("guard", "tee")
RUN_KILLS = [
    ("snakemake", "start"), ("launcher", "start"),
    *((target, phase) for phase in PROGRAM for target in TARGETS),
    ("snakemake", "record"), ("launcher", "record"),
]  # fmt: skip
PARSE_KILLS = [("snakemake", "parse")] * 3
CHAIN_KILLS = [(target, phase) for phase in CHAIN for target in ("script", "snakemake")]
# Where a run is held until a kill is due, if not in the very phase.
HOLDS = {"start": "import", "record": "teardown"}
REPORT_S = 200.0
# A kill comes at most so long after that.
MOST_S = {"start": 0.1, "record": 0.03}


@dataclass
class Kill:
    """One kill, and what came of it."""

    target: str
    phase: str
    run: str = ""
    outcome: str = ""

    def __str__(self) -> str:
        """A row of the table."""
        return f"{self.target:<10} {self.phase:<11} {self.run:<24} {self.outcome}"


class Soak:
    """A campaign, and the kills that it goes through."""

    def __init__(self, project: Soaked, seed: int, through: int) -> None:
        """`through`: so many runs may finish while there are kills of runs to come."""
        self.project = project
        self.random = random.Random(seed)
        self.kills: list[Kill] = []
        self.calls = 0
        self._through = through
        self._hit: set[Path] = set()
        self._decided: dict[Path, bool] = {}
        self._gate = self._hold = project.path / f"hold-{PROGRAM[0]}"
        self._snakemake: subprocess.Popen[bytes] | None = None

    def kill(self, target: str, phase: str) -> Kill:
        """Bring a kill about, wait for the end of what must end, and check everything."""
        before = set(self.project.attempts())
        if phase == "parse":
            kill = self._kill_parse()
        elif phase in CHAIN:
            self._gate.unlink(missing_ok=True)
            if self._snakemake is None or self._snakemake.poll() is not None:
                self.project.bystanders.put_under_our_names(len(self.kills))
            kill = self._kill_chain(target, phase)
        else:
            kill = self._kill_run(target, phase)
        self.kills.append(kill)
        if target in ("snakemake", "script"):
            assert self._snakemake is not None
            code = self._snakemake.wait()
            if target == "script" and code == 0:
                raise ViolationError(f"{phase} was killed, and snakemake ends well")
            kill.outcome = f"exit {code}, nothing left of it after {self._gone():.1f} s"
        if kill.run:
            self._hit.update(filter(None, [last_attempt(self.project.runs / kill.run)]))
        if target == "snakemake":  # which may have gone on to the next run, or ended its parsing
            self._hit |= set(self.project.attempts()) - before
        self.project.check()
        return kill

    def check_plan(self) -> None:
        """Compare what `snakemake plan` counts with what is there, while nothing is at work."""
        status, plan = Counter(self.project.check().values()), self.project.plan()
        if status != plan:
            raise ViolationError(f"there are {dict(status)}, snakemake plan says {dict(plan)}")

    def finish(self) -> None:
        """Call Snakemake until all is done, and compare everything with what it must be."""
        self._gate.unlink(missing_ok=True)
        # The first may have known of runs that had failed already.
        for _ in range(3):
            if self._running().wait() == 0:
                break
            self.project.check()
        else:
            raise ViolationError("the campaign does not come to its end")
        self._gone()
        planned = self.project.run_ids
        if (status := Counter(self.project.check().values())) != {"done": len(planned)}:
            raise ViolationError(f"at the end there are {dict(status)} of {len(planned)} runs")
        self.project.check_tables()
        attempts = set(self.project.attempts())
        lost = attempts - {self.project.kept(run_id) for run_id in planned}
        if lost - self._hit:
            raise ViolationError(
                f"attempts failed that no kill has hit: {sorted(lost - self._hit)}"
            )
        if self._running().wait() or len(set(self.project.attempts())) != len(attempts):
            raise ViolationError("a finished campaign was not left alone")

    def totals(self) -> str:
        """The kills by target and phase, and what they came to."""
        attempts, planned = list(self.project.attempts()), self.project.run_ids
        counts = Counter((kill.target, kill.phase) for kill in self.kills)
        phases = ["parse", *RUN, *CHAIN]
        lines = [f"{'kills':<10}" + "".join(f"{phase:>11}" for phase in phases)]
        for target in (*TARGETS, "script"):
            row = (str(counts[target, phase] or ".") for phase in phases)
            lines.append(f"{target:<10}" + "".join(f"{count:>11}" for count in row))
        lost = len(attempts) - len(planned)
        lines.append(
            f"{len(self.kills)} kills in {self.calls} calls of snakemake: {len(planned)} of "
            f"{len(planned)} runs done, {len(attempts)} attempts, {lost} of them ended by kills"
        )
        return "\n".join(lines)

    def end(self) -> None:
        """End everything that is left."""
        for process in self.project.alive():
            with contextlib.suppress(psutil.Error):
                process.kill()
        if self._snakemake is not None:
            self._snakemake.wait()

    def _kill_parse(self) -> Kill:
        # The kill before was one of a Snakemake: else all its runs would have to be waited for.
        process = self._running()
        time.sleep(self.random.uniform(0.0, 1.5))
        _kill(process.pid)
        return Kill("snakemake", "parse")

    def _kill_run(self, target: str, phase: str) -> Kill:
        # Every run stops in the phase that the kill is meant for, and then before its first one
        # until there is another kill.
        self._hold = self.project.path / f"hold-{HOLDS.get(phase, phase)}"
        while True:
            self._hold.touch()
            if self._hold != self._gate:
                self._gate.unlink(missing_ok=True)
            with contextlib.suppress(psutil.Error):
                kill = self._try_run(target, phase)
                if kill is not None:
                    self._gate.touch()
                    if self._hold != self._gate:
                        self._hold.unlink(missing_ok=True)
                    return kill

    def _try_run(self, target: str, phase: str) -> Kill | None:
        """Bring the kill about in the run that is at work, if that is possible."""
        snakemake = self._running()
        launcher = launcher_of(snakemake)
        if launcher is None:
            time.sleep(0.01)
            if snakemake.poll() == 0:
                raise RuntimeError("no run is left to be killed")
            return None
        folder = self.project.path / run_of(launcher)
        if self._is_spared(folder):
            self._hold.unlink()
            await_end(launcher, None)
            return None
        kill = Kill(target, phase, folder.name)
        reached = self._await_phase(phase, launcher, folder)
        return kill if reached and self._strike(kill, launcher, folder) else None

    def _await_phase(self, phase: str, launcher: psutil.Process, folder: Path) -> bool:
        """Wait for a moment in a run's phase; False if there is none."""
        held = HOLDS.get(phase, phase)
        if phase != "start":
            wait_until(lambda: gone(launcher) or phase_of(folder) == held, f"{folder}: {held}")
        if gone(launcher):
            return False
        if phase == "record":
            # The launcher is stopped until its program has ended.
            launcher.suspend()
            self._hold.unlink()
            program = child_of(launcher, "mpirun")
            wait_until(lambda: program is None or gone(program), f"{folder}: its program's end")
            launcher.resume()
        elif phase != "start":
            self._hold.unlink()
        time.sleep(self.random.uniform(0.0, MOST_S.get(phase, 0.04)))
        return True

    def _strike(self, kill: Kill, launcher: psutil.Process, folder: Path) -> bool:
        """Kill the target in this run; False if it was gone."""
        attempt = last_attempt(folder)
        if kill.phase == "start" and attempt and phase_of(folder):
            kill.phase = "import"
        victim = self._pid(kill.target, launcher, attempt)
        if victim is None or not _kill(victim):
            return False
        if kill.target in SPARE:
            kill.outcome = "the run goes on"
            self._hold.unlink(missing_ok=True)
            await_end(launcher, None)
        elif kill.target != "snakemake":
            await_end(launcher, attempt)
            kill.outcome = outcome_of(folder, attempt)
        return True

    def _kill_chain(self, target: str, phase: str) -> Kill:
        while True:
            snakemake = self._running()
            script = None
            while script is None and snakemake.poll() is None:
                time.sleep(0.01)
                script = script_of(snakemake, phase)
            if script is None:
                # It was done already: have it done again.
                output = self.project.path / "results" / CHAIN[phase]
                shutil.rmtree(output) if output.is_dir() else output.unlink(missing_ok=True)
                continue
            time.sleep(self.random.uniform(0.0, 1.0))
            if _kill(snakemake.pid if target == "snakemake" else script.pid):
                return Kill(target, phase)

    def _is_spared(self, folder: Path) -> bool:
        """Whether this attempt is let through; decided once."""
        attempt = last_attempt(folder) or folder
        if attempt not in self._decided:
            done = len(list(self.project.runs.glob("*/record.json")))
            self._decided[attempt] = done < self._through and self.random.random() < 0.4
        return self._decided[attempt]

    def _pid(self, target: str, launcher: psutil.Process, attempt: Path | None) -> int | None:
        if target == "snakemake":
            assert self._snakemake is not None
            return self._snakemake.pid
        if target == "launcher":
            return int(launcher.pid)
        if target.startswith("rank"):
            words = told(attempt, int(target[-1])) if attempt else []
            return int(words[0][1]) if words else None
        child = child_of(launcher, target)
        return None if child is None else int(child.pid)

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._snakemake is None or self._snakemake.poll() is not None:
            self._snakemake = self.project.start()
            self.calls += 1
        return self._snakemake

    def _gone(self) -> float:
        """Wait until nothing is at work any more; how long that took."""
        began = time.monotonic()
        while left := self.project.alive():
            words = [words_of(each) for each in left]
            # Of runs that failed a report may be in the making, which comes to its end.
            seconds = GONE_S if not any("pending=ignore" in each for each in words) else REPORT_S
            if time.monotonic() > began + seconds:
                raise ViolationError(f"still at work after {seconds:g} s: {words}")
            time.sleep(0.02)
        return time.monotonic() - began


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return False
    return True


def soak(project: Soaked, seed: int, kills: Sequence[tuple[str, str]], through: int) -> Soak:
    """Bring all these kills about, finish the campaign and return what was done.

    `through`: so many runs may finish while there are kills of runs to come. Prints each kill.
    Raises ViolationError, naming the seed.
    """
    made = Soak(project, seed, through)
    try:
        for target, phase in kills:
            print(made.kill(target, phase), flush=True)
            if phase == "parse":
                made.check_plan()
        made.finish()
    except ViolationError as violation:
        raise ViolationError(f"seed {seed}: {violation}") from violation
    finally:
        made.end()
    print(made.totals())
    return made


def main() -> None:
    """The whole soak: every target in every phase, and more until there were `--kills`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="at least so many")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--keep", type=Path, help="leave the campaign in this new folder")
    args = parser.parse_args()
    draw = random.Random(args.seed)
    more = args.kills - len(RUN_KILLS) - len(PARSE_KILLS) - len(CHAIN_KILLS)
    kills = [*RUN_KILLS, *draw.choices(RUN_KILLS, k=max(0, more))]
    draw.shuffle(kills)
    last = max(index for index, kill in enumerate(kills) if kill[0] == "snakemake")
    kills[last + 1 : last + 1] = PARSE_KILLS
    print(f"seed {args.seed}\n{'target':<10} {'phase':<11} {'run':<24} outcome", flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        path = args.keep or Path(folder).resolve() / "project"
        try:
            project = make_soaked(path, sizes=10)
            # Some runs end well although something was killed; one is left for the last kill.
            well = sum(target in SPARE or phase == "record" for target, phase in kills)
            through = len(project.run_ids) - well - 1
            soak(project, args.seed, [*kills, *CHAIN_KILLS], through)
        except ViolationError as violation:
            sys.exit(f"violation: {violation}")


if __name__ == "__main__":
    main()
