"""Runs that are not started because enough like them have failed in the same way (``stop_after``).

What they are like: runs of one experiment with the values in which all those agree that failed
with one cause and detail. Once a run with these values has succeeded, something else decides, and
none is left out for them. So three repeats of a point that fail stop the others of that point, and
three points of one mode that fail stop the mode; all other runs go on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import Run
from scalesweep.core.causes import Fault, facts_of
from scalesweep.core.formatting import text_of
from scalesweep.core.profilers import NONE
from scalesweep.jobs.failure_groups import kind_of


class Enough(NamedTuple):
    """Runs of an experiment that failed in the same way; ``values`` are those that they share."""

    experiment: str
    values: Mapping[str, Any]
    failed: int
    said: str

    @property
    def where(self) -> str:
        """``e behaviour=exit3``."""
        values = {k: v for k, v in self.values.items() if (k, v) != ("profile", NONE)}
        return " ".join([self.experiment, *(f"{k}={text_of(v)}" for k, v in values.items())])


@dataclass
class FailingKinds:
    """How runs ended, and which are like those that failed; ``most`` None: none is left out."""

    most: int | None
    runs: Mapping[str, tuple[Experiment, Run]]
    _done: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    _failed: dict[tuple[str, tuple[str, str]], dict[str, Mapping[str, Any]]] = field(
        default_factory=dict
    )

    def succeeded(self, run_id: str) -> None:
        """Note that a run has a record."""
        self._done.setdefault(self.runs[run_id][0].name, []).append(self._values(run_id))

    def failed(self, run_id: str, cause: str, detail: str) -> Enough | None:
        """Note that a run has failed; what is enough, if it is."""
        if self.most is None or facts_of(cause).fault is not Fault.RUN:
            return None
        name = self.runs[run_id][0].name
        kind = kind_of(run_id, cause, detail)
        like = self._failed.setdefault((name, kind), {})
        like[run_id] = self._values(run_id)
        if len(like) < self.most:
            return None
        first, *others = like.values()
        shared = {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}
        if any(_has(done, shared) for done in self._done.get(name, ())):
            return None
        return Enough(name, shared, len(like), ": ".join(filter(None, (cause, detail))))

    def like(self, enough: Enough, run_ids: Iterable[str]) -> list[str]:
        """Those of these runs that are like the ones that failed."""
        return [
            run_id
            for run_id in run_ids
            if self.runs[run_id][0].name == enough.experiment
            and _has(self._values(run_id), enough.values)
        ]

    def _values(self, run_id: str) -> Mapping[str, Any]:
        """What varies in the experiment of a run, and the run's values."""
        experiment, run = self.runs[run_id]
        point = experiment.benchmark.scaled(run.point)
        axes = (*experiment.axes, *experiment.linked)
        return {axis: point[axis] for axis in axes if axis in point} | {"profile": run.profile}


def _has(values: Mapping[str, Any], shared: Mapping[str, Any]) -> bool:
    return all(values.get(name) == value for name, value in shared.items())
