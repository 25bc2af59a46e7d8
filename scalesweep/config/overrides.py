"""What ``snakemake --config KEY=VALUE`` may say."""

from collections.abc import Mapping
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.profilers import KINDS, NONE

# Key -> what it does.
OVERRIDES = {
    "site": "run on another site than the campaign names",
    "results": "another results folder than the campaign names",
    "check": "full: compare all checksums, and put finished runs into the DAG too",
    "pending": "ignore: report on what is there, run nothing",
    "profile": "run each point once more under a profiler",
    "retry": "unsupported: try again what this machine could not do",
    "source": "published results: a folder (import_cosmoflow), a log or a folder (import_logs)",
    "base": "compare: what is compared with: FOLDER, FOLDER@SITE or @SITE (else this campaign)",
    "new": "compare: what is compared, likewise",
    "ranks": "how many ranks imported runs had, where their logs do not tell (import_logs)",
}
_ALLOWED = {
    "check": ("full",),
    "pending": ("ignore",),
    "profile": (NONE, *KINDS),
    "retry": ("unsupported",),
}


def read_options(overrides: Mapping[str, Any]) -> dict[str, str]:
    """The overrides as text; raises UserError for an unknown key or a value not allowed."""
    unknown = sorted(set(overrides) - OVERRIDES.keys())
    if unknown:
        raise UserError(f"--config {unknown[0]}: unknown; allowed: {', '.join(OVERRIDES)}")
    for key, value in overrides.items():
        if isinstance(value, dict | list):
            raise UserError(f"--config {key}: Snakemake takes this for YAML: it is {value}")
    options = {key: str(value) for key, value in overrides.items()}
    for key, allowed in _ALLOWED.items():
        if options.get(key, allowed[0]) not in allowed:
            choices = ", ".join(f"{key}={value}" for value in allowed)
            raise UserError(f"--config {key}={options[key]}: allowed: {choices}")
    return options
