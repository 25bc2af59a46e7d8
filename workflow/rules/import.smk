# Published results become records marked imported and go through the same tables.
from scalesweep.smk.last_error import repeat_error

# What is wrong with a source comes last, behind what Snakemake says of it.
repeat_error(Path(RESULTS, "logs"), "import_*.log")


localrules:
    import_cosmoflow,
    import_logs,
    import_profiles,
    import_table,


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


# snakemake import_logs --config source=FILE_OR_FOLDER [ranks=N_OR_MAP] [test=NAME] [site=LABEL]
# [results=FOLDER]
rule import_logs:
    log:
        f"{RESULTS}/logs/import_logs.log",
    params:
        script=f"{SCRIPT}/import_logs.py",
        source=SWEEP.options.get("source", ""),
        site=SWEEP.options.get("site", "imported"),
        results=SWEEP.options.get("results", "results/imported"),
        ranks=SWEEP.options.get("ranks", ""),
        test=SWEEP.options.get("test", ""),
        snakefile=ROOT / "Snakefile",
    message:
        "Importing logs"
    shell:
        "{params.script} --source={params.source:q} --site={params.site:q}"
        " --results={params.results:q} --ranks={params.ranks:q} --test={params.test:q}"
        " --snakefile {params.snakefile:q} 2>&1 | tee {log:q}"


# snakemake import_table --config source=FILE [map=FILE.yaml] [site=LABEL] [results=FOLDER]
rule import_table:
    log:
        f"{RESULTS}/logs/import_table.log",
    params:
        script=f"{SCRIPT}/import_table.py",
        source=SWEEP.options.get("source", ""),
        map=SWEEP.options.get("map", ""),
        site=SWEEP.options.get("site", "imported"),
        results=SWEEP.options.get("results", "results/imported"),
        ranks=SWEEP.options.get("ranks", ""),
        snakefile=ROOT / "Snakefile",
    message:
        "Importing a table"
    shell:
        "{params.script} --source={params.source:q} --map={params.map:q} --site={params.site:q}"
        " --results={params.results:q} --ranks={params.ranks:q}"
        " --snakefile {params.snakefile:q} 2>&1 | tee {log:q}"


# snakemake import_profiles --config source=FILE_OR_FOLDER [benchmark=NAME] [ranks=N] [site=LABEL]
rule import_profiles:
    log:
        f"{RESULTS}/logs/import_profiles.log",
    params:
        script=f"{SCRIPT}/import_profiles.py",
        source=SWEEP.options.get("source", ""),
        benchmark=SWEEP.options.get("benchmark", ""),
        site=SWEEP.options.get("site", "imported"),
        results=SWEEP.options.get("results", "results/imported"),
        ranks=SWEEP.options.get("ranks", ""),
        snakefile=ROOT / "Snakefile",
    message:
        "Importing profiles"
    shell:
        "{params.script} --source={params.source:q} --benchmark={params.benchmark:q}"
        " --site={params.site:q} --results={params.results:q} --ranks={params.ranks:q}"
        " --snakefile {params.snakefile:q} 2>&1 | tee {log:q}"
