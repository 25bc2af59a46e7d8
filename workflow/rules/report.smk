# The report: one self-contained page. (What `snakemake --report` collects is marked where it is
# made.)


report: "../report/workflow.rst"


localrules:
    page,
    report,


rule page:
    input:
        plan=f"{RESULTS}/plan.json",
        summary=f"{RESULTS}/summary.parquet",
        jobs=f"{RESULTS}/jobs.csv",
        experiments=lambda wildcards: SWEEP.parts(checkpoints.summarise.get()),
        template=ROOT / "resources" / "report.html.j2",
        parts=[ROOT / "resources" / f"{name}.html.j2" for name in ("page", "cells")],
        style=ROOT / "resources" / "report.css",
        scripts=[
            ROOT / "resources" / f"{name}.js"
            for name in ("tables", "charts", "report")
        ],
    output:
        report(
            f"{RESULTS}/report.html",
            caption="../report/page.rst",
            category="Report",
            labels={"page": "the whole campaign"},
        ),
    log:
        f"{RESULTS}/logs/report.log",
    params:
        script=f"{SCRIPT} page",
        results=lambda wildcards: RESULTS,
        runs=RUNS,
    message:
        "Writing {output}"
    shell:
        "{params.script} --results {params.results:q} --runs {params.runs:q} > {log:q} 2>&1"


# `snakemake report`: the report of whatever is there, while runs are pending or have failed.
# Asked for alone it awaits no run (SWEEP.inventory_input).
rule report:
    input:
        SWEEP.session(),
        page=f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report-now.log",
    message:
        "Reporting on the results so far"
    shell:
        "echo {input.page:q}"


onstart:
    signal.signal(signal.SIGINT, INTERRUPT)
    if SWEEP.to_run:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        PREFLIGHT.begin(facts.executor(workflow))
    except UserError as error:
        sys.exit(f"error: {error}")
    if SWEEP.submission:
        signal.signal(signal.SIGTERM, Executor.leave)


onsuccess:
    if (PROGRESS.finish() or SWEEP.round) and (where := SWEEP.report_line()):
        print(where, file=sys.stderr)
    if damaged := SWEEP.set_aside():
        # The report was made without them; of `snakemake report` no more was asked.
        if facts.only_reports(workflow):
            print(visible(f"warning: {damaged}"), file=sys.stderr)
        else:
            sys.exit(visible(f"error: {damaged}"))
    if not facts.only_reports(workflow) and (more := SWEEP.next_block()):
        print(more, file=sys.stderr)
    if failed := PROGRESS.left_failed():
        sys.exit(f"error: {failed}")


# Not for a run that failed: its job succeeds once its failure is told.
onerror:
    if SWEEP.submission and Executor.leaving:
        # Within seconds: the next call settles and reports. What was started here ends with this
        # process; an exit of Python's would wait for the threads of local jobs.
        PROGRESS.finish()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signal.SIGTERM)
    if (PROGRESS.finish() or SWEEP.round) and (
        where := SWEEP.report_line(PROGRESS.since)
    ):
        print(where, file=sys.stderr)
