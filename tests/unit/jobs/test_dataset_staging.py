"""Which files of data sets are staged for which runs, also for runs that are planned later."""

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


def test_later_runs_add_files_to_those_of_earlier_ones(campaign: Campaign) -> None:
    (one,) = campaign.experiments
    runs = {(run.point["ranks"], run.point["compression"]): (one, run) for run in one.runs}
    staging = Staging(campaign, [runs[1, "none"], runs[2, "none"]])
    (first,) = staging.marker(*runs[2, "none"])
    assert first.endswith("/staged-train8-valid0") and staging.marker(*runs[1, "none"]) == [first]
    # Nothing is known yet of what was not planned.
    assert not staging.covers(*runs[4, "none"]) and not staging.covers(*runs[1, "GZIP"])
    assert staging.marker(*runs[4, "none"]) == []
    staging.take([runs[2, "none"], runs[4, "none"], runs[8, "none"], runs[1, "GZIP"]])
    (more,) = staging.marker(*runs[8, "none"])
    assert more.endswith("/staged-train32-valid0") and staging.marker(*runs[4, "none"]) == [more]
    # Earlier runs keep their marker, and other data sets have their own.
    assert staging.marker(*runs[2, "none"]) == [first]
    (other,) = staging.marker(*runs[1, "GZIP"])
    assert other.endswith("/staged-train4-valid0") and Path(other).parent != Path(more).parent
    folder = str(Path(more).parent)
    for wanted, count in (("train8-valid0", "8"), ("train32-valid0", "32")):
        words = shlex.split(staging.command(folder, wanted, 2))
        assert words[words.index("--train") + 1] == count
    with pytest.raises(UserError, match="staged-train16-valid0: no pending run reads"):
        staging.command(folder, "train16-valid0", 2)
