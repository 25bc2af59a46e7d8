# Commits of the measured program against each other, in worktrees of their own: which of two is
# slower, and which commit made it slower.


localrules:
    settle,
    first_bad,


COMMITS = {
    verb: SWEEP.option_arguments(*sides, "points", "metric", "repeats")
    for verb, sides in {"settle": ("base", "new"), "first_bad": ("good", "bad")}.items()
}


# What it costs comes first, from the script itself, with -n too; a mistake ends the call here, in
# one line.
for verb in COMMITS:
    if facts.asks_only(verb):
        script = [sys.executable, str(ROOT / "workflow" / "scripts" / f"{verb}.py")]
        words = f"{SWEEP.campaign_arguments()} {COMMITS[verb]} --show"
        if subprocess.run([*script, *shlex.split(words)]).returncode:
            sys.exit(1)


# snakemake settle --config base=COMMIT new=COMMIT [points=... metric=... repeats=N]: both commits in
# turn, in one go or one allocation of each point.
rule settle:
    log:
        f"{RESULTS}/logs/settle.log",
    params:
        script=f"{SCRIPT}/settle.py",
        campaign=SWEEP.campaign_arguments(),
        commits=COMMITS["settle"],
    message:
        "Measuring two commits"
    shell:
        "{params.script} {params.campaign} {params.commits} 2>&1 | tee {log:q}"


# snakemake first_bad --config good=COMMIT bad=COMMIT: halves the commits between them.
rule first_bad:
    log:
        f"{RESULTS}/logs/first_bad.log",
    params:
        script=f"{SCRIPT}/first_bad.py",
        campaign=SWEEP.campaign_arguments(),
        commits=COMMITS["first_bad"],
    message:
        "Looking for the first bad commit"
    shell:
        "{params.script} {params.campaign} {params.commits} 2>&1 | tee {log:q}"
