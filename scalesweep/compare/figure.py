"""Figure of the ratios: a dot and its interval for each point, on a logarithmic axis."""

from typing import Any, cast

import matplotlib as mpl
import numpy as np
import pandas as pd
from markupsafe import Markup

from scalesweep.compare.joined import varying
from scalesweep.core.formatting import PHASES, counted, shorten, text_of
from scalesweep.figures.drawing import Drawing
from scalesweep.figures.files import svg_text
from scalesweep.figures.forms import Dots
from scalesweep.figures.theme import RC, Axis
from scalesweep.judge.change import IMPROVEMENT, INCONCLUSIVE, REGRESSION

MAX_DOTS = 40
VERDICTS = [IMPROVEMENT, REGRESSION, INCONCLUSIVE]


def draw_ratios(group: pd.DataFrame, pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """The figure of a metric and phase, in a list; an empty one without a ratio. ``pairs``: the
    points of its rows.

    Of more than 40 points those whose intervals lie farthest from 1 are drawn, in their order.
    """
    there = group[group["ratio"] > 0]
    if there.empty:
        return []
    far = np.maximum(np.log(there["low"]), -np.log(there["high"])).fillna(-np.inf)
    shown = there.loc[far.nlargest(MAX_DOTS).index.sort_values()]
    first = shown.iloc[0]
    claim = f"{first['experiment']}: {first['title'].lower()}, {PHASES[first['phase']]}"
    own = pairs.loc[shown["pair"]]
    names = varying(own)
    labels = [
        ", ".join(f"{name} {text_of(values.get(name))}" for name in names)
        for values in own["values"]
    ]
    frame = pd.DataFrame(
        {"label": [shorten(label or "the only point", 58) for label in labels],
         "value": shown["ratio"].to_numpy(), "low": shown["low"].to_numpy(),
         "high": shown["high"].to_numpy(), "series": pd.Categorical(shown["verdict"], VERDICTS)}
    )  # fmt: skip
    better = "right" if first["better"] == "higher" else "left"
    axis = Axis(f"Ratio of the means, new / base (better: {better})", "log", {"no change": 1.0})
    more = len(there) - len(shown)
    note = f"{claim}, new over base. Lines: 95 % intervals."
    note += f" {counted(more, 'point')} nearer to 1 only in the tables." if more else ""
    drawing = Drawing("ratios", f"{claim}, new over base", note, [Dots(frame, axis)])
    with mpl.rc_context(cast(Any, RC)):
        salt = f"ratios-{first['experiment']}-{first['metric']}-{first['phase']}"
        svg = svg_text(drawing.figure, salt, drawing.alt)
    # Written by scalesweep.figures, which serialises every label as XML text.
    return [{"caption": note, "svg": Markup(svg)}]
