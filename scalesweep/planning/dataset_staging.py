"""Data sets that runs read: which files are needed, and the command that makes them."""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.errors import UserError
from scalesweep.planning.run_spec import data_folder


class Staging:
    """The data sets of some runs, each with as many files as the most demanding run reads."""

    def __init__(self, campaign: Campaign, runs: Iterable[tuple[Experiment, Run]]) -> None:
        self._campaign = campaign
        self._needs: dict[str, tuple[Experiment, Run, dict[str, int]]] = {}
        for experiment, run in runs:
            data = experiment.benchmark.data
            folder = data_folder(campaign, experiment.benchmark, run.point)
            if data is None or folder is None:
                continue
            files = data.needed(run.point)
            if folder in self._needs:
                known = self._needs[folder][2]
                files = {split: max(count, known[split]) for split, count in files.items()}
            self._needs[folder] = (experiment, run, files)
        self._markers = {
            folder: "staged-" + "-".join(f"{split}{count}" for split, count in files.items())
            for folder, (_, _, files) in self._needs.items()
        }

    def marker(self, experiment: Experiment, run: Run) -> list[str]:
        """Marker of the data set that a run reads, or nothing."""
        folder = data_folder(self._campaign, experiment.benchmark, run.point)
        return [] if folder is None else [f"{folder}/{self._markers[folder]}"]

    def command(self, folder: str, wanted: str, workers: int) -> str:
        """Shell command that makes the files that the marker ``staged-<wanted>`` represents.

        Raises UserError if no run reads them.
        """
        experiment, run, files = self._needs[folder]
        data, site = experiment.benchmark.data, self._campaign.site
        if data is None or self._markers[folder] != f"staged-{wanted}":
            raise UserError(f"{folder}/staged-{wanted}: no pending run reads this data set")
        words = [site.python, *data.program, "--out", folder]
        for split, count in files.items():
            words += [f"--{split}", str(count)]
        parameters = json.dumps(data.spec(run.point), sort_keys=True)
        words += ["--params", parameters, "--workers", str(workers)]
        return shlex.join([*words, "--reserve-gb", f"{site.reserve_disk_gb:g}"])

    def lost(self) -> set[str]:
        """Markers of data sets that have lost files since; without them these are staged again."""
        found = set()
        for folder, (_, _, files) in self._needs.items():
            marker = Path(folder, self._markers[folder])
            if marker.exists() and not all(
                _has_files(Path(folder, split), count) for split, count in files.items()
            ):
                found.add(str(marker))
        return found


def _has_files(folder: Path, count: int) -> bool:
    """Whether so many files are there under their last names: ``part-000000.csv`` and the like."""
    try:
        names = [path.name for path in folder.iterdir()]
        whole = sum(name.startswith("part-") and not name.endswith(".part") for name in names)
        return whole >= count
    except OSError:
        return count == 0
