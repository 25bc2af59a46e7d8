"""Runs whose framework the site does not have: nothing can be started, and one line mends it.

Worked out whenever the states of runs are asked for, and recorded nowhere: once the site has the
framework, the runs are pending as if nothing had been.
"""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import by_experiment
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.config.site import Site
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import counted
from scalesweep.core.paths import CHECKOUT
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState


def lacks_framework(site: Site, benchmark: Benchmark) -> str | None:
    """Why a site cannot start a benchmark's programs, with what mends it; None if it can, or if
    that cannot be seen from here (a prologue that brings it, the nodes of a cluster)."""
    name = benchmark.framework
    if name is None or benchmark.python is not None or site.launch is None:
        return None
    own = (CHECKOUT or Path.cwd()) / f".{name}" / "bin" / "python"
    by_hand = f"python3 -m venv .{name} && .{name}/bin/pip install {name} numpy"
    makes = f"make {name}" if CHECKOUT else by_hand
    python = site.own_python(name)
    if python is None:
        return (
            f"{site.file} names no Python that has {name}: add 'python: {{{name}: PATH}}' to it "
            f"(`{makes}` makes {own})"
        )
    path = Path(python)
    if site.prologue or site.slurm or path.exists() or shutil.which(path):
        return None
    mend = f"`{makes}` makes it" if path == own else "correct the path"
    return f"{site.file}: python.{name}: {python!r} is not there: {mend}"


def leave_unsupported(
    site: Site, runs: Mapping[str, tuple[Experiment, Run]], states: Mapping[str, RunState]
) -> Mapping[str, RunState]:
    """The states, with nothing left to run for pending runs whose framework the site lacks."""
    lacking = {
        i: states[i]._replace(status=Status.UNSUPPORTED, cause=Cause.UNSUPPORTED, detail=why)
        for experiment, run_ids in by_experiment(runs)
        if (why := lacks_framework(site, experiment.benchmark)) is not None
        for i in run_ids
        if not states[i].settled
    }
    return {**states, **lacking} if lacking else states


def tell_lacking(
    site: Site, runs: Mapping[str, tuple[Experiment, Run]], states: Mapping[str, RunState]
) -> Sequence[str]:
    """A line for each reason for which pending runs are not started: how many, what mends it."""
    reasons: Counter[str] = Counter()
    for experiment, run_ids in by_experiment(runs):
        if (why := lacks_framework(site, experiment.benchmark)) is not None:
            reasons[why] += sum(states[i].status == Status.UNSUPPORTED for i in run_ids)
    return [f"{counted(n, 'run is', 'runs are')} unsupported: {why}" for why, n in reasons.items()]
