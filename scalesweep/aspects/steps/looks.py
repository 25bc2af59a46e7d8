"""Colours of the terms of a step, in figures and on the page (which draws without matplotlib)."""

from collections.abc import Mapping, Sequence

from scalesweep.aspects.steps.efficiency import IMBALANCE, OTHER

# Colours after Okabe and Ito: what was there at the reference is dark, what is lost is bright.
_GROUPS: Mapping[str, Sequence[str]] = {
    "#0072B2": ("compute", "busy", "at_reference"),
    "#56B4E9": ("slower", "local_batch"),
    "#009E73": ("input",),
    "#7A5195": ("checkpoint", "validation", "logging", "between"),
    "#D55E00": ("persistent", IMBALANCE),
    "#E69F00": ("alternating", "stalls"),
    "#CC79A7": ("transfer", "communication", "sharded", "tensor", "pipeline"),
    "#F0E442": ("barrier",),
    "#9aa1ab": ("unattributed", "outside", OTHER),
}
_HATCHES = ("", "////", "----", "xxxx", "\\\\\\\\")
LOOKS: Mapping[str, tuple[str, str]] = {
    name: (colour, "" if name in ("busy", "at_reference", IMBALANCE) else _HATCHES[place])
    for colour, names in _GROUPS.items()
    for place, name in enumerate(names)
}
