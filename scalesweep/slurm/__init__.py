"""Slurm: its commands, what a job asks for, what its accounting says, why a job failed.

Knows sites (config), nothing of campaigns and of Snakemake.
"""
