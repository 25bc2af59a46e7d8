import re
import subprocess
import sys
from pathlib import Path

import pytest

from scalesweep.core.causes import OF_EXIT_CODE, Cause, NextJob, facts_of
from scalesweep.core.status import Status
from scalesweep.slurm.sacct import FINAL, JobState

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = [
    path
    for folder in ("scalesweep", "plugins", "workflow/scripts")
    for path in (ROOT / folder).rglob("*.py")
]


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


def test_causes_and_statuses_are_named_by_their_members() -> None:
    """The words stand in two files: a cause that is misspelt elsewhere would be one of its own."""
    written = "|".join({*Cause, *JobState} - {Cause.UNKNOWN})
    of_status = rf"""status["')\]]*\]? (?:==|!=|in) \(?["'](?:{"|".join(Status)})["']"""
    literal = re.compile(rf"""["'](?:{written})["']|{of_status}""")
    assert literal.search("""if run["status"] == "done":""")
    places = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in PRODUCT
        for match in literal.finditer(path.read_text())
        if path.name not in ("causes.py", "sacct.py")
    ]
    assert places == []


def test_documentation_has_every_cause() -> None:
    done = subprocess.run(
        [sys.executable, "tools/pages.py", "--check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    table = (ROOT / "docs" / "reference" / "causes.md").read_text()
    assert all(f"| {cause} |" in table for cause in Cause)
