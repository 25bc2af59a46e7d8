"""The control point: one point of a campaign, repeated between all others to show drift."""

from collections.abc import Sequence
from dataclasses import replace

from scalesweep.config.campaign_keys import ControlKeys
from scalesweep.config.experiment import Experiment
from scalesweep.config.points import varying_parameters
from scalesweep.config.repeats import runs_of
from scalesweep.config.run_order import control_repeats
from scalesweep.core.errors import UserError, choices

CONTROL = "control"  # name of the experiment that the control point is


def control_experiment(
    experiments: Sequence[Experiment], spec: ControlKeys, where: str
) -> Experiment:
    """The control point as an experiment of its own, with as many repeats as the others need.

    ``spec`` is what the campaign file says of it, ``where`` what messages name. Raises UserError if
    no experiment has such a point, or several fit.
    """
    by_name = {experiment.name: experiment for experiment in experiments}
    if CONTROL in by_name:
        raise UserError(f"{where}: experiments.{CONTROL}: this name is reserved for it")
    source = by_name.get(spec.experiment)
    if source is None:
        raise UserError(
            f"{where}.experiment: {spec.experiment!r} is not an experiment of this campaign; "
            + choices(spec.experiment, by_name)
        )
    benchmark = source.benchmark
    wanted = benchmark.normalised(spec.point, f"{where}.point")
    points = [point for point in source.points if point.items() >= wanted.items()]
    if len(points) != 1:
        differing = ", ".join(varying_parameters(benchmark, points or source.points))
        raise UserError(
            f"{where}.point: {len(points)} points of {source.name} fit; it must be one: set values "
            f"of {differing or 'none'} that one of its points has"
        )
    (point,) = points
    # The control's runs do not become fewer while others are left out.
    others: set[str] = set().union(*(experiment.left_out for experiment in experiments))
    runs = {run.run_id: run for experiment in experiments for run in experiment.runs}
    own = {benchmark.run_id(point, repeat) for repeat in range(len(runs))} & runs.keys()
    shared = max((runs[run_id].repeat + 1 for run_id in own), default=0)
    repeats = control_repeats(len(others | (runs.keys() - own)), spec.every, shared)
    varying = ", ".join(f"{name} {point[name]}" for name in source.axes if name in point)
    return replace(
        source,
        name=CONTROL,
        description=f"A point of {source.name}{varying and f' ({varying})'}, measured "
        "repeatedly between all other runs: what changes here is the machine.",
        scaling="none",
        axes=(),
        linked=(),
        points=(point,),
        runs=runs_of(benchmark, {benchmark.identity_of(point): point}, [range(repeats)]),
        profiles=(),
        excluded=(),
        until_precise=None,
        control=True,
        predict=(),
        stop=None,
        left_out=frozenset(),
        part_of="",
        rules=(),
    )
