"""Shared by both worlds: records, files, locks, processes of this host.

Imports the standard library and scalesweep.core only: it runs on compute nodes under a site's
Python.
"""
