"""Checks of the doctor that are carried out where runs are: on compute nodes, or on this machine.

Standard library only.
"""
