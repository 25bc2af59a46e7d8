"""The command that builds a campaign's report from what exists."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path


def report_command(
    snakefile: str,
    campaign: Path,
    site: str,
    results: str,
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Command that builds a campaign's report from what exists and runs nothing.

    ``options``: further keys of ``--config``. It may be called from a hook, and while another
    Snakemake makes runs.
    """
    words = [sys.executable, "-m", "snakemake", "--snakefile", snakefile]
    words += ["--cores", "1", "--quiet", "all", "--configfile", str(campaign)]
    # Snakemake strips quotes and reads the rest as YAML, where 007 would be 7, and `a #b` be `a`.
    words += ["--config", "pending=ignore"]
    words += [f"{key}= {json.dumps(value, ensure_ascii=False)} "
              for key, value in (("site", site), ("results", results), *(options or {}).items())
              ]  # fmt: skip
    return [*words, "--", "all"]
