"""Which Python and launcher a framework has on a site, and runs whose framework is not there."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.jobs.run_spec import run_spec
from scalesweep.planning.plan import build_plan
from scalesweep.state.stock import take_stock

SITE = "site: toy\nnodes: 4\ncores_per_node: 2\n"
PLAIN = "launch: {single: [], multi: [one, '{python}']}\n"
TORCH = PLAIN.replace("}\n", ", torch: {multi: ['{bin}/start', '{python}']}}\n")


@pytest.fixture
def on(toy: Path, campaign_of: Callable[[str], Campaign]) -> Callable[[str], Campaign]:
    """A campaign of one and two ranks of a benchmark of PyTorch, on a site that says so much."""
    path = toy / "benchmarks" / "toy" / "benchmark.yaml"
    path.write_text(f"{path.read_text()}framework: torch\n")

    def load(more: str) -> Campaign:
        (toy / "sites" / "toy.yaml").write_text(SITE + more)
        return campaign_of("axes: {ranks: [1, 2]}")

    return load


def starts(campaign: Campaign) -> list[list[str]]:
    """The words of each run before those of its program, and its Python."""
    (experiment,) = campaign.experiments
    words = [run_spec(campaign, experiment, run)["argv"] for run in experiment.runs]
    return [argv[: [Path(word).name for word in argv].index("main.py")] for argv in words]


HERE = f"python: {{tensorflow: python3, torch: {sys.executable}}}\n"
START = f"{Path(sys.executable).parent}/start"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (TORCH, [START, sys.executable, sys.executable]),
        # Words of the site serve every framework, with the Python that they are written for.
        (PLAIN, ["one", "python3", sys.executable]),
    ],
)
def test_python_and_launcher_are_those_of_the_framework(
    on: Callable[[str], Campaign], more: str, words: list[str]
) -> None:
    assert starts(on(HERE + more)) == [[sys.executable], words]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "toy.yaml names no Python that has torch: add 'python: {torch: PATH}' to it (`make "),
        ("python: {torch: ~/x/python}\n", "python.torch: '~/x/python' is not there: correct the"),
        ("python: {torch: python3}\n", ""),
        (HERE, ""),
        # What a prologue brings, or only nodes have, cannot be seen from here.
        ("python: {torch: no-such-python}\nprologue: [module load torch]\n", ""),
        ("python: {torch: /apps/no/such/python}\nslurm: {}\n", ""),
        ("python: {torch: /apps/no/such/python}\n", "'/apps/no/such/python' is not there"),
    ],
)
def test_what_is_missing_and_mends_it(on: Callable[[str], Campaign], more: str, says: str) -> None:
    campaign = on(more + PLAIN)
    plan = build_plan(campaign, take_stock(campaign, campaign.unique_runs()))
    for run in plan["experiments"][0]["runs"]:
        assert (run["status"], run["to_run"]) == (("unsupported", False) if says else ("new", True))
        assert says.replace("~", str(Path.home())) in run["detail"]


def test_who_has_installed_a_wheel_makes_an_environment_by_hand(
    on: Callable[[str], Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scalesweep.state.stock.CHECKOUT", None)
    campaign = on(PLAIN)
    state, *_ = take_stock(campaign, campaign.unique_runs()).values()
    assert "`python3 -m venv .torch && .torch/bin/pip install torch numpy` makes " in state.detail
