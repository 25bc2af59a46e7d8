"""What is read of Snakemake's own objects, beyond what it documents, and three patches.

All of it is here, so that a test (tests/unit/smk/test_snakemake_facts.py) can hold it against the
Snakemake that is installed. ``workflow`` is the object that a Snakefile finds under that name.
"""

import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from scalesweep.config.overrides import REPORT, RUN, VERBS
from scalesweep.core.errors import UserError

_log = logging.getLogger(__name__)

# The Snakefile asks for 9.10 (scheduler plugins). The patches below were read against versions
# before this one; from it on they are to be looked at again, and are left out until then.
PATCHED_BELOW = (10, 0)
_LOOK_AGAIN = "_schedule_reevalutation"  # sic

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


def forces(workflow: Any) -> bool:
    """Whether what is done may be asked for once more: --forcerun, --force or --forceall."""
    arguments = _arguments()
    if arguments is not None:
        return bool(arguments.force or arguments.forceall or arguments.forcerun)
    settings = workflow.dag_settings
    return bool(settings.forcetargets or settings.forceall or settings.forcerun)


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


def start_one_timer() -> None:
    """Have the scheduler keep one timer where it adds one with each job that ends.

    With --max-jobs-per-timespan it starts a timer at each look, and a timer ends in a look too, so
    the timers add up: after a thousand jobs, a thousand looks a second at all that are ready. There
    is no setting for it. Where Snakemake has changed, nothing is patched, and a line says so.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    if _is_known(JobScheduler, _LOOK_AGAIN, "may use a whole core while thousands are submitted"):
        setattr(JobScheduler, _LOOK_AGAIN, look_again())


def list_in_order() -> None:
    """Have a dry run (-n) list jobs by priority: it asks no scheduler, and lists a set."""
    from snakemake.executors.dryrun import Executor

    if _is_known(Executor, "run_jobs", "lists runs in no order with -n"):
        run_jobs = Executor.run_jobs

        def by_priority(executor: Any, jobs: Sequence[Any]) -> None:
            run_jobs(executor, sorted(jobs, key=lambda job: job.priority, reverse=True))

        Executor.run_jobs = by_priority


def _is_known(owner: type, member: str, otherwise: str) -> bool:
    """Whether ``member`` is as the patch expects; a line on what Snakemake does else."""
    from snakemake.common import __version__

    known = hasattr(owner, member) and _is_read(__version__)
    if not known:
        _log.warning("this workflow does not know Snakemake %s, which %s", __version__, otherwise)
    return known


def _is_read(version: str) -> bool:
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    return numbers < PATCHED_BELOW


def look_again() -> Callable[[Any, float], None]:
    """Replacement of ``JobScheduler._schedule_reevalutation``: the same, by one timer."""
    timers: list[threading.Timer] = []

    def look(scheduler: Any, delay: float) -> None:
        while timers:
            timers.pop().cancel()
        timer = threading.Timer(delay, scheduler._open_jobs.release)
        timer.daemon = True  # nothing waits for it once all is done
        timers.append(timer)
        timer.start()

    return look
