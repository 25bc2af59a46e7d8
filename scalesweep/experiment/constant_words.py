"""What a kind of scaling keeps the same along a series, in words with its amount."""

from scalesweep.core.formatting import number
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.core.scaling_kinds import MODEL, NONE, WEAK
from scalesweep.planning.planned_shapes import planned_shape

_NEAR = 1e-9  # of amounts that are divided by counts


def constant_words(entry: PlanExperiment) -> str:
    """What was constant along the series of an experiment, with its amount if all series have the
    same; empty without scaling.

    As planned: of runs without a result too. Where a benchmark does not declare its work, nothing
    was checked, which is said.
    """
    kind, scale = entry["scaling"], entry["scale"]
    if kind == NONE:
        return ""
    if kind == MODEL:
        shapes = (planned_shape(entry, {**entry["fixed"], **r["point"]}) for r in entry["runs"])
        sizes = sorted(s.parameters / 1e6 for s in shapes if s is not None and s.parameters)
        of = f": {number(sizes[0])} to {number(sizes[-1])} million parameters" if sizes else ""
        return (
            f"the model grows with the ranks{of}; FLOP/s of a rank ideally stay the same, "
            "samples/s do not"
        )
    of = f"of a {scale.removesuffix('s')}" if kind == WEAK else "of a run"
    amounts = [
        work / (int(run["point"][scale]) if kind == WEAK else 1)
        for run in entry["runs"]
        if (work := run.get("work")) is not None
    ]
    if not amounts:
        return "as the campaign states it: the benchmark does not declare its samples"
    if max(amounts) - min(amounts) <= _NEAR * max(amounts):
        return f"constant: {number(amounts[0])} samples {of}"
    return f"constant along each series: the samples {of}"
