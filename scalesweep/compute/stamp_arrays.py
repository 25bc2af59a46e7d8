"""Arrays and metrics of the steps that the ranks of a program have printed, as a native one's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.native_format import MetricValue
from scalesweep.compute.stamp_metrics import MEANINGS, MEMORY
from scalesweep.compute.stamp_steps import BETWEEN, PARTS, Matrix, Steps
from scalesweep.compute.stamps import AMOUNTS, SPAN, Rank, read_ranks
from scalesweep.core.record import EPOCH_TIMES, OF_STEPS, STEP_TIMES, WARMUP_STEP_TIMES

# By so much of a span its parts may differ from it.
_PARTS_OFF = 0.05


@dataclass
class Stamped:
    """What the stamps of a run give: parts of its record, and arrays for samples.npz."""

    metrics: dict[str, MetricValue] = field(default_factory=dict)
    arrays: dict[str, Matrix] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    versions: dict[str, str | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def put(self, name: str, value: Any) -> None:
        """Add a metric; one that is no usual one is a span, in seconds."""
        self.metrics[name] = {"value": float(value), **MEANINGS.get(name, MEANINGS[STEP_TIMES])}


def read_stamps(
    order: StampsOrder, work: Path, ranks: int, srun_labels: bool, wall_s: float | None = None
) -> Stamped:
    """What the stamps of a run with so many ranks give; ``work``: the folder of its attempt,
    ``wall_s``: seconds that the program ran, if they are known.

    Raises UnreadableError if a number would be wrong, LogsGoneError, OSError.
    """
    by_rank, lines, damaged = read_ranks(order, work, ranks, srun_labels)
    about: dict[str, Any] = {"lines": lines, "damaged": len(damaged)}
    result = Stamped(notes={"stamps": about, "spans": {"method": "printed by the program"}})
    steps = Steps(by_rank, order["warmup"], wall_s)
    _add_rates(steps, result)
    _add_arrays(steps, result)
    _add_spans(steps, result)
    _add_epochs(steps, result)
    _add_facts(by_rank, result)
    about |= {"steps": steps.count, "warmup": steps.warm_up}
    said = [
        f"{len(damaged):,} damaged lines are left out, the first is {place}"
        for place in damaged[:1]
    ]
    result.warnings = [*said, *steps.warnings, *result.warnings]
    if result.warnings:
        about["warnings"] = result.warnings
    return result


def _add_rates(steps: Steps, result: Stamped) -> None:
    """Add the time of a step, and samples and tokens per second of all ranks."""
    seconds = steps.seconds[steps.warm_up :]
    result.put(STEP_TIMES, seconds.mean())
    between = 0 if steps.between is None else steps.between[steps.warm_up :]
    elapsed = float((seconds + between).sum(axis=0).max())
    for name in AMOUNTS:
        if lacking := steps.lacking(name):
            result.warnings.append(f"{name}_per_second is not known: {lacking} ({name})")
        elif steps.has(name):
            amount = steps.numbers_of[name][steps.warm_up :].sum()
            if amount > 0 and elapsed > 0 and not steps.clock_set:
                result.put(f"{name}_per_second", amount / elapsed)


def _add_arrays(steps: Steps, result: Stamped) -> None:
    """Add the seconds of steps and between them, and how many samples they are of."""
    warm_up = steps.warm_up
    result.notes["spans"]["steps_per_epoch"] = steps.count
    if steps.has("samples"):
        totals = steps.numbers_of["samples"].sum(axis=1)[warm_up:]
        if totals.any():
            result.work["samples_per_epoch"] = round(totals.sum())
            if (totals == totals[0]).all():
                result.notes["batch"] = {"global": float(totals[0])}
    result.arrays[STEP_TIMES] = steps.seconds[warm_up:]
    if warm_up:
        result.arrays[WARMUP_STEP_TIMES] = steps.seconds[:warm_up]
    if steps.between is not None:
        result.arrays[BETWEEN] = steps.between[warm_up:]


def _add_spans(steps: Steps, result: Stamped) -> None:
    """Keep the spans of steps; what a program's own spans take becomes a metric of each."""
    spans = steps.spans()
    for whole, parts in PARTS.items():
        printed = [part for part in parts if part in steps.numbers_of]
        if printed and all(part in spans for part in printed):
            added = np.sum([spans[part] for part in printed], axis=0)
            said = spans.setdefault(whole, added).sum()
            if abs(said - added.sum()) > _PARTS_OFF * said:
                words = ", ".join(part.removeprefix(SPAN) for part in printed)
                result.warnings.append(
                    f"{words} add up to {added.sum():.4g} s, {whole.removeprefix(SPAN)} to "
                    f"{said:.4g} s: the parts are left out"
                )
                spans = {name: values for name, values in spans.items() if name not in printed}
    if spans and steps.ranks == 1:  # with nobody
        spans.setdefault("span_communication", np.zeros((steps.count, 1)))
    for name, values in spans.items():
        if name in OF_STEPS:
            result.arrays[name] = values
        else:
            result.put(name, values.mean())


def _add_epochs(steps: Steps, result: Stamped) -> None:
    """Add the times of epochs, from the begin of the first step to the end of the last, if all
    ranks have printed all steps of several."""
    epochs = np.array([epoch for epoch, _ in steps.keys])
    begins = np.append(0, np.flatnonzero(np.diff(epochs)) + 1)
    if not steps.epochs or len(begins) < 2 or not steps.whole or steps.between is None:
        return
    between = steps.between.copy()
    between[begins] = 0
    local = np.add.reduceat(steps.seconds + between, begins)
    result.arrays[EPOCH_TIMES[0]] = local
    result.arrays[EPOCH_TIMES[1]] = np.broadcast_to(local.max(axis=1, keepdims=True), local.shape)
    counts = np.diff(np.append(begins, len(epochs)))
    if (counts == counts[0]).all():
        result.notes["spans"]["steps_per_epoch"] = int(counts[0])
        result.work.pop("samples_per_epoch", None)
        samples = np.add.reduceat(steps.known("samples").sum(axis=1), begins)
        if samples[0] and (samples == samples[0]).all():
            result.work["samples_per_epoch"] = round(samples[0])


def _add_facts(ranks: Sequence[Rank], result: Stamped) -> None:
    """Add memory, hosts and versions, each if all ranks have printed it."""
    for kind, name in MEMORY.items():
        held = np.array([rank.memory.get(kind, np.nan) for rank in ranks])
        if not np.isnan(held).any():
            result.put(name, held.mean())
            result.arrays[name] = held
        elif not np.isnan(held).all():
            silent = int(np.isnan(held).argmax())
            result.warnings.append(f"{name} is not known: rank {silent} prints none")
    hosts = [rank.host for rank in ranks if rank.host]
    result.hosts = hosts if len(hosts) == len(ranks) else []
    result.versions = dict(ranks[0].versions)
