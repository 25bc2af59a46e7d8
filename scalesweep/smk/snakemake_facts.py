"""What is read of Snakemake's own objects, beyond what it documents.

All of it is here, so that a test (tests/unit/smk/test_snakemake_facts.py) can hold it against the
Snakemake that is installed. ``workflow`` is the object that a Snakefile finds under that name.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from scalesweep.config.overrides import REPORT, RUN, VERBS
from scalesweep.core.errors import UserError

Handler = Callable[[Any], None]


def configfiles(workflow: Any) -> Sequence[Path]:
    """Files of --configfile; without any, those that the Snakefile of a study names (a module)."""
    named = workflow.config_settings.configfiles or workflow.configfiles
    return tuple(map(Path, named))


def heed_handlers(workflow: Any) -> None:
    """Let handlers of this workflow (onstart, onsuccess, onerror) count beside those of a study.

    Of one that includes it Snakemake calls the last ones only; of one that uses it as a module none
    of these. They are called in the order of the files.
    """
    for name in ("onstart", "onsuccess", "onerror"):
        setattr(workflow, name, _adding(workflow, f"_{name}"))


def _adding(workflow: Any, name: str) -> Callable[[Handler], Handler]:
    def add(handler: Handler) -> Handler:
        before: Handler = getattr(workflow, name)

        def both(log: Any) -> None:
            before(log)
            handler(log)

        setattr(workflow, name, both)
        return handler

    return add


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


# Options (destinations) with which Snakemake shows what there is, and runs nothing.
_SHOWS = (
    *("dryrun", "dag", "rulegraph", "filegraph", "d3dag", "summary", "detailed_summary", "lint"),
    *("list_target_rules", "list_rules", "print_compilation", "list_changes", "list_untracked"),
    *("list_input_changes", "list_params_changes", "containerize"),
)


def _arguments() -> Any:
    """Snakemake's command line, parsed; None where it was not called by one.

    While the Snakefile is parsed the workflow knows neither targets nor executor, and has no other
    place for them: they are read where Snakemake itself keeps them.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "args_to_api":
        frame = frame.f_back
    return frame and frame.f_locals.get("args")


def only_shows(workflow: Any) -> bool:
    """Whether nothing will be run: -n, --dag, --list-rules, --report and the like."""
    arguments = _arguments()
    if arguments is None:
        return bool(workflow.dryrun)
    collects = arguments.reporter and not arguments.report_after_run
    return bool(collects) or any(getattr(arguments, name, None) for name in _SHOWS)


def verbs() -> set[str]:
    """What the command line asks for, of ``overrides.VERBS``: any other target is of a run.

    --report collects what is there, as `snakemake report` does.
    """
    arguments = _arguments()
    if arguments is not None and arguments.reporter and not arguments.report_after_run:
        return {REPORT}
    named = set(getattr(arguments, "targets", None) or ()) or {RUN}
    return {name if name in VERBS else RUN for name in named}


def executor(workflow: Any) -> str | None:
    """Name of the executor; None without one."""
    return None if workflow.executor_plugin is None else str(workflow.executor_plugin.name)


def submit_command(workflow: Any) -> str:
    """How the profile of a batch system submits a job."""
    return str(workflow.executor_settings.submit_cmd)


def rules_to_run(workflow: Any) -> set[str]:
    """Names of the rules whose jobs will be run."""
    return {job.rule.name for job in workflow.dag.needrun_jobs()}


def verbosity(workflow: Any) -> str:
    """How much is to be logged, by --verbose and --quiet: a value of ``core.log.VERBOSITY``.

    profiles/default leaves out hosts and reasons with --quiet; that alone silences nothing here.
    """
    settings = workflow.output_settings
    quiet = {kind.name for kind in settings.quiet or ()} & {"ALL", "PROGRESS", "RULES"}
    return "verbose" if settings.verbose else "quiet" if quiet else "normal"
