# scalesweep: scaling studies of distributed deep learning as one workflow.
# Data flows in the order of the includes: plan, stage, run, summarise, tables, figures, report.
import gc
import logging
import os
import shlex
import signal
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.10")  # scheduler plugins

# Until jobs start (onstart) nothing has begun, and Ctrl-C is answered with one line.
INTERRUPTED = "error: interrupted while the campaign was read: nothing was started"
INTERRUPT = signal.signal(signal.SIGINT, lambda *_: sys.exit(INTERRUPTED))

# Thousands of long-lived job objects: collecting garbage among them again and again buys nothing.
gc.freeze()
gc.set_threshold(200_000, 50, 1000)

# On a full disk Snakemake's own log would show a traceback for each of its lines.
logging.raiseExceptions = False

# Not that of workflow.basedir where a study includes this file.
ROOT = Path(str(workflow.current_basedir))
sys.path.insert(0, str(ROOT))

# Without a shell in between (exec), a script learns at once of the end of its Snakemake. Its
# errors are printed on descriptor 3 too, where a log takes its output.
SCRIPT = (
    "SCALESWEEP_SNAKEMAKE=$PPID exec 3>&2"
    f" {shlex.quote(sys.executable)} {shlex.quote(str(ROOT))}/workflow/scripts/step.py"
)

from scalesweep.core.errors import UserError
from scalesweep.core.log import VERBOSITY
from scalesweep.core.visible import visible
from scalesweep.smk import snakemake_facts as facts
from scalesweep.smk.startup import prepare
from scalesweep.smk.progress import Progress, one_line_a_job

# For what the library logs, here and in the scripts that rules start.
os.environ[VERBOSITY] = facts.verbosity(workflow)

try:
    SWEEP, PREFLIGHT, JOBS = prepare(
        configfiles=facts.configfiles(workflow),
        overrides=facts.overrides(workflow),
        # profiles/slurm sets it; the executor itself is not known yet.
        cluster="scalesweep_cluster" in facts.default_resources(workflow),
        # profiles/sge and the like set this one.
        batch="scalesweep_batch" in facts.default_resources(workflow),
        by_nodes="nodes" in facts.limits(workflow),
        collects=facts.collects(),
        dry=workflow.output_settings.dryrun,
    )
except UserError as error:
    sys.exit(f"error: {error}")

# What only shows ends with its reader (`| head`); Snakemake's log would wait for ever.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)

if SWEEP.away:
    from scalesweep.smk.batch_queue import BatchQueue
    from snakemake_executor_plugin_scalesweep import Executor

    Executor.rules, Executor.queue = JOBS, SWEEP.submission or BatchQueue(JOBS)

RESULTS = SWEEP.results
RUNS = SWEEP.runs_folder
PROGRESS = Progress(SWEEP)
one_line_a_job(workflow, PROGRESS)


rule all:
    default_target: True
    input:
        SWEEP.markers(SWEEP.pending),
        SWEEP.session(),
        lambda wildcards: SWEEP.parts(checkpoints.summarise.get()),
        # Each by name: Snakemake makes a lost file again only if it is asked for.
        [
            f"{RESULTS}/{name}"
            for name in (
                "plan.csv",
                "summary.parquet",
                "jobs.csv",
                "report.html",
            )
        ],


include: "workflow/rules/plan.smk"
include: "workflow/rules/stage.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/summarise.smk"
include: "workflow/rules/accounting.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/history.smk"
