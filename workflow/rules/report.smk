# The report: one self-contained page. (What `snakemake --report` collects is marked where it is
# made.)


report: "../report/workflow.rst"


REPORT_MADE = f"echo report: {shlex.quote(RESULTS)}/report.html"
REPORT_NOW = SWEEP.report_command()


localrules:
    page,
    report,


rule page:
    input:
        plan=f"{RESULTS}/plan.json",
        summary=f"{RESULTS}/summary.parquet",
        jobs=f"{RESULTS}/jobs.csv",
        tables=lambda wildcards: SWEEP.parts("tables", checkpoints.summarise.get()),
        figures=lambda wildcards: SWEEP.parts("figures", checkpoints.summarise.get()),
        template=ROOT / "resources" / "report.html.j2",
        ceilings=ROOT / "resources" / "ceilings.html.j2",
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
        script=f"{SCRIPT}/page.py",
        runs=RUNS,
        tables=f"{RESULTS}/tables",
        figures=f"{RESULTS}/figures",
    message:
        "Writing {output}"
    shell:
        "{params.script} --plan {input.plan:q} --summary {input.summary:q}"
        " --jobs {input.jobs:q} --tables {params.tables:q} --figures {params.figures:q} --runs {params.runs:q}"
        " --out {output:q} > {log:q} 2>&1"


# `snakemake report`: the report of whatever is there, while runs are pending or have failed.
# A finished run is a file outside the DAG, so the same workflow with nothing pending makes it.
rule report:
    log:
        f"{RESULTS}/logs/report-now.log",
    params:
        command=REPORT_NOW,
        page=f"{RESULTS}/report.html",
    message:
        "Reporting on the results so far"
    shell:
        "{params.command} 2>&1 | tee {log:q} | {{ grep '^error: ' >&2 || true; }}"
        " && echo {params.page:q}"


onstart:
    try:
        PREFLIGHT.begin(facts.rules_to_run(workflow), facts.executor(workflow))
    except UserError as error:
        sys.exit(f"error: {error}")
    if SWEEP.submission:
        leave_on_sigterm(Executor)
    PROGRESS.start()


# A call for the report alone leaves these to the call that has made it.
if SWEEP.options.get("pending") != "ignore":

    onsuccess:
        if PROGRESS.finish() and Path(RESULTS, "report.html").exists():
            print(f"report: {RESULTS}/report.html", file=sys.stderr)
        if damaged := SWEEP.set_aside():
            # The report was made without them; of `snakemake report` no more was asked.
            if "report" in facts.targets(workflow):
                print(visible(f"warning: {damaged}"), file=sys.stderr)
            else:
                sys.exit(visible(f"error: {damaged}"))

    onerror:
        if SWEEP.submission and Executor.leaving.is_set():
            # Within seconds: the next call settles and reports.
            PROGRESS.finish()
            leave_now()
        if SWEEP.submission:
            # Causes of the runs whose jobs ended before their launcher could write one.
            SWEEP.submission.settle_past(SWEEP.pending)
        PREFLIGHT.claims.release_report()
        if PROGRESS.finish() or SWEEP.set_aside():
            # Failure is data: the report shows the holes and their causes.
            shell(
                "mkdir -p {RESULTS:q}/logs;"
                f" {REPORT_NOW}"
                " 2>&1 | tee {RESULTS:q}/logs/report-now.log"
                " | {{ grep '^error: ' >&2 || true; }}"
                f" && {REPORT_MADE}"
                # A history that cannot be written comes after the report.
                " || {{ [ {RESULTS:q}/report.html -nt {RESULTS:q}/summary.parquet ]"
                f" && {REPORT_MADE}; }}}}"
                " || echo no report, see {RESULTS:q}/logs/report-now.log"
            )
        if damaged := SWEEP.set_aside():
            print(visible(f"error: {damaged}"), file=sys.stderr)
