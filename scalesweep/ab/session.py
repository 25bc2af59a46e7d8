"""A call of ``scalesweep ab`` or ``bisect``: its points, their cost, and measuring two commits."""

import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from scalesweep.ab.commits import SHORT, BadCommitError, Checkouts, Repository, say
from scalesweep.ab.outcome import Measured, read_pairs, report
from scalesweep.ab.pairs import FOLDER, SIDES, Pairs, Planned, Target, repository_of, targets_of
from scalesweep.compute.job_spec import LAUNCHER_LOG
from scalesweep.config.campaign import Campaign
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, duration
from scalesweep.core.locks import claim
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.paths import REPO
from scalesweep.history.store import SESSIONS, load
from scalesweep.jobs.job_requests import request_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.planning.plan import build_plan
from scalesweep.smk.cli import SNAKEMAKE
from scalesweep.state.stock import take_stock

CHECKOUTS = "checkouts"  # folder in FOLDER
_SCRIPT = REPO / "workflow" / "scripts" / "step.py"
_TELL_S = 10.0  # between two lines on the progress


class AbSession:
    """What both commands share; ``open`` takes the results folder and removes the worktrees."""

    def __init__(self, campaign: Campaign, options: Mapping[str, str]) -> None:
        """``options``: points, metric and repeats, as they were typed. Raises UserError."""
        self.campaign = campaign
        self.targets = targets_of(
            campaign, *(options.get(name, "") for name in ("points", "metric", "repeats"))
        )
        self.repository: Repository = repository_of(campaign, self.targets)
        states = take_stock(campaign, campaign.unique_runs())
        self._estimates = Estimates(campaign, states)
        plan = build_plan(campaign, states)
        self._entries = {entry["name"]: entry for entry in plan["experiments"]}
        folder = campaign.results / FOLDER / CHECKOUTS
        build, prologue = campaign.keys.track.build, campaign.site.prologue
        self._checkouts = Checkouts(self.repository, folder, build, prologue)

    def pairs(self, base: str, new: str) -> Pairs:
        """The pairs of two commits."""
        return Pairs(self.campaign, self.repository, base, new)

    def left(self, pairs: Pairs) -> Mapping[str, int]:
        """How many runs of each point (by the id of its first run) are left to be measured."""
        return Counter(planned.target.run_id(0) for planned in pairs.schedule(self.targets))

    def cost_text(self, counts: Mapping[str, int]) -> str:
        """What so many runs of each point (by the id of its first run) cost:
        ``36 runs, about 12 min``."""
        if not (runs := sum(counts.values())):
            return "nothing: all of it has been measured"
        asked = [target for target in self.targets if counts.get(target.run_id(0))]
        seconds = sum(counts[target.run_id(0)] * self._seconds(target) for target in asked)
        unknown = "an unknown time: nothing like it has been measured"
        time = f"about {duration(seconds)}" if math.isfinite(seconds) else unknown
        return f"{counted(runs, 'run')}, {time}"

    def _seconds(self, target: Target) -> float:
        """What a run is expected to take: from the campaign's runs, else its history's; NaN if that
        is not known."""
        run = Run(target.run_id(0), target.point, 0)
        seconds = self._estimates.seconds(target.experiment, run)
        history = self.campaign.history
        if seconds is not None or history is None or not (history.folder / SESSIONS).is_dir():
            return math.nan if seconds is None else seconds
        rows = load(history.folder, ["run_id", "started", "ended"])
        own = rows[rows["run_id"].isin([target.run_id(n) for n in range(target.repeats)])]
        return float((own["ended"] - own["started"]).dt.total_seconds().median())

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have the results folder and the checkouts to itself; raises UserError if another has,
        or the site's runs need an allocation and this is none."""
        if self.campaign.site.slurm and "SLURM_JOB_ID" not in os.environ:
            raise UserError(self._allocation())
        # So that worktrees are removed: at the end of an allocation too.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
        with claim(self.campaign.results):
            try:
                self._checkouts.clear()  # what a call that was killed has left
                yield
            finally:
                self._checkouts.clear()

    def _allocation(self) -> str:
        """How to get the allocation that the largest point needs."""
        site = self.campaign.site
        target = max(self.targets, key=lambda target: site.nodes_for(target.point))
        run = Run(target.run_id(0), target.point, 0)
        shape = request_for(self.campaign, target.experiment, run, self._estimates).shape
        words = [word for word in shape.sbatch_words() if not word.startswith("--time=")]
        call = shlex.quote(shlex.join(["scalesweep", *sys.argv[1:]]))
        return (
            f"site {site.name}: both commits are measured in one allocation of Slurm: "
            f"sbatch {' '.join(words)} --time=1:00:00 --wrap {call}"
        )

    def measure(self, pairs: Pairs, targets: Sequence[Target]) -> list[Measured]:
        """Measure what is missing of some pairs, and read all of them.

        A point at which a commit fails has a ``failure``. Raises BadCommitError naming the commit
        that cannot be built, or that fails where nothing else was measured, and UserError.
        """
        if schedule := pairs.schedule(targets):
            commits = f"{pairs.base[:SHORT]} and {pairs.new[:SHORT]}"
            say(f"{commits}: {counted(len(schedule), 'run')}, alternately")
            self._launch_all(pairs, schedule)
        results = [read_pairs(pairs, t, self._entries[t.experiment.name]) for t in targets]
        if not any(entry.logs.size for entry in results):
            for entry in results:
                if entry.failure:
                    side, why = entry.failure
                    raise BadCommitError(
                        pairs.commit(side), f"fails at {entry.target.label}: {why}"
                    )
        return results

    def _launch_all(self, pairs: Pairs, schedule: Sequence[Planned]) -> None:
        """Launch runs one after the other. Once a run has failed, the others of its point are left
        out."""
        checkouts = {
            side: self._checkouts.make(letter, pairs.commit(side))
            for side, letter in zip(SIDES, "ab", strict=True)
        }
        failed: set[str] = set()
        last = time.monotonic()
        for number, planned in enumerate(schedule):
            point = planned.target.run_id(0)
            if time.monotonic() - last >= _TELL_S:
                last = time.monotonic()
                say(f"run {number} of {len(schedule)}")
            if point not in failed and _launch(*pairs.order(planned, checkouts[planned.side])):
                failed.add(point)


