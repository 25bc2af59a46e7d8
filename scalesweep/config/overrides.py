"""What ``snakemake --config KEY=VALUE`` may say."""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from scalesweep.core.errors import UserError, choices, did_you_mean
from scalesweep.core.profilers import KINDS, NONE

# What a call asks for where it names no verb: to run the campaign.
RUN = "run"
_COMMITS = ("settle", "first_bad")
_IMPORTS = ("import_cosmoflow", "import_logs", "import_table", "import_profiles")
_CAMPAIGN = (
    *(RUN, "plan", "report", "compare", "predict", "advise", "history", *_COMMITS),
    "doctor",
)
# The words after `snakemake` that --config can be of; any other target runs the campaign.
VERBS = (*_CAMPAIGN, *_IMPORTS)


class Override(NamedTuple):
    """A key of --config: the verbs that read it, and what it does."""

    verbs: tuple[str, ...]
    text: str


OVERRIDES = {
    "campaign": Override(
        _CAMPAIGN,
        "the campaign `config/campaigns/NAME.yaml`: the study's own, or one that is shipped",
    ),
    "site": Override(VERBS, "use this site instead of the campaign's; of an import: its label"),
    "results": Override(VERBS, "use this results folder instead of the campaign's"),
    "check": Override(
        (RUN,),
        "`full`: compare all checksums, and put finished runs into Snakemake's DAG too, for "
        "instance to `--forcerun run`",
    ),
    "pending": Override((RUN, "report"), "`ignore`: run nothing, report on the results so far"),
    "try": Override(
        (RUN,),
        "`shapes`: of the pending runs only one of each shape (experiment, ranks, what Slurm is "
        "asked for)",
    ),
    "profile": Override(
        (RUN, "plan", "report", "doctor"),
        "run each point once more under this profiler, instead of every experiment's own",
    ),
    "retry": Override(
        (RUN,),
        "`unsupported`: run the points again that this machine could not run; the old records are "
        "kept as `record.json.unsupported`",
    ),
    "history": Override(
        (RUN, "plan", "report", "history", *_COMMITS),
        "keep the finished points as a session in this folder",
    ),
    "baseline": Override(
        (RUN, "history", *_COMMITS),
        "the commit or tag that counts as 1.0, instead of the last stable level",
    ),
    "fail": Override(
        ("history",), "`regression`: print a line for each regression and end with exit code 1"
    ),
    "base": Override(
        ("compare", "settle"),
        "`compare`: the side to compare with: FOLDER, FOLDER@SITE or @SITE (else this campaign); "
        "`settle`: the commit to compare with",
    ),
    "new": Override(
        ("compare", "settle"),
        "`compare`: the side to compare: FOLDER, FOLDER@SITE or @SITE (else this campaign); "
        "`settle`: the commit to compare",
    ),
    "good": Override(("first_bad",), "a commit that was as fast as wanted"),
    "bad": Override(("first_bad",), "a later commit that is slower"),
    "points": Override(
        _COMMITS,
        "an experiment, or an expression over parameters as in `exclude`, such as "
        "`points='ranks == 2'` (else all points)",
    ),
    "metric": Override(_COMMITS, "a metric other than the main one"),
    "repeats": Override(_COMMITS, "runs of each commit at each point (else those of the campaign)"),
    "budget_node_hours": Override(
        ("advise",), "the node-hours that may be spent, instead of the campaign's"
    ),
    "target": Override(
        ("advise",), "what is asked, such as `'EXPERIMENT ranks=1024'` (else everything)"
    ),
    "ranks": Override(
        ("predict", *_IMPORTS),
        "`predict`: the rank counts, such as `256,512`; imports: the ranks of runs whose files do "
        "not state them: a number, a map by folder or file such as `'{n128: 128, n256: 256}'`, or "
        "the YAML file of such a map",
    ),
    "source": Override(
        _IMPORTS,
        "published results: a folder (`import_cosmoflow`), a log or a folder (`import_logs`), a "
        "table (`import_table`), a profile or a folder (`import_profiles`); taken as typed: 007 is "
        "a path",
    ),
    "test": Override(
        ("import_logs",),
        "the test of nccl-tests' logs that do not say it, such as `all_reduce_perf`",
    ),
    "map": Override(("import_table",), "the YAML file that says what the columns of a table mean"),
    "benchmark": Override(
        ("import_profiles",), "whose runs were profiled, and whose parts group functions"
    ),
}
# Keys that mean something in a campaign too, for who gave them to a verb that reads none.
_IN_CAMPAIGN = frozenset({"budget_node_hours", "repeats"})
_ALLOWED = {
    "check": ("full",),
    "fail": ("regression",),
    "pending": ("ignore",),
    "profile": (NONE, *KINDS),
    "retry": ("unsupported",),
    "try": ("shapes",),
}


def read_options(overrides: Mapping[str, Any], verbs: Collection[str] = (RUN,)) -> dict[str, str]:
    """The overrides as text.

    ``verbs`` are what the call asks for, of VERBS. Raises UserError for an unknown key, one that
    none of them reads, or a value not allowed.
    """
    unknown = sorted(set(overrides) - OVERRIDES.keys())
    if unknown:
        raise UserError(f"--config {unknown[0]}: unknown; {choices(unknown[0], OVERRIDES)}")
    for key in overrides:
        if not set(OVERRIDES[key].verbs) & set(verbs):
            raise UserError(_unread(key, overrides[key], verbs))
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


def _unread(key: str, value: Any, verbs: Collection[str]) -> str:
    """What is said of a key that none of the verbs asked for reads."""
    asked, read_by = (
        ", ".join("`snakemake`" if verb == RUN else f"`snakemake {verb}`" for verb in group)
        for group in (sorted(verbs), OVERRIDES[key].verbs)
    )
    line = f"--config {key}: {asked} does not read it; read by: {read_by}"
    return f"{line}; in a campaign write `{key}: {value}`" if key in _IN_CAMPAIGN else line
