"""Calls of Snakemake: settings as it reads them back, and the one that makes a report."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from scalesweep.core.paths import SNAKEFILE

# What Snakemake takes for a text as it is, unless it can be read as a number or truth value.
_PLAIN = re.compile(r"[A-Za-z_./@+~][\w./@+~-]*", re.ASCII)


def setting(key: str, value: str) -> str:
    """A word of ``--config`` that Snakemake reads as this text.

    Snakemake strips quotes and reads the rest as YAML, where 007 would be 7, and `a #b` be `a`.
    """
    plain = _PLAIN.fullmatch(value) and value not in ("True", "False")
    try:
        float(value)
    except ValueError:
        if plain:
            return f"{key}={value}"
    return f"{key}= {json.dumps(value, ensure_ascii=False)} "


def report_command(
    campaign: Path, site: str, results: str, options: Mapping[str, str] | None = None
) -> list[str]:
    """Command that builds a campaign's report from what exists and runs nothing.

    ``options``: further keys of ``--config``.
    """
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    words += ["--cores", "1", "--quiet", "all", "--configfile", str(campaign)]
    settings = {"site": site, "results": results, **(options or {})}
    words += ["--config", *(setting(key, value) for key, value in settings.items())]
    return [*words, "--", "report"]
