"""The doctor: what a campaign would need on its site, checked in less than two minutes.

Imports ``planning`` and everything below it. ``workflow/doctor/site_probe.py`` looks where runs
are, started by ``scalesweep.compute.probe_job``.
"""
