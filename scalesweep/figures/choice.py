"""Which figures of a large campaign are drawn.

Figures of scaling, of comparisons, and of two parameters grow in number with the parameters of an
experiment, and so does the time that they take. Where a campaign has many points the most telling
ones are drawn; what the others would show is in the tables.
"""

import re
from collections.abc import Sequence

from scalesweep.core.formatting import counted
from scalesweep.figures.style import Sketch

MANY_POINTS, MOST_FIGURES = 200, 15
# In falling order of what they tell of an experiment as a whole.
_KINDS = ("overview", "heatmap", "compare", "ratio", "scaling", "groups", "size")
_NUMBERED = re.compile(r"-(\d+)(-|$)")


def most_telling(sketches: Sequence[Sequence[Sketch]], points: int) -> list[list[Sketch]]:
    """Of each experiment the sketches to be drawn, in their order.

    All of them unless the campaign has ``MANY_POINTS``; then ``MOST_FIGURES``, the most telling of
    each experiment first. Later epochs go before first ones, and the first series (or plane)
    before further ones.
    """
    if points < MANY_POINTS:
        return [list(drawings) for drawings in sketches]
    turns = [
        (turn, experiment, place)
        for experiment, drawings in enumerate(sketches)
        for turn, place in enumerate(
            sorted(range(len(drawings)), key=lambda i: (_rank(drawings[i]), i))
        )
    ]
    chosen = {(experiment, place) for _, experiment, place in sorted(turns)[:MOST_FIGURES]}
    return [
        [sketch for place, sketch in enumerate(drawings) if (experiment, place) in chosen]
        for experiment, drawings in enumerate(sketches)
    ]


def _rank(sketch: Sketch) -> tuple[bool, bool, int]:
    kind = sketch.name.partition("-")[0]
    number = _NUMBERED.search(sketch.name)
    further = kind in ("scaling", "heatmap", "groups") and bool(number and int(number[1]) > 1)
    return further, sketch.name.endswith("-init"), _KINDS.index(kind)


def left_out_words(names: Sequence[str]) -> str:
    """What the report says of figures that were not drawn."""
    return (
        f"{counted(len(names), 'more figure')} of this experiment not drawn (first epochs, "
        f"further series or parameters): a campaign of {MANY_POINTS} points or more has "
        f"{MOST_FIGURES} figures of scaling, comparisons and heat maps, the most informative of "
        "each experiment first. The tables have all points."
    )
