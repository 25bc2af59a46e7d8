"""The rate at which files are read, against what the machine gives to plain reads."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(__name__, tables=("reading",), parts=("table", "figure", "findings"))
