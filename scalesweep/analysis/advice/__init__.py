"""Where further node-hours narrow intervals most: what to measure next, within a budget.

``advise.Options`` is the entrance; docs/guide/budget.md explains each part and its limits.
"""
