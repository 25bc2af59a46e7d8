"""Data sets that runs read: which files are needed, and the command that makes them."""

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

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
    """The data sets of some runs, each with as many files as the most demanding run reads."""

    def __init__(self, campaign: Campaign, runs: Iterable[tuple[Experiment, Run]]) -> None:
        self._campaign = campaign
        self._needs: dict[str, _Need] = {}  # by folder
        self._looked_at: set[str] = set()  # folders
        for experiment, run in runs:
            self._take(experiment, run)

    def _take(self, experiment: Experiment, run: Run) -> str | None:
        """Take in a run; the folder of its data set, None if it reads none."""
        folder = data_folder(self._campaign, experiment.benchmark, run.point)
        if folder is not None:
            data = experiment.benchmark.data
            files = data.needed(run.point) if data else {}
            known = self._needs.get(folder)
            if known is None or any(n > known.files.get(split, 0) for split, n in files.items()):
                before = known.files if known else {}
                most = {split: max(count, before.get(split, 0)) for split, count in files.items()}
                self._needs[folder] = _Need(experiment, run, {**before, **most})
        return folder

    def marker(self, experiment: Experiment, run: Run) -> list[str]:
        """Marker of the data set that a run reads, or nothing. The marker of a set that has lost
        files since is removed: it is staged again."""
        folder = self._take(experiment, run)  # it may be forced, and none of the pending ones
        if not folder:
            return []
        need = self._needs[folder]
        marker = Path(folder, f"staged-{need.wanted}")
        if folder not in self._looked_at:
            self._looked_at.add(folder)
            if not all(_has_files(Path(folder, split), n) for split, n in need.files.items()):
                marker.unlink(missing_ok=True)
        return [str(marker)]

    def command(self, folder: str, wanted: str, workers: int) -> str:
        """Shell command that makes the files that the marker ``staged-<wanted>`` represents.

        Raises UserError if no run reads them.
        """
        need, site = self._needs.get(folder), self._campaign.site
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


def _has_files(folder: Path, count: int) -> bool:
    """Whether so many files are there under their last names: ``part-000000.csv`` and the like."""
    try:
        names = [path.name for path in folder.iterdir()]
        whole = sum(name.startswith("part-") and not name.endswith(".part") for name in names)
        return whole >= count
    except OSError:
        return count == 0
