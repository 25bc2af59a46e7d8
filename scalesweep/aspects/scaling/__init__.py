"""How rates and efficiency change with the scale, and up to where it is worth it."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(__name__, parts=("findings",))
