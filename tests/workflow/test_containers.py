"""Programs in a container: started in it, its image in the record and in the report."""

import json
import sys
import uuid
from pathlib import Path

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: boxed
site: toy
experiments:
  e: {benchmark: toy, axes: {ranks: [1], size: [1, 3]}}
"""
# Stands for apptainer: `box exec IMAGE COMMAND`, and tells the program where it is.
BOX = '#!/bin/sh\n[ "$1" = exec ] && [ -f "$2" ] || exit 255\nshift 2\nexec "$@"\n'


def image(path: Path) -> str:
    """A SIF file, as far as its header goes; returns its UUID."""
    made = uuid.uuid4()
    fields = (b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC", b"01", b"02")
    path.write_bytes(b"\0".join(fields) + b"\0" + made.bytes)
    return str(made)


def test_runs_of_a_site_with_a_container(project: Project) -> None:
    box = project.write("box", BOX)
    box.chmod(0o755)
    site = project.path / "config" / "sites" / "toy.yaml"
    site.write_text(site.read_text() + f"container: [{box}, exec, image.sif]\n")
    project.write("c.yaml", CAMPAIGN)

    refused = project.snakemake("--configfile", "c.yaml")
    assert refused.returncode == 1 and "container: set python too" in refused.stderr
    site.write_text(site.read_text() + f"python: {sys.executable}\n")
    refused = project.snakemake("--configfile", "c.yaml")
    assert refused.returncode == 1 and "container: no image 'image.sif'" in refused.stderr
    assert not project.records()

    first = image(project.path / "image.sif")
    done = project.snakemake("--configfile", "c.yaml", "--until", "run")
    assert done.returncode == 0, done.stderr
    path = str(project.path / "image.sif")
    for file in project.path.glob("results/runs/toy/*/record.json"):
        record = json.loads(file.read_text())
        assert record["command"][:3] == [str(box), "exec", path]
        told = record["container"]
        assert (told["path"], told["sif_id"]) == (path, first)
        assert told["bytes"] == Path(path).stat().st_size and told["blake2b"]

    # A point that is measured with another image: the report says that runs differ in it.
    second = image(project.path / "image.sif")
    project.write("c.yaml", CAMPAIGN.replace("3]", "3, 5]"))
    assert project.snakemake("--configfile", "c.yaml").returncode == 0
    page = (project.path / "results" / "report.html").read_text()
    assert first in page and second in page
