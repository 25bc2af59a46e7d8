"""What all runs of MLPerf's logs share: what lies beside them, ranks, ends, phases and notes."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.mlperf_log import Job, Span

# Beside the logs: the factor that MLPerf multiplies the score by (mlcommons/logging,
# result_summarizer.py: _get_scaling_factor).
SCALING = "scaling.json"
# Notes of a run: when it trained (Unix time, s) and of which kind of submission it is; how MLPerf
# counts its score.
TRAINED, SCORE = "trained", "score"
NOT_STATED = "not stated"
# Folders of a submission since v1.0: the logs themselves do not say it (MLPerf HPC training rules,
# "Weak-scaling": models that are trained at the same time, whose result is models per minute).
_SUBMISSIONS = re.compile(r"(?:^|[_-])(?P<kind>weak|strong)(?:[_-]|$)")


def beside(path: Path) -> dict[str, Any]:
    """What a file of JSON beside a log says; empty without one. Raises ImportRefusedError."""
    try:
        return dict(json.loads(path.read_bytes())) if path.is_file() else {}
    except (OSError, ValueError, TypeError) as error:
        raise ImportRefusedError(f"{path.name} beside it: no object of JSON ({error})") from None


def system_of(log: Path) -> dict[str, Any]:
    """What ``systems/NAME.json`` of a submission says of a log below ``results/NAME``, with its
    name as ``file``; empty without one. Raises ImportRefusedError."""
    folders = [log.absolute(), *log.absolute().parents]
    for inner, folder in pairwise(folders):
        if folder.name == "results":
            said = beside(path := folder.parent / "systems" / f"{inner.name}.json")
            return {"file": path.name, **said} if said else {}
    return {}


def submission_kind(file: Path) -> str | None:
    """``weak`` or ``strong``, as the nearest folder of the log is named; None if none says."""
    names = (_SUBMISSIONS.search(folder.name.lower()) for folder in file.absolute().parents)
    return next((match["kind"] for match in names if match), None)


def ranks_of(
    job: Job, given: int | None, assumed: dict[str, str], system: Mapping[str, Any]
) -> dict[str, int]:
    """Ranks and ranks of a node: as the log states them, else the accelerators (or nodes without)
    of the system's description, else as they are ``given``; ``assumed`` gets where they are from.
    Raises ImportRefusedError."""
    stated, nodes = job.count("number_of_ranks"), job.count("number_of_nodes")
    each, words = job.count("accelerators_per_node"), "one for each accelerator"
    if not stated and not (nodes and each) and system:
        words = f"the accelerators of systems/{system['file']}"
        try:
            nodes, each = int(system["number_of_nodes"]), int(system["accelerators_per_node"]) or 1
        except (KeyError, TypeError, ValueError):
            nodes = each = None
    if stated:
        ranks = stated
    elif nodes and each:
        ranks, assumed["ranks"] = nodes * each, words
    elif given:
        ranks, assumed["ranks"] = given, "--ranks"
    else:
        what = "neither log nor systems/NAME.json of its submission states the ranks: add --ranks N"
        raise ImportRefusedError(what, job.lines[0])
    if given not in (None, ranks):
        assumed["ranks"] = f"{assumed.get('ranks', 'the log')}, not --ranks {given}"
    return {"ranks": ranks, **({"ranks_per_node": ranks // nodes} if nodes and not ranks % nodes
                               else {})}  # fmt: skip


def outcome(job: Job, met: bool | None) -> tuple[str, bool]:
    """How the run ended, in words, and whether it met its target.

    ``met``: whether it did by its last evaluation, which counts if the log does not say it; None
    if that is not known either.
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
    good = status.lower() == "success" or status.startswith(NOT_STATED)
    return "" if good else f"{status}{after}"


def times_of(job: Job, spans: Sequence[Span]) -> dict[str, Any]:
    """Dates and phases of a run, as of an ``ImportedRun``; the log has milliseconds."""
    start, stop, begin = (job.moment(key) for key in ("run_start", "run_stop", "init_start"))
    assert start is not None
    end = stop or max(event.ms for event in job.events)
    phases: dict[str, float] = {}
    for name, since, until in spans:
        phases[name] = round(phases.get(name, 0.0) + until - since, 3)
    return {
        "started": datetime.fromtimestamp(min(begin or start, start) / 1000, UTC),
        "ended": datetime.fromtimestamp(end / 1000, UTC),
        "phases": phases,
        "phase_spans": spans,
    }


def notes_of(
    job: Job, submission: Mapping[str, Any], assumed: Mapping[str, str], status: str
) -> dict[str, Any]:
    """What the record says of how the log was read; of several values (seeds) the first."""
    said: dict[str, Any] = {}
    for event in job.events:
        if event.key.startswith(("opt_", "seed")) and event.value is not None:
            said.setdefault(event.key, event.value)
    return {
        "importer": "MLPerf log",
        "lines": job.lines,
        "submission": dict(submission),
        "hyperparameters": {key: said[key] for key in sorted(said)},
        "assumed": dict(assumed),
        "status": status,
        "dates": "started is init_start, ended run_stop or the last line",
        "time_to_target": "from run_start to run_stop, staging included, as MLPerf counts it",
    }
