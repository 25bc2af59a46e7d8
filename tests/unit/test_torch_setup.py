"""`make torch` (tools/torch.sh), with a Python whose venv and pip are made up."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Stands for the machine's Python and for that of .torch, as its folder tells.
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) echo 3.11 ;;
    "-m venv"*) mkdir -p .torch/bin && cp "$0" .torch/bin/python && cp pip .torch/bin/pip ;;
esac
"""
PIP = '#!/bin/sh\necho "$@" >>calls\n[ ! -e offline ]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "torch.sh", tmp_path / "tools")
    for name, text in {"python": PYTHON, "pip": PIP}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def make(folder: Path) -> "subprocess.CompletedProcess[str]":
    words, python = [folder / "tools" / "torch.sh"], str(folder / "python")
    return subprocess.run(
        words, env={"PATH": "/usr/bin:/bin", "PYTHON": python}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip


def test_pytorch_is_installed_once_and_whole_or_not_at_all(folder: Path) -> None:
    (folder / "offline").touch()
    failed = make(folder)
    assert failed.returncode != 0 and not (folder / ".torch").exists()
    assert failed.stderr == "error: PyTorch was not installed; make torch tries again\n"
    (folder / "offline").unlink()
    made = make(folder)
    assert made.returncode == 0 and "scalesweep run torch_scaling_small" in made.stdout
    calls = (folder / "calls").read_text().splitlines()
    assert len(calls) == 2 and calls[1].endswith("torch==2.13.0 numpy==2.4.6")
    again = make(folder)
    assert again.returncode == 0 and made.stdout.endswith(again.stdout) and again.stdout
    assert (folder / "calls").read_text().splitlines() == calls
    # Other packages, or another Python: from the beginning.
    script = folder / "tools" / "torch.sh"
    script.write_text(script.read_text().replace("torch==2.13.0", "torch==2.14.0"))
    (folder / ".torch" / "old").touch()
    assert make(folder).returncode == 0
    assert "torch==2.14.0" in (folder / "calls").read_text()
    assert not (folder / ".torch" / "old").exists()
