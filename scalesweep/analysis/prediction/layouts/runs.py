"""Layouts and what was measured of them, as columns of numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from scalesweep.analysis.types import Bools, Floats


@dataclass(frozen=True)
class Layout:
    """How a run splits its ranks and its batch.

    ``dp``: replicas of the batch (replicated times sharded); ``sharded``: whether what a rank holds
    is split over ``dp``; ``per_node``: ranks of a node. ``micro_batch`` in samples of one replica,
    ``accumulation`` micro-batches of a step. Of the model: ``work`` of a sample (FLOP), ``layers``,
    ``traffic``: numbers that a layer passes on for a sample (sequence times width), ``weights``
    (parameters); 1 where it is not known, so that constants are of this model only.
    """

    dp: int
    tp: int
    pp: int
    micro_batch: int
    accumulation: int
    per_node: int
    cp: int = 1
    ep: int = 1
    sharded: bool = False
    work: float = 1.0
    layers: float = 1.0
    traffic: float = 1.0
    weights: float = 1.0

    @property
    def ranks(self) -> int:
        """All ranks; those of experts lie within the others."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def global_batch(self) -> int:
        """Samples of a step."""
        return self.micro_batch * self.accumulation * self.dp

    @property
    def words(self) -> str:
        """The layout as text."""
        parts = [f"dp={self.dp} tp={self.tp} pp={self.pp}"]
        parts += [f"{n}={v}" for n, v in (("cp", self.cp), ("ep", self.ep)) if v > 1]
        # Without a word: not sharded, or not known to be.
        parts += ["sharded"] if self.sharded else []
        parts.append(f"micro-batch {self.micro_batch} x {self.accumulation}")
        return " ".join(parts)


@dataclass(frozen=True, eq=False)
class Columns:
    """``[layout]`` of each field of ``Layout``, as floats."""

    layouts: tuple[Layout, ...]

    def __getattr__(self, name: str) -> Floats:
        """The values of a field; worked out once."""
        if name not in _NAMES:
            raise AttributeError(name)
        values = np.array([getattr(layout, name) for layout in self.layouts], np.float64)
        self.__dict__[name] = values
        return values

    @cached_property
    def ranks(self) -> Floats:
        """Ranks of each."""
        return np.array([layout.ranks for layout in self.layouts], np.float64)

    @cached_property
    def places(self) -> Floats:
        """``[layout, axis]``: where each lies, in doublings; sharding counts as one and a half.

        Scale is left out: two layouts are alike if they split what they have alike.
        """
        logs = [np.log2(getattr(self, name)) / scale for name, scale in _SCALES.items()]
        return np.stack([*logs, self.sharded / 1.5], axis=1)


_NAMES = frozenset(known.name for known in fields(Layout))
# Doublings of each axis that make two layouts as different as any other.
_SCALES = {"dp": 3.0, "tp": 2.0, "pp": 2.0, "cp": 2.0, "ep": 2.0, "micro_batch": 3.0,
           "accumulation": 3.0}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Measured:
    """Layouts that were run: ``seconds[layout]`` of a step, NaN where a run failed.

    ``seconds`` may be in any unit of time that is the same for all, such as samples over tokens/s.
    ``too_large``: those that ran out of memory. ``expected``: what a unit of terms of the cost
    model takes by probes (``links.expected_costs``), in the same unit of time.
    """

    layouts: tuple[Layout, ...]
    seconds: Floats
    too_large: Bools
    expected: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def ran(self) -> Bools:
        """Those that gave a time."""
        return np.isfinite(self.seconds)

    @cached_property
    def scale(self) -> Floats:
        """Ranks of each."""
        return Columns(self.layouts).ranks

    @cached_property
    def scales(self) -> list[int]:
        """The numbers of ranks at which something ran, ascending."""
        return sorted({int(ranks) for ranks in self.scale[self.ran]})

    def where(self, chosen: Bools) -> "Measured":
        """Some of them."""
        kept = tuple(self.layouts[i] for i in np.flatnonzero(chosen))
        return Measured(kept, self.seconds[chosen], self.too_large[chosen], self.expected)


def measured_of(
    runs: Sequence[tuple[Layout, float | None, bool]], expected: Mapping[str, float] | None = None
) -> Measured:
    """Of ``(layout, seconds or None, ran out of memory)``; a layout that was run several times
    counts once, by the geometric mean of its times."""
    times: dict[Layout, list[float]] = {}
    large: dict[Layout, bool] = {}
    for layout, seconds, too_large in runs:
        times.setdefault(layout, [])
        large[layout] = large.get(layout, False) or too_large
        if seconds is not None:
            times[layout].append(seconds)
    values = [float(np.exp(np.log(v).mean())) if v else np.nan for v in times.values()]
    seconds_of = np.array(values, np.float64)
    failed = np.array([large[layout] for layout in times], np.bool_) & ~np.isfinite(seconds_of)
    return Measured(tuple(times), seconds_of, failed, expected or {})
