"""The report: one HTML page, its sections and data, and LaTeX tables.

Imports everything below it but figures, which it takes as files.
"""
