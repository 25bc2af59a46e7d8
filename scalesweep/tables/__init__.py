"""From records to tables: one row per finished run, then the tables of every experiment.

Imports pandas, PyArrow, core to planning; nothing of Snakemake and of figures.
"""
