"""Unit tests see the toy benchmark and a toy site instead of the shipped ones."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import scalesweep.config.benchmark
import scalesweep.config.site
from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.state.results_folder import claim_folder
from tests.conftest import TOY_SITE
from tests.fakes.foreign import FOREIGN
from tests.fakes.foreign import SITE as FOREIGN_SITE

TOY = Path(__file__).resolve().parents[1] / "toy"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders with only the toy benchmark and the toy site; returns their parent."""
    shutil.copytree(TOY, tmp_path / "benchmarks" / "toy")
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "toy.yaml").write_text(TOY_SITE)
    monkeypatch.setattr(scalesweep.config.benchmark, "BENCHMARKS", tmp_path / "benchmarks")
    monkeypatch.setattr(scalesweep.config.site, "SITES", tmp_path / "sites")
    return tmp_path


@pytest.fixture
def campaign_of(toy: Path) -> Callable[[str], Campaign]:
    """Load a campaign whose one experiment ``e`` has the given body (YAML, unindented)."""

    def load(body: str, head: str = "campaign: test\nsite: toy\n") -> Campaign:
        path = toy / "campaign.yaml"
        indented = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
        path.write_text(f"{head}experiments:\n  e:\n    benchmark: toy\n{indented}")
        # Never into the checkout's own results, where a second call would find its runs done.
        own = "results:" in head or Path.cwd() == toy
        campaign = load_campaign(path, results=None if own else str(toy / "results"))
        claim_folder(campaign.results, "results")  # records are written there by hand
        return campaign

    return load


@pytest.fixture
def foreign(tmp_path: Path, toy: Path) -> Path:
    """Where the benchmark ``foreign``, its program and the site ``toy`` lie."""
    (tmp_path / "benchmarks" / "foreign").mkdir()
    shutil.copy(FOREIGN / "benchmark.yaml", tmp_path / "benchmarks" / "foreign")
    shutil.copy(FOREIGN / "speaker.py", tmp_path)
    (tmp_path / "sites" / "toy.yaml").write_text(yaml.safe_dump(FOREIGN_SITE))
    return tmp_path


@pytest.fixture
def edited(foreign: Path) -> Callable[..., Benchmark]:
    """The benchmark after changes to benchmark.yaml (or to its one metric, with ``metric``)."""

    def load(metric: dict[str, Any] | None = None, **changes: Any) -> Benchmark:
        path = foreign / "benchmarks" / "foreign" / "benchmark.yaml"
        content = yaml.safe_load(path.read_text())
        if metric is not None:
            first = {**content["result"]["extract"][0], **metric}
            content["result"]["extract"][0] = {k: v for k, v in first.items() if v is not None}
        path.write_text(yaml.safe_dump({**content, **changes}))
        return load_benchmark("foreign")

    return load
