"""Pairs of runs of two commits: where they lie, in what order they are measured, their orders.

``results/settle/<base>-<new>-<digest>/`` has ``base/<run id>`` and ``new/<run id>``, a folder each
as those of a campaign. A pair counts once both of its runs have a record, so a call that was
killed is gone on with, and more repeats add to those that are there.
"""

import re
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from scalesweep.ab.checkouts import BadCommitError, Checkout, relocated, spellings
from scalesweep.ab.commits import SHORT, Repository
from scalesweep.ab.targets import Target, files_of
from scalesweep.compute.job_spec import ORDER, Order, write_order
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.record import RECORD, read_failure
from scalesweep.jobs.job_requests import Request
from scalesweep.jobs.run_spec import run_spec

FOLDER = "settle"  # in the results; as earlier versions called it
BASE, NEW = "base", "new"
FIRST = "first"  # folder of the runs that are not counted
SIDES = (BASE, NEW)
# What lies in the folder of a run that has ended, but for a user's files.
_OF_A_RUN = re.compile(
    r"attempt-[0-9]+|(record|failure|job|order)\.json|samples\.npz|power\.csv|launcher\.log|\.lock"
)


@dataclass(frozen=True)
class Planned:
    """A run to be measured; ``repeat`` None: the first one, which is not counted."""

    target: Target
    side: str
    repeat: int | None


class Ordered(NamedTuple):
    """A run to be launched: its order's path and digest, and the id of its point's first run."""

    order: Path
    digest: str
    group: str


