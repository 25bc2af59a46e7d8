"""Data sets that runs read: which files are needed, and the command that makes them."""

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError
from scalesweep.jobs.run_spec import data_folder


class _Need(NamedTuple):
    """What a staging job makes: the data set of a run, so many files of each split."""

    experiment: Experiment
    run: Run
    files: Mapping[str, int]

    @property
    def wanted(self) -> str:
        """The files in the name of their marker."""
        return "-".join(f"{split}{count}" for split, count in self.files.items())


class Staging:
    """The data sets of some runs, each with as many files as the most demanding run reads.

    ``take`` takes in runs that are planned later: files that earlier ones had staged stay, and
    more are added to them by a staging job of their own.
    """

    def __init__(self, campaign: Campaign, runs: Iterable[tuple[Experiment, Run]]) -> None:
        self._campaign = campaign
        self._needs: dict[str, list[_Need]] = {}  # by folder; each has the files of those before it
        self.take(runs)

    def take(self, runs: Iterable[tuple[Experiment, Run]]) -> None:
        """Take in further runs."""
        more: dict[str, _Need] = {}
        for experiment, run in runs:
            folder = self._folder(experiment, run)
            if folder is None or self._need(folder, experiment, run):
                continue
            files = _files(experiment, run.point)
            before = more.get(folder) or next(reversed(self._needs.get(folder, [])), None)
            known = before.files if before else {}
            files = {split: max(count, known.get(split, 0)) for split, count in files.items()}
            more[folder] = _Need(experiment, run, files)
        for folder, need in more.items():
            self._needs.setdefault(folder, []).append(need)

    def covers(self, experiment: Experiment, run: Run) -> bool:
        """Whether a run, or one that reads as much, was taken in, or it reads no data set."""
        folder = self._folder(experiment, run)
        return folder is None or self._need(folder, experiment, run) is not None

    def marker(self, experiment: Experiment, run: Run) -> list[str]:
        """Marker of the data set that a run reads, or nothing."""
        folder = self._folder(experiment, run)
        if folder is None or (need := self._need(folder, experiment, run)) is None:
            return []
        return [f"{folder}/staged-{need.wanted}"]

    def command(self, folder: str, wanted: str, workers: int) -> str:
        """Shell command that makes the files that the marker ``staged-<wanted>`` represents.

        Raises UserError if no run reads them.
        """
        needs = (need for need in self._needs.get(folder, ()) if need.wanted == wanted)
        need, site = next(needs, None), self._campaign.site
        data = need.experiment.benchmark.data if need else None
        if need is None or data is None:
            raise UserError(f"{folder}/staged-{wanted}: no pending run reads this data set")
        python = site.python_for(need.experiment.benchmark.framework)
        words = [python, *data.program, "--out", folder]
        for split, count in need.files.items():
            words += [f"--{split}", str(count)]
        parameters = json.dumps(data.spec(need.run.point), sort_keys=True)
        words += ["--params", parameters, "--workers", str(workers)]
        return shlex.join([*words, "--reserve-gb", f"{site.reserve_disk_gb:g}"])

    def lost(self) -> set[str]:
        """Markers of data sets that have lost files since; without them these are staged again."""
        markers = set()
        for folder, needs in self._needs.items():
            for need in needs:
                marker = Path(folder, f"staged-{need.wanted}")
                if marker.exists() and not _are_there(folder, need.files):
                    markers.add(str(marker))
        return markers

    def _folder(self, experiment: Experiment, run: Run) -> str | None:
        return data_folder(self._campaign, experiment.benchmark, run.point)

    def _need(self, folder: str, experiment: Experiment, run: Run) -> _Need | None:
        """The first that has all files of a run."""
        files = _files(experiment, run.point)
        for need in self._needs.get(folder, ()):
            if all(count <= need.files.get(split, 0) for split, count in files.items()):
                return need
        return None


def _files(experiment: Experiment, point: Mapping[str, Any]) -> Mapping[str, int]:
    data = experiment.benchmark.data
    return {} if data is None else data.needed(point)


def _are_there(folder: str, files: Mapping[str, int]) -> bool:
    return all(_has_files(Path(folder, split), count) for split, count in files.items())


def _has_files(folder: Path, count: int) -> bool:
    """Whether so many files are there under their last names: ``part-000000.csv`` and the like."""
    try:
        names = [path.name for path in folder.iterdir()]
        whole = sum(name.startswith("part-") and not name.endswith(".part") for name in names)
        return whole >= count
    except OSError:
        return count == 0
