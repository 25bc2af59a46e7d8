"""Slurm: what jobs ask for, what the cluster says of them, and why a job failed."""
