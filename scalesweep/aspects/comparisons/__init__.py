"""The values of parameters against each other: the best, by how much, and on other sites."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(__name__, parts=("figure", "findings"))
