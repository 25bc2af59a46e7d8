"""Which files of data sets are staged for which runs."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.jobs.dataset_staging import Staging

TEXT = """\
campaign: c
site: local
experiments:
  e:
    benchmark: data_loading
    scaling: weak
    axes: {ranks: [1, 2, 4, 8], compression: [none, GZIP]}
    fixed:
      {ranks_per_node: 8, samples_per_rank: 4, samples_per_file: 1, shard: true,
       validation_samples_per_rank: 0}
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    path = tmp_path / "c.yaml"
    path.write_text(TEXT)
    campaign = load_campaign(path)
    return replace(campaign, site=campaign.site.model_copy(update={"data": str(tmp_path)}))


def test_files_are_those_of_the_run_that_reads_most(campaign: Campaign) -> None:
    (one,) = campaign.experiments
    runs = {(run.point["ranks"], run.point["compression"]): (one, run) for run in one.runs}
    staging = Staging(campaign, [runs[1, "none"], runs[2, "none"], runs[1, "GZIP"]])
    (marker,) = staging.marker(*runs[2, "none"])
    assert marker.endswith("/staged-train8-valid0") and staging.marker(*runs[1, "none"]) == [marker]
    (other,) = staging.marker(*runs[1, "GZIP"])
    assert other.endswith("/staged-train4-valid0") and Path(other).parent != Path(marker).parent
    # One that is run again by force reads more than what is pending.
    assert staging.marker(*runs[8, "none"])[0].endswith("/staged-train32-valid0")
    words = shlex.split(staging.command(str(Path(marker).parent), "train8-valid0", 2))
    assert words[words.index("--train") + 1] == "32"
    with pytest.raises(UserError, match="staged-train16-valid0: no pending run reads"):
        staging.command("elsewhere", "train16-valid0", 2)
    # A set that has lost files is staged again.
    Path(other).parent.mkdir(parents=True)
    Path(other).touch()
    assert Staging(campaign, [runs[1, "GZIP"]]).marker(*runs[1, "GZIP"]) == [other]
    assert not Path(other).exists()
