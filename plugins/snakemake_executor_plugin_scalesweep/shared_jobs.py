"""Jobs of Snakemake that share one of Slurm's: their looks, and how many there may be."""

import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Packed(Protocol):
    """A job of several: what it has in place of a rule and wildcards, and what it asks for."""

    @property
    def rule(self) -> str:
        """In the place of a rule."""

    @property
    def wildcards(self) -> Mapping[str, str]:
        """In the place of the wildcards of a rule."""

    @property
    def resources(self) -> Mapping[str, int | str]:
        """Its resources, in place of those of the first of its jobs."""


class Together:
    """Jobs of Snakemake as the one that the Slurm executor submits: the first of them, with another
    name, wildcards and resources."""

    def __init__(self, jobs: Sequence[Any], packed: Packed) -> None:
        self.jobs, self.name = jobs, packed.rule
        self.wildcards_dict = packed.wildcards
        self.wildcards = list(packed.wildcards.values())
        self.resources = Resources(jobs[0].resources.items())
        self.resources.update(packed.resources)

    def __getattr__(self, name: str) -> Any:
        """What the first job has under this name."""
        return getattr(self.jobs[0], name)


class Resources(dict[str, Any]):
    """Resources of a job, read as Snakemake's own are."""

    def __getattr__(self, name: str) -> Any:
        """A resource by its name."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Limits:
    """How many jobs may be in Slurm's queue, and be submitted in a span of time."""

    def __init__(self, most: int, rate: Any) -> None:
        self.most, self._rate = most, rate
        self._lock = threading.Lock()

    @classmethod
    def taken_from(cls, scheduler: Any) -> "Limits":
        """The limits of Snakemake's scheduler, which counts runs and has none from now on."""
        with scheduler._lock:
            limits = cls(scheduler.global_resources.get("_nodes", sys.maxsize), None)
            if scheduler.job_rate_limiter is not None:
                limits._rate = scheduler.job_rate_limiter
                scheduler.job_rate_limiter = _Unlimited(limits._rate.timespan)
            if "_nodes" in scheduler.resources:
                scheduler.resources["_nodes"] += sys.maxsize
        return limits

    def allow(self, queued: int) -> bool:
        """Whether one more job may be submitted now, with so many in the queue; it then counts."""
        with self._lock:
            if queued >= self.most or (self._rate is not None and not self._rate.get_free_jobs()):
                return False
            if self._rate is not None:
                self._rate.register_jobs(1)
            return True


class _Unlimited:
    """In the place of the limit of jobs by time of Snakemake's scheduler."""

    def __init__(self, timespan: float) -> None:
        self.timespan = timespan

    def get_free_jobs(self) -> int:
        """How many jobs may be started now."""
        return sys.maxsize

    def register_jobs(self, count: int) -> None:
        """Jobs that were started."""
