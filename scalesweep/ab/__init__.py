"""Commits of the measured program against each other: checked out, measured alternately, judged.

``scalesweep ab`` compares two, ``scalesweep bisect`` searches between two. Imports ``history``,
which keeps the verdicts.
"""
