"""The campaign that advice writes loads again, with the runs that it is about."""

from collections.abc import Callable
from pathlib import Path

import yaml

from scalesweep.adaptive.advised_campaign import advised_campaign
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.state.run_state import RunState


def test_variables_that_are_axes_or_in_extra_points(
    campaign_of: Callable[[str], Campaign], tmp_path: Path
) -> None:
    campaign = campaign_of(
        "axes: {env.A: [null, x], size: [1, 2]}\nenv: {B: 'y', C: z}\n"
        "extra: [{env.A: w, env.B: v, size: 3}]"
    )
    states = dict.fromkeys(campaign.unique_runs(), RunState("done"))
    written = tmp_path / "advice.yaml"
    content = yaml.safe_load(campaign.file.read_text())
    more = [("e", campaign.experiments[0].points[0], 0)]
    written.write_text(yaml.safe_dump(advised_campaign(content, campaign, states, more, "")))
    again = load_campaign(written)
    assert {*again.unique_runs()} == {*campaign.unique_runs()} and len(states) == 5
    assert again.experiments[0].axes == ("size", "env.A", "env.B")
