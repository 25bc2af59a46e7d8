"""One experiment's tables, read back: what figures, findings and report ask of them.

Imports core, analysis and tables.
"""
