"""How much of what its devices could do a transformer's training uses: MFU and HFU."""

from scalesweep.aspects.aspect import Aspect

ASPECT = Aspect(
    __name__,
    parts=("table", "findings", "section"),
    tables={
        "utilisation": "Tokens, FLOP, MFU and HFU of each point, by every convention that the "
        "model states enough for.",
    },
)
