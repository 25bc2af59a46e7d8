"""Where further node-hours narrow intervals most: what to measure next, within a budget.

``advise.Options`` is the entrance; docs/budget.md explains each part and its limits.
"""
