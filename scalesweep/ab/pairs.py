"""Pairs of runs of two commits: where they lie, in what order they are measured, their orders.

``results/ab/<base>-<new>/<point>-<digest>/`` has ``base/<run id>`` and ``new/<run id>``, a folder
each as those of a campaign. A pair counts once both of its runs have a record, so a call that was
killed is gone on with, and more repeats add to those that are there.
"""

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scalesweep.ab.checkouts import relocated, spellings
from scalesweep.ab.commits import SHORT, Repository
from scalesweep.ab.targets import Target, files_of
from scalesweep.compute.job_spec import ORDER, Order, write_order
from scalesweep.config.campaign import Campaign
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.record import RECORD, read_failure
from scalesweep.jobs.run_spec import run_spec

FOLDER = "ab"  # in the results
BASE, NEW = "base", "new"
FIRST = "first"  # folder of the runs that are not counted
SIDES = (BASE, NEW)


@dataclass(frozen=True)
class Planned:
    """A run to be measured; ``repeat`` None: the first one, which is not counted."""

    target: Target
    side: str
    repeat: int | None


@dataclass(frozen=True)
class Pairs:
    """The pairs of two commits in a campaign's results folder."""

    campaign: Campaign
    repository: Repository
    base: str
    new: str
    _places: dict[str, Path] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self.campaign.results / FOLDER / f"{self.base[:SHORT]}-{self.new[:SHORT]}"

    def commit(self, side: str) -> str:
        """The commit of a side."""
        return self.base if side == BASE else self.new

    def place(self, target: Target) -> Path:
        """Folder of a point; another one if something else about its measurement has changed."""
        point = target.run_id(0)
        if point not in self._places:
            order = {**self._spec(target, 0), "folder": ""}
            how = [order, list(self.campaign.track.build), str(self.repository.top)]
            self._places[point] = self.folder / f"{point}-{digest_of(how, 3)}"
        return self._places[point]

    def _spec(self, target: Target, repeat: int) -> Order:
        run = Run(target.run_id(repeat), target.point, repeat)
        return run_spec(self.campaign, target.experiment, run)

    def run_folder(self, planned: Planned) -> Path:
        """Folder of a run."""
        place, repeat = self.place(planned.target), planned.repeat
        side = place / FIRST / planned.side if repeat is None else place / planned.side
        return side / planned.target.run_id(repeat or 0)

    def is_there(self, target: Target, repeat: int) -> bool:
        """Whether both runs of a pair have a record."""
        runs = (Planned(target, side, repeat) for side in SIDES)
        return all((self.run_folder(run) / RECORD).exists() for run in runs)

    def done(self, target: Target) -> list[int]:
        """Numbers of the pairs of a point that have been measured, whatever is asked for now."""
        return [*itertools.takewhile(lambda n: self.is_there(target, n), itertools.count())]

    def schedule(self, targets: Sequence[Target]) -> list[Planned]:
        """The runs that are missing, in the order in which they are measured.

        Of each point and commit one first that is not counted: it finds caches cold and bytecode
        missing. Then blocks of two pairs, A B B A, point by point.
        """
        missing = [
            (target, [n for n in range(target.repeats) if not self.is_there(target, n)])
            for target in targets
        ]
        blocks = max((len(repeats) for _, repeats in missing), default=0)
        return [
            Planned(target, side, None) for target, repeats in missing if repeats for side in SIDES
        ] + [
            Planned(target, side, repeat)
            for at in range(0, blocks, 2)
            for target, repeats in missing
            for repeat in repeats[at : at + 2]
            for side in (SIDES if repeat % 2 == 0 else SIDES[::-1])
        ]

    def failure(self, target: Target) -> tuple[str, str] | None:
        """The commit's side and the cause of a run of a point that has failed; None without one."""
        for side in SIDES:
            for repeat in (None, *range(target.repeats)):
                if failure := read_failure(self.run_folder(Planned(target, side, repeat))):
                    detail = f": {failure['detail']}" if failure.get("detail") else ""
                    return side, f"{failure.get('cause')}{detail}"
        return None

    def order(self, planned: Planned, checkout: Path) -> tuple[Path, str]:
        """Write the order that launches a run in a checkout; its path and digest.

        Paths of the repository become those of the checkout. What is left of the run is removed.
        Raises UserError if nothing in the order lies in the repository.
        """
        target = planned.target
        order = self._spec(target, planned.repeat or 0)
        files = files_of(self.campaign, target)
        tops, always = spellings(self.repository.top, files.values()), frozenset(files.values())

        def there(text: str) -> str:
            return relocated(text, tops, checkout, always)

        argv = list(map(there, order["argv"]))
        env = {name: there(value) for name, value in order["env"].items()}
        if argv == order["argv"] and env == order["env"]:
            raise UserError(
                f"{target.label}: nothing in its command or variables is a path in "
                f"{self.repository.top}: both commits would be the same; name the program there "
                "under `programs:`, or the right `track: {repository: PATH}`"
            )
        program = order.get("program")
        if program:
            program["files"] = {name: there(path) for name, path in program["files"].items()}
        folder = self.run_folder(planned)
        shutil.rmtree(folder, ignore_errors=True)
        order["folder"] = str(folder.resolve())
        order["argv"], order["env"] = argv, env
        order["prologue"] = list(map(there, order["prologue"]))
        return folder / ORDER, write_order(folder / ORDER, order)
