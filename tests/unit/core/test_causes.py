import pytest

from scalesweep.core.causes import OF_EXIT_CODE, Cause, NextJob, facts_of
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


def test_causes_of_other_versions_are_known_to_lie_in_the_run() -> None:
    facts = facts_of("SUNSPOT")
    assert (facts.next_job, facts.of_slurm) == (NextJob.NONE, "")
    assert OF_EXIT_CODE == {
        65: Cause.BAD_RESULT, 66: Cause.MISSING_DATA, 69: Cause.UNSUPPORTED,
        71: Cause.OUT_OF_MEMORY,
        75: Cause.LAUNCH_FAILED,
        79: Cause.GPU_OUT_OF_MEMORY,
    }  # fmt: skip
