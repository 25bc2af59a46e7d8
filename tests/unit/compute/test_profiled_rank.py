"""What starts a rank's program under Nsight Systems or TAU, and when it is refused."""

from collections.abc import Callable

from scalesweep.config.campaign import Campaign
from scalesweep.core.paths import LAUNCHERS
from scalesweep.jobs.run_spec import PROFILED_RANK, run_spec

Load = Callable[[str], Campaign]
SCRIPT = LAUNCHERS / PROFILED_RANK


def test_measured_runs_are_started_without_a_profiler(campaign_of: Load) -> None:
    campaign = campaign_of("axes: {ranks: [1, 2]}\nrepeats: 2\nprofile: nsys\n")
    experiment = campaign.experiments[0]
    bare = campaign_of("axes: {ranks: [1, 2]}\nrepeats: 2\n").experiments[0]
    assert experiment.runs == bare.runs
    measured = run_spec(campaign, experiment, experiment.runs[0])["argv"]
    profiled = run_spec(campaign, experiment, experiment.profiles[0])["argv"]
    wrapped = [campaign.site.python, str(SCRIPT), "nsys", "{out}/profile"]
    place = profiled.index(wrapped[1]) - 1
    assert profiled[place : place + 4] == wrapped
    assert [*profiled[:place], *profiled[place + 4 :]] == measured
