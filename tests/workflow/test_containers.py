"""Programs in a container: started in it, its image in the record and in the report."""

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
    box, path = project.write("box", BOX), project.path / "image.sif"
    box.chmod(0o755)
    site = project.path / "config" / "sites" / "toy.yaml"
    container = f"container: [{box}, exec, {path}]\n"
    site.write_text(f"{site.read_text()}{container}python: {sys.executable}\n")
    assert f"container: no image '{path}'" in project.campaign(CAMPAIGN, code=1)
    assert not project.records()
    first = image(path)
    project.campaign(CAMPAIGN, "--until", "run")
    for record in project.results().values():
        assert record["command"][:3] == [str(box), "exec", str(path)]
        kept = record["container"]
        assert (kept["path"], kept["sif_id"]) == (str(path), first)
        assert kept["bytes"] == path.stat().st_size and kept["blake2b"]
    # A point that is measured with another image: the report says that runs differ in it.
    second = image(path)
    project.campaign(CAMPAIGN.replace("3]", "3, 5]"))
    assert first in project.report() and second in project.report()
