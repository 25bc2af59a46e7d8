import pytest

from scalesweep.core.causes import Cause, facts_of
from scalesweep.slurm.sacct import FINAL, JobState


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_a_record(cause: Cause) -> None:
    facts = facts_of(cause)
    assert facts.meaning and facts.found_by
    if facts.of_slurm:
        state = JobState(cause)
        assert state in FINAL
        words = facts.of_slurm.format(job="job 7", limit="its limit", nodes="n[1-2]", by=" by 8")
        assert words.startswith("job 7") and "{" not in words
