"""What runs on compute nodes: the launcher, its program, logs read there, power sampling.

Imports the standard library and scalesweep.core only, and starts in well under 100 ms.
"""
