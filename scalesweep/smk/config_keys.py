"""What ``snakemake --config KEY=VALUE`` may say."""

from collections.abc import Mapping
from typing import Any

from scalesweep.core.errors import UserError, choices
from scalesweep.core.profilers import KINDS, NONE

# Key of --config -> what it does, as the help of `scalesweep` says it too.
OVERRIDES = {
    "campaign": "NAME of config/campaigns/NAME.yaml, the study's own or one that is shipped",
    "site": "site instead of the campaign's",
    "results": "results folder instead of the campaign's",
    "try": "of the pending runs only one of each shape (experiment, ranks, what Slurm is asked "
    "for)",
    "profile": "run each point once more under this profiler, instead of every experiment's own",
    "retry": "run the points again that this machine could not run; the old records are kept as "
    "record.json.broken",
    "history": "folder of the history, where finished points are kept as a session",
    "baseline": "the commit or tag that counts as 1.0, instead of the last stable level",
}
# What a key may say, where that is not any text.
ALLOWED = {"profile": (NONE, *KINDS), "retry": ("unsupported",), "try": ("shapes",)}


def read_options(overrides: Mapping[str, Any]) -> dict[str, str]:
    """The overrides, which are texts.

    Raises UserError for an unknown key, a value that Snakemake has read as something else, or one
    not allowed.
    """
    for key, value in overrides.items():
        where = f"--config {key}"
        if key not in OVERRIDES:
            raise UserError(f"{where}: unknown; {choices(key, OVERRIDES)}")
        if not value or not isinstance(value, str):
            how = f"write '{key}= \"TEXT\" ', or use `scalesweep run`"
            raise UserError(f"{where}: Snakemake reads {value!r}, which is no text: {how}")
        if value not in ALLOWED.get(key, (value,)):
            raise UserError(f"{where}={value}: {choices(value, ALLOWED[key])}")
    return dict(overrides)
