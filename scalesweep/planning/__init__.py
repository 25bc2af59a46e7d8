"""What is there and what is to run: states of runs, estimates, requests of jobs, the plan.

Imports the packages below it (core to slurm); neither pandas nor Snakemake, since it is loaded
while the Snakefile is parsed.
"""
