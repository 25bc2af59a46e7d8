"""Gates: one file a promise, seen as a user sees it. What is behind may be rewritten.

They use the command line, files with documented columns and exit codes; they import nothing of
scalesweep. They say what a table must hold, not in which words. Where a results folder keeps
something is in `places`. `make test` runs the quick form, `make gates` the whole one.
"""
