"""What ``--target "EXPERIMENT ..."`` asks for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.core.errors import UserError, choices
from scalesweep.core.formatting import text_of

KNEE = "knee"
LARGEST = 10_000_000
FORM = "EXPERIMENT ranks=N, EXPERIMENT knee, or EXPERIMENT PARAMETER, then NAME=VALUE"


@dataclass(frozen=True)
class Wanted:
    """What is asked: of one experiment (empty: of all) a count, the knee or the settings of a
    ``parameter``, at points with these ``values`` (as text); with none of the three, all of them.
    """

    experiment: str = ""
    count: int | None = None
    knee: bool = False
    parameter: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def anything(self) -> bool:
        """Whether all that an experiment can be asked is."""
        return self.count is None and not self.knee and not self.parameter

    @property
    def asks_series(self) -> bool:
        """Whether a prediction or a knee is asked for."""
        return not self.parameter

    @property
    def asks_choices(self) -> bool:
        """Whether choices between settings are."""
        return self.anything or bool(self.parameter)


def read_target(text: str, campaign: Campaign) -> Wanted:
    """The target that a text names; an empty one asks for everything. Raises UserError."""
    words = text.split()
    if not words:
        return Wanted()
    where = f"--target {text}"
    by_name = {
        experiment.name: experiment
        for experiment in campaign.experiments
        if not experiment.control and not experiment.part_of
    }
    name = words[0]
    if name not in by_name:
        raise UserError(
            f"{where}: {name!r} is not an experiment of this campaign; {choices(name, by_name)}"
        )
    experiment = by_name[name]
    count: int | None = None
    knee, parameter = False, ""
    values: dict[str, str] = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals and key == KNEE:
            knee = True
        elif key not in experiment.axes:
            varying = {*experiment.axes, KNEE}
            raise UserError(
                f"{where}: {key!r} does not vary in {name}; {choices(key, varying)} ({FORM})"
            )
        elif not equals:
            parameter = key
        elif key == experiment.benchmark.scale:
            count = _count(value, f"{where}: {key}")
        else:
            values[key] = _value(experiment, key, value, where)
    if knee + bool(parameter) + (count is not None and not parameter) > 1:
        raise UserError(f"{where}: asks for two things; allowed: {FORM}")
    if parameter and count is not None:
        values[experiment.benchmark.scale], count = str(count), None
    return Wanted(name, count, knee, parameter, values)


def _count(text: str, where: str) -> int:
    if re.fullmatch("[0-9]{1,8}", text) and 1 <= int(text) <= LARGEST:
        return int(text)
    raise UserError(
        f"{where}: {text!r} is not a count; allowed: a whole number from 1 to {LARGEST:,}"
    )


def _value(experiment: Experiment, name: str, text: str, where: str) -> str:
    """A value of a varying parameter, as text."""
    points = map(experiment.benchmark.scaled, experiment.points)
    known = list(dict.fromkeys(text_of(point[name]) for point in points))
    if text not in known:
        raise UserError(f"{where}: no point of {experiment.name} has {name} {text}; "
                        f"{choices(text, known)}")  # fmt: skip
    return text
