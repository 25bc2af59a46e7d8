# scalesweep: scaling studies of distributed deep learning as one workflow.
# Data flows in the order of the includes: plan, stage, run, summarise, tables, figures, report.
import gc
import json
import shlex
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")

# Thousands of long-lived job objects: collecting garbage among them again and again buys nothing.
gc.freeze()
gc.set_threshold(200_000, 50, 1000)

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT))

from scalesweep.errors import UserError
from scalesweep.progress import Progress
from scalesweep.workflow import prepare

try:
    SWEEP = prepare(
        configfiles=workflow.config_settings.configfiles,
        overrides=workflow.config_settings.config,
        default=ROOT / "config" / "config.yaml",
        main=workflow.is_main_process,
    )
except UserError as error:
    sys.exit(f"error: {error}")

RESULTS = SWEEP.results
RUNS = SWEEP.runs_folder
PROGRESS = Progress(Path(RUNS), SWEEP.pending)
SCRIPT = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT))}/workflow/scripts"


rule all:
    default_target: True
    input:
        SWEEP.pending_records(),
        # Each by name: Snakemake makes a lost file again only if it is asked for.
        [
            f"{RESULTS}/{name}"
            for name in (
                "plan.csv",
                "summary.parquet",
                "tables",
                "figures",
                "report.html",
            )
        ],


include: "workflow/rules/plan.smk"
include: "workflow/rules/stage.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/summarise.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/import.smk"
