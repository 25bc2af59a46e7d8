"""Runs next to the measured ones: of each point under a profiler, or each without exchange."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.profilers import split_name
from scalesweep.planning.run_order import positions

BODY = "axes: {ranks: [1, 2]}\nrepeats: 3\nprofile: "


def test_each_run_has_one_without_exchange(campaign_of: Callable[[str], Campaign]) -> None:
    (bare,) = campaign_of(BODY + "none").experiments
    alone = positions(campaign_of(BODY + "none"))
    campaign = campaign_of(BODY + "noexchange")
    (experiment,) = campaign.experiments
    assert experiment.runs == bare.runs
    profiled = [f"{run.run_id}.noexchange" for run in bare.runs]
    assert [run.run_id for run in experiment.profiles] == profiled
    order = sorted(positions(campaign), key=positions(campaign).__getitem__)
    repeats = {run.run_id: run.repeat for run in (*experiment.runs, *experiment.profiles)}
    assert [repeats[name] for name in order] == [0] * 4 + [1] * 4 + [2] * 4
    # Measured runs are in the order that they have without.
    assert [name for name in order if "." not in name] == sorted(alone, key=alone.__getitem__)


def test_profilers_run_once_and_last(campaign_of: Callable[[str], Campaign]) -> None:
    campaign = campaign_of(BODY + "cprofile")
    assert [run.repeat for run in campaign.experiments[0].profiles] == [0, 0]
    order = sorted(positions(campaign), key=positions(campaign).__getitem__)
    assert {split_name(name)[1] for name in order[-2:]} == {"cprofile"}


@pytest.mark.parametrize(
    ("keys", "kind", "said"),
    [
        ({"noexchange": False}, "noexchange", "toy has no 'noexchange'; allowed: none, cprofile"),
        ({"framework": "torch"}, "tensorflow", "benchmark toy has no 'tensorflow'; "),
        ({"framework": "torch"}, "horovod_timeline", "benchmark toy has no 'horovod_timeline'; "),
        ({"framework": "tensorflow"}, "torch", "benchmark toy has no 'torch'; "),
    ],
)
def test_a_kind_that_a_benchmark_does_not_have(
    toy: Path, campaign_of: Callable[[str], Campaign], keys: dict[str, str], kind: str, said: str
) -> None:
    file = toy / "benchmarks" / "toy" / "benchmark.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | keys))
    with pytest.raises(UserError, match=said):
        campaign_of(BODY + kind)
    # Asked of the whole campaign, only those that have it, and one has to.
    campaign_of(BODY + str(keys.get("framework", "none")))
    with pytest.raises(UserError, match=f"--config profile={kind}: no benchmark"):
        load_campaign(toy / "campaign.yaml", profile=kind)
