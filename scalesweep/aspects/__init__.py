"""Aspects of an experiment, a file or folder each: table, figure, findings, section of the report.

``registry.py`` lists them in the order of the report; ``make_tables.py``, ``draw.py`` and
``find.py`` go through it.
"""
