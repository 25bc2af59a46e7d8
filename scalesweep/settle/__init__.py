"""Commits of the measured program against each other: checked out, measured alternately, judged.

``snakemake settle`` compares two, ``snakemake first_bad`` bisects. Imports ``history``, which keeps
the verdicts.
"""
