"""What the plan says of data sets: the nodes that hold them, and runs that read the same."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.config.site import load_site
from scalesweep.core.paths import REPO
from scalesweep.planning.data_sets import nodes_to_hold
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.run_state import RunState

CAMPAIGNS = REPO / "config" / "campaigns" / "studies"


def text_of(campaign: Campaign) -> str:
    return plan_text(build_plan(campaign, dict.fromkeys(campaign.unique_runs(), RunState("new"))))


def changed(tmp_path: Path, name: str, change: Mapping[str, Any]) -> Campaign:
    """A shipped campaign with other keys of its own; None takes one away."""
    content = yaml.safe_load((CAMPAIGNS / f"{name}.yaml").read_text()) | change
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in content.items() if v is not None}))
    return load_campaign(path)


def test_nodes_that_hold_a_data_set() -> None:
    """The published study: 5.1 TB in nodes of 64 GB take at least 80."""
    site = load_site("piz_daint").model_copy(update={"memory_gib_per_node": 64e9 / 2**30})
    assert [nodes_to_hold(int(size), site) for size in (5.1e12, 64e9, 64e9 + 1, 1)] == [80, 1, 2, 1]
    assert nodes_to_hold(1, site.model_copy(update={"memory_gib_per_node": None})) is None


def test_the_plan_says_how_many_nodes_hold_the_files() -> None:
    assert (
        "data set of io_weak_scaling: files of up to 5.50 TB, which take the memory of at least 83 "
        "nodes (62 GiB each; system, framework and model need memory besides)\n"
    ) in text_of(load_campaign(CAMPAIGNS / "cosmoflow_io.yaml"))
    # 64 nodes of strong_scaling read as much as 256.
    training = text_of(load_campaign(CAMPAIGNS / "cosmoflow_training.yaml"))
    assert "besides); 1 point on fewer nodes than hold what they read\n" in training
    assert "data set" not in text_of(load_campaign(CAMPAIGNS / "thread_pools.yaml"))


def test_the_plan_warns_of_runs_that_read_the_same_at_the_same_time(tmp_path: Path) -> None:
    def overlap(name: str, **change: Any) -> str:
        text = text_of(changed(tmp_path, name, change))
        return "".join(re.findall(r"^may overlap: (.*); for one", text, re.M))

    assert overlap("thread_pools") == ""
    assert overlap("thread_pools", concurrent_runs=None) == (
        "97 runs of thread_pools and control read the same data set"
    )
    many = {"concurrent_runs": None, "site": "local"}
    assert overlap("thread_pools", **many) == ""  # one run at a time there
    (experiment,) = yaml.safe_load((CAMPAIGNS / "cosmoflow_io.yaml").read_text())[
        "experiments"
    ].values()
    alone = {**experiment, "concurrent_runs": 1}
    assert overlap("cosmoflow_io", concurrent_runs=None, experiments={"a": alone}) == ""
    other = {**experiment, "fixed": {**experiment["fixed"], "inter_threads": 3}}
    both = {"a": alone, "b": {**other, "axes": {"ranks": [1]}, "repeats": 1, "scaling": "none"}}
    assert overlap("cosmoflow_io", concurrent_runs=None, experiments=both) == (
        "34 runs of a and b read the same data set"
    )
