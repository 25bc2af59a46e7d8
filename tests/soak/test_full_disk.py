"""A disk that is full: the cause is told, nothing is damaged, and the next call goes on."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.core.record import read_failure, read_record
from tests.conftest import ROOT, Project
from tests.fakes.snakemake_calls import python
from tests.soak.launching import order, start, wait_until

# What programs do: fill the disk down to so many bytes.
FILL = """
import errno, json, os, sys
def fill(left):
    path = os.path.join(sys.argv[2], "filler")
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(file.tell() - left)
keys = ["phases", "metrics", "work", "resources", "environment", "notes"]
native = dict.fromkeys(keys, {}) | {"notes": {"long": "x" * 5000}}
"""
RESULT = "json.dump(native, open(sys.argv[2] + '/native.json', 'w'))\n"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """Leave not a byte; the file that took them."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def test_a_record_that_finds_no_space(disk: Path) -> None:
    runs = disk / "runs"
    assert launch(order(runs / "before", FILL + RESULT), ROOT) == 0
    assert launch(order(runs / "a", FILL + RESULT + "fill(4096)"), ROOT) == 1
    failure = read_failure(runs / "a")
    assert failure is not None and failure["cause"] == "DISK_FULL"
    assert failure["detail"] == f"no space left on device in {runs / 'a'}"
    assert not (runs / "a" / "record.json").exists()
    assert read_record(runs / "before" / "record.json")["notes"]["long"]
    (runs / "a" / "attempt-1" / "filler").unlink()
    assert launch(order(runs / "a", FILL + RESULT), ROOT) == 0
    assert read_record(runs / "a" / "record.json")["attempt"] == 2


def test_not_even_a_failure_finds_space(disk: Path) -> None:
    folder = disk / "runs" / "a"
    work = folder / "attempt-1"
    launcher = start(order(folder, FILL + "fill(0); sys.exit(1)"))
    said = launcher.communicate(timeout=60)[0].decode().splitlines()
    assert launcher.returncode == 1
    assert said == [
        f"a: DISK_FULL: no space left on device in {work} (logs in {work})",
        f"error: No space left on device: {folder}/failure.json",
    ]
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "attempt-1"]


CAMPAIGN = "campaign: c\nsite: toy\nexperiments: {e: {benchmark: toy, axes: {size: [1, 2, 3]}}}\n"


@pytest.mark.slow
def test_a_campaign_goes_on_once_there_is_space(disk: Path, project: Project) -> None:
    project.write("c.yaml", CAMPAIGN)
    (disk / "results").mkdir()
    (project.path / "results").symlink_to(disk / "results")
    script = project.path / "workflow" / "scripts" / "step.py"
    held = "sys.argv[1] == 'inventory' and Path('hold').exists()"
    wait = f"import sys, time; from pathlib import Path\nwhile {held}: time.sleep(0.01)\n"
    script.write_text(wait + script.read_text())

    def call(until: int) -> tuple[int, list[str]]:
        """Fill the disk when there are so many records; exit code and errors of the call."""
        # Neither a further run nor what is made of them goes on before the disk is full.
        project.write("hold", str(until))
        words = [python(), "-m", "snakemake", "--configfile", "c.yaml"]
        env = {**os.environ, "PYTHONPATH": ""}
        with (
            (project.path / "said").open("w") as said,
            subprocess.Popen(
                words, cwd=project.path, stdout=said, stderr=said, env=env
            ) as snakemake,
        ):
            wait_until(lambda: len(project.records()) >= until, "records")
            filler = fill(disk)
            (project.path / "hold").unlink()
            snakemake.wait()
        filler.unlink()
        text = (project.path / "said").read_text()
        assert "Traceback" not in text
        return snakemake.returncode, [line for line in text.splitlines() if "error: " in line]

    # Runs that find no space, and an aggregation that finds none.
    before: dict[str, int] = {}
    for until in (1, 3):
        code, errors = call(until)
        assert code != 0 and any("No space left on device" in line for line in errors), errors
        records = project.records()
        assert len(records) == until and before.items() <= records.items()
        before = records
    project.campaign(CAMPAIGN)
    assert project.records() == before and not list(disk.rglob("*.tmp"))
    # Read-only, with runs to be added: told before anything starts.
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    said = project.campaign(CAMPAIGN.replace("[1, 2, 3]", "[1, 2, 3, 4]"), code=1)
    assert "error: results: cannot write to this folder: " in said
