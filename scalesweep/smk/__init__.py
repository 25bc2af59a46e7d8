"""Snakemake's side: the only code that knows Snakemake, with the Snakefile and its rules.

Imports core to planning. It is loaded while the Snakefile is parsed, so nothing heavy is imported.
"""