def measure_ab(campaign: Campaign, options: Mapping[str, str], show: bool) -> None:
    """Measure ``base`` and ``new`` of the options alternately, and print what they show.

    What it costs is said first; ``show``: only that. Raises UserError.
    """
    session = AbSession(campaign, options)
    repository, targets = session.repository, session.targets
    base, new = (repository.commit(options[n], n) for n in ("BASE", "NEW"))
    pairs = session.pairs(base, new)
    for name, commit in (("base", base), ("new", new)):
        say(f"{name}: {repository.described(commit)}")
    repository.say_local_changes()
    say(f"{counted(len(targets), 'point')}; of each commit a first run at each is not counted")
    say(f"cost: {session.cost_text(session.left(pairs))}")
    if show:
        return
    with session.open():
        measured = session.measure(pairs, targets)
    report(measured, pairs, fail_on=options["fail_on"])


def _launch(order: Path, digest: str) -> int:
    """Launch a run, which ends when this process does; the launcher's exit code."""
    words = [sys.executable, str(_SCRIPT), "launch"]
    words += ["--order", str(order.resolve()), "--digest", digest]
    with (
        order.with_name(LAUNCHER_LOG).open("w") as log,
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, SNAKEMAKE: str(os.getpid())},
            preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads here)
        ) as process,
    ):  # fmt: skip
        try:
            return process.wait()
        finally:
            process.terminate()
