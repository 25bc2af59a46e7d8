"""What ``snakemake --config KEY=VALUE`` may say."""

import json
from collections.abc import Mapping
from typing import Any

from scalesweep.core.errors import UserError, choices, did_you_mean
from scalesweep.core.profilers import KINDS, NONE

# Key -> what it does.
OVERRIDES = {
    "site": "run on this site instead of the campaign's",
    "results": "use this results folder instead of the campaign's",
    "campaign": "the campaign config/campaigns/NAME.yaml: the study's own, or one that is shipped",
    "check": "full: compare all checksums, and put finished runs into the DAG too",
    "pending": "ignore: report on the results so far, run nothing",
    "try": "shapes: of the pending runs only one of each shape (experiment, ranks, what Slurm is "
    "asked for)",
    "profile": "run each point once more under a profiler",
    "retry": "unsupported: run the points again that this machine could not run",
    "source": "published results: a folder (import_cosmoflow), a log or a folder (import_logs), a "
    "table (import_table), a profile or a folder (import_profiles)",
    "benchmark": "whose runs were profiled, and whose parts group functions (import_profiles)",
    "map": "what the columns of a table mean (import_table)",
    "base": "compare: the side to compare with: FOLDER, FOLDER@SITE or @SITE (else this campaign); "
    "settle: the commit to compare with",
    "new": "compare: the side to compare: FOLDER, FOLDER@SITE or @SITE (else this campaign); "
    "settle: the commit to compare",
    "good": "first_bad: a commit that was as fast as wanted",
    "bad": "first_bad: a later commit that is slower",
    "points": "settle, first_bad: an experiment, or an expression over parameters as in `exclude`, "
    "such as points='ranks == 2' (else all points)",
    "metric": "settle, first_bad: a metric other than the main one",
    "repeats": "settle, first_bad: runs of each commit at each point (else those of the campaign)",
    "history": "keep the finished points in this folder too, as a session (history: the folder)",
    "baseline": "history: the commit or tag that counts as 1.0, instead of the last stable level",
    "fail": "regression: end `snakemake history` with a line for each regression, exit code 1",
    "ranks": "ranks of imported runs whose logs do not state them: a number, or a map by folder or "
    "file such as '{n128: 128, n256: 256}', or the YAML file of such a map (import_logs); the rank "
    "counts to predict, such as 256,512 (predict)",
    "test": "import_logs: the test of nccl-tests' logs that do not say it, such as all_reduce_perf",
    "budget_node_hours": "advise: the node-hours that may be spent, instead of the campaign's",
    "target": "advise: what is asked, such as 'EXPERIMENT ranks=1024' (else everything)",
}
_ALLOWED = {
    "check": ("full",),
    "fail": ("regression",),
    "pending": ("ignore",),
    "profile": (NONE, *KINDS),
    "retry": ("unsupported",),
    "try": ("shapes",),
}


def read_options(overrides: Mapping[str, Any]) -> dict[str, str]:
    """The overrides as text; raises UserError for an unknown key or a value not allowed."""
    unknown = sorted(set(overrides) - OVERRIDES.keys())
    if unknown:
        raise UserError(f"--config {unknown[0]}: unknown; {choices(unknown[0], OVERRIDES)}")
    for key, value in overrides.items():
        if isinstance(value, dict | list) and key != "ranks":
            raise UserError(f"--config {key}: was parsed as YAML ({value}); quote the value")
    options = {
        key: json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
        for key, value in overrides.items()
    }
    for key, allowed in _ALLOWED.items():
        if options.get(key, allowed[0]) not in allowed:
            ways = ", ".join(f"{key}={value}" for value in allowed)
            near = did_you_mean(options[key], allowed)
            raise UserError(f"--config {key}={options[key]}: {near}allowed: {ways}")
    return options
