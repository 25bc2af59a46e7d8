# A look at points that are measured until they are precise, after each block of their repeats: the
# next block is of those that are still too wide.


localrules:
    look,


checkpoint look:
    input:
        lambda wildcards: SWEEP.look_input(int(wildcards.number)),
    output:
        touch(SWEEP.look_output()),
    log:
        f"{RESULTS}/logs/look-{{number}}.log",
    wildcard_constraints:
        number="[0-9]+",
    params:
        script=f"{SCRIPT}/look.py",
        campaign=SWEEP.campaign_arguments(),
        budget="--budget" if SWEEP.submission else "",
    message:
        "Looking at repeats: who needs another one"
    shell:
        "{params.script} {params.campaign} {params.budget} > {log:q} 2>&1"
