"""What the plan says of data sets that are larger than a node's memory."""

from dataclasses import replace

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.paths import CAMPAIGNS
from scalesweep.planning.plan import build_plan, data_sets
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.run_state import RunState


def load(name: str, gib: float | None) -> Campaign:
    campaign = load_campaign(CAMPAIGNS / "studies" / f"{name}.yaml")
    site = campaign.site.model_copy(update={"memory_gib_per_node": gib})
    return replace(campaign, site=site)


def test_the_plan_says_how_many_nodes_hold_the_files() -> None:
    """The published study: 5.1 TB in nodes of 64 GB take at least 80."""
    campaign = load("cosmoflow_io", 64e9 / 2**30)
    largest = max(data_sets(campaign), key=lambda each: each["bytes"])
    assert largest["nodes"] == -(-largest["bytes"] // int(64e9)) >= 80
    text = plan_text(build_plan(campaign, dict.fromkeys(campaign.unique_runs(), RunState("new"))))
    assert (
        "data set of io_weak_scaling: files of up to 5.50 TB, which take the memory of at least "
        f"{largest['nodes']} nodes\n"
    ) in text
