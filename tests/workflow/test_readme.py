"""The README's commands in a fresh clone with an empty home, and what the demo promises."""

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from scalesweep.core.rank_columns import by_rank, values_of
from tests.conftest import ROOT
from tests.report.visits import NEEDED, check_report, chromium
from tests.slurm.cluster import missing_packages
from tests.workflow.test_docs_examples import blocks

pytestmark = pytest.mark.slow

UV_CACHE = os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))


class Clone:
    """A fresh clone of what is committed, used through bash as a reader of the README would."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "scalesweep"
        self.home = folder / "home"
        self.home.mkdir()
        subprocess.run(["git", "clone", "-q", ROOT, self.path], check=True)

    def bash(self, script: str) -> str:
        """Run commands as they stand; returns what they print."""
        # As from a new shell, not from within `make test`. uv's cache is the machine's: the Horovod
        # built for this very test run is taken from there.
        env = {
            k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "VIRTUAL"))
        }
        env |= {"HOME": str(self.home), "UV_CACHE_DIR": UV_CACHE}
        venv = str(ROOT / ".venv")
        env["PATH"] = ":".join(p for p in env["PATH"].split(":") if not p.startswith(venv))
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    def records(self) -> set[str]:
        return {p.parent.name for p in self.path.glob("results/runs/local/*/record.json")}


def commands_of(page: str, kind: str) -> list[list[str]]:
    """The commands of each code block of a page."""
    texts = blocks(ROOT / page, kind)
    return [[line for line in text.splitlines() if line.strip()] for text in texts]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which every command of the README has been run."""
    clone = Clone(tmp_path_factory.mktemp("clone"))
    # `make test` does what CI does before it calls this.
    lines = itertools.chain(*commands_of("README.md", "bash"))
    commands = [line for line in lines if not line.startswith("make test")]
    assert any("make demo" in line for line in commands)
    said = clone.bash("\n".join(commands))
    report = clone.path / "results" / "report.html"
    assert f"report: {report}" in said and report.is_file()
    assert "campaign cosmoflow_io on site piz_daint: 33 runs" in said
    return clone


def test_the_demo_is_measured_whole(demo: Clone) -> None:
    plan = json.loads((demo.path / "results" / "plan.json").read_text())
    statuses = [run["status"] for e in plan["experiments"] for run in e["runs"]]
    assert statuses == ["done"] * 21
    text = (demo.path / "results" / "report.html").read_text()
    assert "io_weak_scaling" in text and "thread_pools" in text
    for name in ("scaling", "points", "runs"):
        table = demo.path / "results" / "tables" / "io_weak_scaling" / name
        assert table.with_suffix(".csv").is_file() and table.with_suffix(".parquet").is_file()


@NEEDED
@pytest.mark.browser
def test_the_demos_report_does_what_a_report_must(demo: Clone) -> None:
    report = demo.path / "results" / "report.html"
    assert report.stat().st_size < 3e6
    with chromium() as browser:
        check_report(browser, report)


def test_a_second_set_up_does_nothing(demo: Clone) -> None:
    assert "setup:" not in demo.bash("make setup")


@pytest.mark.slurm
@pytest.mark.skipif(bool(missing_packages()), reason=str(missing_packages()))
def test_the_guide_on_a_slurm_of_ones_own(demo: Clone) -> None:
    _, commands, _ = commands_of("docs/guide/slurm.md", "sh")
    assert commands[0].startswith('eval "$(make -s slurm-up)"')
    assert commands[-1] == "make slurm-down"
    # The run itself would take four minutes; test_sweep.py has a shorter one.
    lines = [
        line.replace("snakemake --profile slurm ", "snakemake --profile slurm --dry-run ")
        for line in commands[:-1]
    ]
    assert any("--dry-run" in line for line in lines)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    start = f"export SLURM_FOLDER={folder}\nmake -s setup >&2\nsource .venv/bin/activate\n"
    try:
        said = demo.bash(start + "\n".join([*lines, "sinfo"]))
    finally:
        demo.bash(f"export SLURM_FOLDER={folder}\n{commands[-1]}")
    assert "campaign demo on site test_cluster: 20 runs" in said
    assert "sbatch --nodes=1 --ntasks=2 --cpus-per-task=128" in said
    assert re.search(r"^run +20$", said, re.M) and "main*" in said
    assert not folder.exists()


def test_only_a_lost_record_and_new_points_run(demo: Clone) -> None:
    before = demo.records()
    lost = next(run_id for run_id in sorted(before) if run_id.startswith("data_loading-r1"))
    runs = demo.path / "results" / "runs" / "local"
    (runs / lost / "record.json").unlink()
    # What it reads is staged again if it is gone.
    (data, *_) = sorted(demo.path.glob("data/data_loading-*/train/part-*"))
    data.unlink()
    config = demo.path / "config" / "config.yaml"
    text = config.read_text()
    axes = "      ranks: [1, 2]\n"
    assert axes in text
    config.write_text(text.replace(axes, f"{axes}    extra: [{{ranks: 4}}]\n", 1))
    attempts = len(list(runs.glob("*/attempt-*")))
    said = demo.bash("source .venv/bin/activate; snakemake")
    assert "runs: 4 of 4 done" in said and data.is_file()
    new = demo.records() - before
    assert len(new) == 3 and all(run_id.startswith("data_loading-r4-") for run_id in new)
    assert before <= demo.records() and len(list(runs.glob("*/attempt-*"))) == attempts + 4
    ranks = json.loads((runs / min(new) / "record.json").read_text())["environment"]["ranks"]
    assert len(by_rank(ranks["pid"], 4) or ()) == len(set(values_of(ranks["pid"]))) == 4


def test_a_missing_tool_is_named_with_its_package(demo: Clone, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "python3", "cat", "cksum", "cmp", "dirname", "gcc", "g++", "make"):
        (tools / name).symlink_to(shlex.quote(shutil.which(name) or name))
    shutil.copytree(demo.path / "tools", tmp_path / "tools")
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(demo.path / name, tmp_path / name)
    done = subprocess.run(
        [tmp_path / "tools" / "setup.sh"],
        env={"PATH": str(tools), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "error: cmake is missing: apt-get install cmake\n"
