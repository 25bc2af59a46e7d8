"""Aspects of an experiment, a folder each: its table, figure, findings and section of the report.

``registry.py`` lists them, ``order.py`` the findings in the order of the report;
``make_tables.py``, ``draw.py`` and ``find.py`` go through both.
"""
