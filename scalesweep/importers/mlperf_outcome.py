"""How a run of MLPerf ended, and of which kind its submission is: the same in all its logs."""

import re
from datetime import UTC, datetime
from pathlib import Path

from scalesweep.importers.mlperf_log import Job

# Notes of a run: when it trained (Unix time, s) and of which kind of submission it is; how MLPerf
# counts its score.
TRAINED, SCORE = "trained", "score"
NOT_STATED = "not stated"
# Folders of a submission since v1.0: the logs themselves do not say it (MLPerf HPC training rules,
# "Weak-scaling": models that are trained at the same time, whose result is models per minute).
_SUBMISSIONS = re.compile(r"(?:^|[_-])(?P<kind>weak|strong)(?:[_-]|$)")


def submission_kind(file: Path) -> str | None:
    """``weak`` or ``strong``, as the nearest folder of the log is named; None if none says."""
    for folder in file.absolute().parents:
        if match := _SUBMISSIONS.search(folder.name.lower()):
            return match["kind"]
    return None


def outcome(job: Job, met: bool | None) -> tuple[str, bool]:
    """How the run ended, in words, and whether it met its target.

    ``met``: whether it did by its last evaluation, which counts where the log does not say it; None
    where that is not known either.
    """
    stops = job.find("run_stop")
    if not stops:
        return "unfinished: no run_stop", False
    status = stops[0].metadata.get("status", stops[0].value)
    if status is not None:
        return str(status)[:40], str(status).lower() == "success"
    if met is None:
        return NOT_STATED, False
    return f"{NOT_STATED}; the last eval_error {'meets' if met else 'misses'} the target", met


def unfinished(job: Job, status: str, after: str = "") -> str:
    """Why a run has no result: it was cut, or says that it was broken off; empty if neither.

    ``after`` says how far it had come.
    """
    if not job.find("run_stop"):
        return f"cut{after}: the log has no run_stop"
    if status.lower() == "success" or status.startswith(NOT_STATED):
        return ""
    return f"{status}{after}"


def date_of(ms: float) -> datetime:
    """The moment of a log's time."""
    return datetime.fromtimestamp(ms / 1000, UTC)
