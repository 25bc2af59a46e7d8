"""What is read of Snakemake's own objects, beyond what it documents, and how it is called.

All of it is here, for whoever updates Snakemake. ``workflow`` is the object that a Snakefile finds
under that name.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.paths import SNAKEFILE

# What Snakemake takes for a text as it is, unless it can be read as a number or truth value.
_PLAIN = re.compile(r"[A-Za-z_./@+~][\w./@+~-]*", re.ASCII)


def configfiles(workflow: Any) -> Sequence[Path]:
    """Files of --configfile; without any, those that the Snakefile of a study names."""
    return tuple(map(Path, workflow.config_settings.configfiles or workflow.configfiles))


def overrides(workflow: Any) -> Mapping[str, Any]:
    """Keys of --config, as Snakemake has read them: of several --config the last one only, so
    that is refused. Raises UserError."""
    for names in (("--config", "-C"), ("--configfile", "--configfiles")):
        if sum(word.partition("=")[0] in names for word in sys.argv[1:]) > 1:
            raise UserError(
                f"{names[0]}: is named twice, and Snakemake reads only the last one; name it once, "
                "with all that belongs to it behind it"
            )
    given: Mapping[str, Any] = workflow.config_settings.config
    return given


def default_resources(workflow: Any) -> set[str]:
    """Names of --default-resources; known before the executor is."""
    return set(workflow.resource_settings.default_resources or ())


def limits(workflow: Any) -> set[str]:
    """Names of --resources."""
    return set(workflow.resource_settings.resources or ())


def collects() -> bool:
    """Whether Snakemake only collects what is there (--report), which it says nowhere else."""
    given = {word.partition("=")[0] for word in sys.argv[1:]}
    return "--report" in given and "--report-after-run" not in given


def only_reports(workflow: Any) -> bool:
    """Whether a report of what is there is asked for, and no run. Not known while parsing."""
    return collects() or set(workflow.dag_settings.targets) == {"report"}


def executor(workflow: Any) -> str | None:
    """Name of the executor; None without one."""
    return None if workflow.executor_plugin is None else str(workflow.executor_plugin.name)


def verbosity(workflow: Any) -> str:
    """How much is to be logged, by --verbose and --quiet: a value of ``core.log.VERBOSITY``.

    profiles/default leaves out hosts and reasons with --quiet; that alone silences nothing here.
    """
    settings = workflow.output_settings
    quiet = {kind.name for kind in settings.quiet or ()} & {"ALL", "PROGRESS", "RULES"}
    return "verbose" if settings.verbose else "quiet" if quiet else "normal"


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
    campaign: Path, site: str, results: str, options: Mapping[str, str]
) -> list[str]:
    """Command that builds a campaign's report from what exists and runs nothing.

    ``options``: further keys of ``--config``, those without a value left out.
    """
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE)]
    words += ["--cores", "1", "--quiet", "all", "--configfile", str(campaign)]
    settings = {"site": site, "results": results, **options}
    words += ["--config", *(setting(key, value) for key, value in settings.items() if value)]
    return [*words, "--", "report"]
