"""Finish a campaign in the working folder by writing what its runs and its report would leave.

Called by ``projects.finish``, which puts the project's own ``scalesweep`` on the path. Every run
gets a record and samples of its own, written as fast as the file system takes them, not durably as
the launcher does. Tables, figures and report are empty files, newer than what they are made from.
"""

import hashlib
import io
import os
import sys
from pathlib import Path

import numpy as np

from scalesweep.config.campaign import load_campaign
from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.record import RECORD, SAMPLES, SCHEMA
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.state.artifacts import OUTPUTS, stamp_state
from scalesweep.state.stock import take_stock

MADE = (
    *("summary.parquet", "jobs.csv", f"{OUTPUTS}/tables/.snakemake_timestamp"),
    *(f"{OUTPUTS}/figures/.snakemake_timestamp", "report.html"),
)


def write(folder: str, files: dict[str, bytes]) -> None:
    """Make a folder with these files; there are 100,000 to make, so without Path."""
    os.mkdir(folder)  # noqa: PTH102
    for name, content in files.items():
        with open(f"{folder}/{name}", "wb") as file:  # noqa: PTH123
            file.write(content)


def main() -> None:
    """Write the runs of the campaign file that is named, then what depends on them."""
    campaign = load_campaign(Path(sys.argv[1]))
    runs = campaign.unique_runs()
    archive = io.BytesIO()
    np.savez(archive, local_times=np.ones((3, 1)), global_times=np.ones((3, 1)))
    samples = archive.getvalue()
    digest = hashlib.blake2b(samples, digest_size=16).hexdigest()
    same = {
        "schema": SCHEMA, "site": campaign.site.name, "source": "simulated", "wall_s": 1.0,
        "started": "2026-01-01T00:00:00.000+00:00", "ended": "2026-01-01T00:00:01.000+00:00",
        "attempt": 1, "phases": {"timed": 1.0}, "metrics": {}, "work": {}, "resources": {},
        "environment": {}, "notes": {}, "git": None, "command": [],
        "samples": {"file": SAMPLES, "bytes": len(samples), "blake2b": digest},
    }  # fmt: skip
    campaign.runs_folder.mkdir(parents=True)
    for run_id, (experiment, run) in runs.items():
        benchmark = experiment.benchmark
        record = {**same, "run_id": run_id, "point": run.point, "repeat": run.repeat}
        record |= {"benchmark": benchmark.name, "version": benchmark.version}
        record["digest"] = digest_of(record)
        folder = f"{campaign.runs_folder}/{run_id}"
        write(folder, {SAMPLES: samples, RECORD: canonical_json(record).encode()})
    states = take_stock(campaign, runs, verify=True)
    stamp_state(campaign, states)
    write_plan(campaign, build_plan(campaign, states), as_json=True)
    for name in MADE:
        path = campaign.results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


if __name__ == "__main__":
    main()