@dataclass(frozen=True)
class Pairs:
    """The pairs of two commits in a campaign's results folder."""

    campaign: Campaign
    repository: Repository
    base: str
    new: str

    @cached_property
    def folder(self) -> Path:
        """Where they lie; another one where something else about the measurement has changed."""
        campaign = self.campaign
        site = campaign.site
        setting: list[object] = [
            site.name,
            site.launch and {k: list(v) for k, v in site.launch.items()},
        ]
        setting += [dict(site.env), list(site.prologue), list(campaign.track.build)]
        setting += [dict(campaign.programs), str(self.repository.top)]
        benchmarks = {
            experiment.benchmark.name: experiment.benchmark for experiment in campaign.experiments
        }
        setting += [_how(benchmarks[name]) for name in sorted(benchmarks)]
        setting += [
            [name, *(list(words) for words in site.launch_for(name).values())]
            for name in sorted({b.framework for b in benchmarks.values() if b.framework})
        ]
        name = f"{self.base[:SHORT]}-{self.new[:SHORT]}-{digest_of(setting, 3)}"
        return campaign.results / FOLDER / name

    def run_folder(self, planned: Planned) -> Path:
        """Folder of a run."""
        first = planned.repeat is None
        number = 0 if planned.repeat is None else planned.repeat
        side = self.folder / FIRST / planned.side if first else self.folder / planned.side
        return side / planned.target.run_id(number)

    def both(self, target: Target, repeat: int) -> tuple[Planned, Planned]:
        """The runs of a pair in the order in which they are measured: A B, then B A."""
        sides = SIDES if repeat % 2 == 0 else (NEW, BASE)
        return Planned(target, sides[0], repeat), Planned(target, sides[1], repeat)

    def is_there(self, target: Target, repeat: int) -> bool:
        """Whether both runs of a pair have a record."""
        return all(
            (self.run_folder(planned) / RECORD).exists() for planned in self.both(target, repeat)
        )

    def done(self, target: Target) -> list[int]:
        """Numbers of the pairs of a point that have been measured, whatever is asked for now."""
        done: list[int] = []
        while self.is_there(target, len(done)):
            done.append(len(done))
        return done

    def missing(self, target: Target) -> list[int]:
        """Numbers of the pairs that are asked for and not there."""
        return [n for n in range(target.repeats) if not self.is_there(target, n)]

    def schedule(
        self, targets: Sequence[Target], warm: Container[tuple[str, str]] = ()
    ) -> list[Planned]:
        """The runs that are missing, in the order in which they are measured.

        Of each point and commit one first that is not counted: it finds caches cold and bytecode
        missing; not where the checkout of a side has run a point (by the id of its first run)
        already (``warm``). Then blocks of two pairs, A B B A, point by point.
        """
        missing = {id(target): self.missing(target) for target in targets}
        first = [
            Planned(target, side, None)
            for target in targets
            if missing[id(target)]
            for side in SIDES
            if (side, target.run_id(0)) not in warm
        ]
        blocks = max((len(numbers) for numbers in missing.values()), default=0)
        return first + [
            run
            for at in range(0, blocks, 2)
            for target in targets
            for repeat in missing[id(target)][at : at + 2]
            for run in self.both(target, repeat)
        ]

    def failure(self, target: Target) -> tuple[str, str] | None:
        """The commit's side and the cause of a run of a point that has failed; None without one."""
        for planned in self._all(target):
            if failure := read_failure(self.run_folder(planned)):
                return planned.side, _failure_text(failure)
        return None

    def _all(self, target: Target) -> Iterator[Planned]:
        for side in SIDES:
            for repeat in (None, *range(target.repeats)):
                yield Planned(target, side, repeat)

    def order_all(
        self,
        schedule: Sequence[Planned],
        checkouts: Mapping[str, Checkout],
        requests: Mapping[str, Request],
    ) -> list[Ordered]:
        """Write the order of each run.

        What is there of a pair of which a run is missing is removed, so that both are measured one
        after the other. ``requests``: of the jobs they are in, by the id of a point's first run;
        none outside of Slurm. Raises BadCommitError if a commit lacks a program.
        """
        runs: list[Ordered] = []
        for planned in schedule:
            folder = self.run_folder(planned)
            _forget(folder)
            group = planned.target.run_id(0)
            order = self._order(planned, checkouts[planned.side], requests.get(group))
            runs.append(Ordered(folder / ORDER, write_order(folder / ORDER, order), group))
        return runs

    def _order(self, planned: Planned, checkout: Checkout, request: Request | None) -> Order:
        """The order that launches a run in a checkout: paths of the repository become those of the
        checkout.

        Raises BadCommitError if the commit lacks a file of the program, UserError if nothing in the
        order lies in the repository.
        """
        target, repeat = planned.target, planned.repeat or 0
        run = Run(target.run_id(repeat), target.point, repeat)
        order = run_spec(self.campaign, target.experiment, run, request)
        files = files_of(self.campaign, target)
        tops = spellings(self.repository.top, files)
        always = frozenset(files.values())

        def there(text: str) -> str:
            return relocated(text, tops, checkout.folder, always)

        order["folder"] = str(self.run_folder(planned).resolve())
        argv = list(map(there, order["argv"]))
        env = {name: there(value) for name, value in order["env"].items()}
        program = order.get("program")
        if program:
            program["files"] = {name: there(path) for name, path in program["files"].items()}
            lost = [path for path in program["files"].values() if _is_lost(path, checkout.folder)]
            if lost:
                name = Path(lost[0]).relative_to(checkout.folder)
                raise BadCommitError(checkout.commit, f"has no {name}")
        if argv == order["argv"] and env == order["env"]:
            raise UserError(
                f"{target.label}: nothing in its command or variables is a path in "
                f"{self.repository.top}: both commits would be the same; name the program there "
                "under `programs:`, or the right `track: {repository: PATH}`"
            )
        order["argv"], order["env"] = argv, env
        order["prologue"] = list(map(there, order["prologue"]))
        return order


def _how(benchmark: Benchmark) -> list[object]:
    """How a benchmark is started and read: what a run's id does not say."""
    parts = [[part.when and part.when.text, *part.words] for part in benchmark.command.parts]
    extract = benchmark.extract and benchmark.extract.digest
    return [benchmark.name, benchmark.version, benchmark.fingerprint(), parts, extract]


def _is_lost(path: str, folder: Path) -> bool:
    return path.startswith(f"{folder}/") and not Path(path).exists()


def _failure_text(failure: Mapping[str, object]) -> str:
    detail = f": {failure['detail']}" if failure.get("detail") else ""
    return f"{failure.get('cause')}{detail}"


def _forget(folder: Path) -> None:
    """Remove what a run has left; whatever else lies in its folder stays."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if not _OF_A_RUN.fullmatch(path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
