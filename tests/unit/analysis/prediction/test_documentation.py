"""The worked example of docs/methods/prediction.md."""

import re

from bench.lib.prediction_series import PUBLIC
from scalesweep.analysis.prediction.calibration import CALIBRATION
from scalesweep.analysis.prediction.forecast import FARTHEST, knee, predict, trusted_limit
from scalesweep.analysis.prediction.intervals import HIGH, LOW
from scalesweep.analysis.prediction.models import MODELS
from scalesweep.core.paths import REPO


def test_the_worked_example() -> None:
    page = re.sub(r"\s+", " ", (REPO / "docs" / "methods" / "prediction.md").read_text())
    (summit,) = (one for one in PUBLIC if one.name == "Summit, first table")
    assert ", ".join(f"{value:.6f}" for value in summit.values[:6]) in page
    known = summit.with_borders().first(6)
    found = predict(known, summit.ranks[6:])
    low, high = found.interval()
    low_50, high_50 = found.interval(0.5)
    for i, (ranks, measured) in enumerate(zip(summit.ranks[6:], summit.values[6:], strict=True)):
        row = (
            f"| {ranks} | {found.cost[i]:.3f} | {low_50[i]:.3f} to {high_50[i]:.3f} "
            f"| {low[i]:.3f} to {high[i]:.3f} | {measured:.3f} |"
        )
        assert row in page
    for formula, weight in found.weighted[:3]:
        assert f"| {formula} | {weight:.0%} |".replace("%", " %") in page
    parts = found.sources
    four = [getattr(parts, n)[HIGH, 1] for n in ("repeats", "scatter", "models", "regime")]
    said = "{:.1f} % (one run each: repeats are not known), {:.1f} %, {:.1f} % and {:.1f} %"
    assert said.format(*(100 * float(part) for part in four)) in page
    together = (100 * float(parts.total[side, 1]) for side in (HIGH, LOW))
    assert "together {:.1f} %; towards lower cost {:.1f} %".format(*together) in page
    bend = knee(known, 0.8)
    assert bend is not None
    assert f"falls below 80 % at {bend.count:.0f} ranks" in page
    assert f"interval from {bend.low:.0f} to beyond {trusted_limit(known):,}" in page
    assert (
        f"{len(MODELS['weak'])} models" in page
        and f"strong scaling {len(MODELS['strong'])}" in page
    )
    for rule in CALIBRATION.values():
        assert f"{100 * rule.rate:.3g} %" in page
        assert f"{rule.shift:.0%}".replace("%", " %") in page
        assert f"{rule.degrees:g}" in page
    weak = CALIBRATION["weak"]
    assert f"drawn towards {weak.spread:.0%} of their mean growth".replace("%", " %") in page
    far = f"({FARTHEST['weak']:g} in weak scaling; {FARTHEST['strong']:g} in strong scaling"
    assert far in page
    lower, higher = (side.slope for side in (CALIBRATION["weak"].low, CALIBRATION["weak"].high))
    said = f"The lower bound therefore allows for {lower:.0%} of the predicted change, "
    assert f"{said}the upper bound for {higher:.0%}".replace("%", " %") in page
