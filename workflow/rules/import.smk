# Published results become records marked imported and go through the same tables.
from scalesweep.smk.last_error import repeat_error

# What is wrong with a source comes last, behind what Snakemake says of it.
repeat_error(Path(RESULTS, "logs"), "import_*.log")


localrules:
    import_cosmoflow,
    import_logs,


# snakemake import_cosmoflow --config source=FOLDER [site=LABEL] [results=FOLDER]
rule import_cosmoflow:
    log:
        f"{RESULTS}/logs/import_cosmoflow.log",
    params:
        script=f"{SCRIPT}/import_cosmoflow.py",
        source=SWEEP.options.get("source", ""),
        site=SWEEP.options.get("site", "imported"),
        results=SWEEP.options.get("results", "results/imported"),
        ranks=SWEEP.options.get("ranks", ""),
        snakefile=ROOT / "Snakefile",
    message:
        "Importing cosmoflow-benchmark results"
    shell:
        "{params.script} --source={params.source:q} --site={params.site:q}"
        " --results={params.results:q} --ranks={params.ranks:q}"
        " --snakefile {params.snakefile:q} 2>&1 | tee {log:q}"


# snakemake import_logs --config source=FILE_OR_FOLDER [ranks=N_OR_MAP] [site=LABEL] [results=FOLDER]
use rule import_cosmoflow as import_logs with:
    log:
        f"{RESULTS}/logs/import_logs.log",
    params:
        script=f"{SCRIPT}/import_logs.py",
        source=SWEEP.options.get("source", ""),
        site=SWEEP.options.get("site", "imported"),
        results=SWEEP.options.get("results", "results/imported"),
        ranks=SWEEP.options.get("ranks", ""),
        snakefile=ROOT / "Snakefile",
    message:
        "Importing logs"
