"""The doctor: what a campaign would need on its site, checked in less than two minutes.

Imports ``planning`` and everything below it. What is looked at where runs are is in
``scalesweep.compute.doctor``.
"""
