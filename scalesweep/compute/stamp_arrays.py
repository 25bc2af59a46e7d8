"""Arrays and metrics of the steps that the ranks of a program have printed, as a native one's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import Reading
from scalesweep.compute.stamp_steps import BETWEEN, PARTS, Steps
from scalesweep.compute.stamps import AMOUNTS, MEANINGS, MEMORY, SPAN, Rank, read_ranks
from scalesweep.core.record import EPOCH_TIMES, OF_STEPS, STEP_TIMES, WARMUP_STEP_TIMES

# By so much of a span its parts may differ from it.
_PARTS_OFF = 0.05


def read_stamps(
    order: StampsOrder, work: Path, ranks: int, srun_labels: bool, wall_s: float | None = None
) -> Reading:
    """What the stamps of a run with so many ranks give; ``work``: the folder of its attempt,
    ``wall_s``: seconds that the program ran, if they are known.

    Raises UnreadableError if a number would be wrong, LogsGoneError, OSError.
    """
    by_rank, lines, damaged = read_ranks(order, work, ranks, srun_labels)
    steps = Steps(by_rank, order["warmup"], wall_s)
    about: dict[str, Any] = {
        "lines": lines, "damaged": len(damaged), "steps": steps.count, "warmup": steps.warm_up,
    }  # fmt: skip
    spans = {"method": "printed by the program", "steps_per_epoch": steps.count}
    result = Reading(notes={"stamps": about, "spans": spans})
    _add_rates(steps, result)
    _add_arrays(steps, result)
    _add_spans(steps, result)
    _add_epochs(steps, result)
    _add_facts(by_rank, result)
    if damaged:
        said = f"{len(damaged):,} damaged lines are left out, the first is {damaged[0]}"
        steps.warnings.insert(0, said)
    result.warnings = [*steps.warnings, *result.warnings]
    if result.warnings:
        about["warnings"] = list(result.warnings)
    return result


def _put(result: Reading, name: str, value: Any) -> None:
    """Add a metric; one that is no usual one is a span, in seconds."""
    result.metrics[name] = {"value": float(value), **MEANINGS.get(name, MEANINGS[STEP_TIMES])}


def _add_rates(steps: Steps, result: Reading) -> None:
    """Add the time of a step, and samples and tokens per second of all ranks."""
    seconds = steps.seconds[steps.warm_up :]
    _put(result, STEP_TIMES, seconds.mean())
    between = 0 if steps.between is None else steps.between[steps.warm_up :]
    elapsed = float((seconds + between).sum(axis=0).max())
    for name in AMOUNTS:
        if lacking := steps.lacking(name):
            result.warnings.append(f"{name}_per_second is not known: {lacking} ({name})")
        elif steps.has(name):
            amount = steps.numbers_of[name][steps.warm_up :].sum()
            if amount > 0 and elapsed > 0 and not steps.clock_set:
                _put(result, f"{name}_per_second", amount / elapsed)


def _add_arrays(steps: Steps, result: Reading) -> None:
    """Add the seconds of steps and between them, and how many samples they are of."""
    warm_up = steps.warm_up
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


def _add_spans(steps: Steps, result: Reading) -> None:
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
            _put(result, name, values.mean())


def _add_epochs(steps: Steps, result: Reading) -> None:
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


def _add_facts(ranks: Sequence[Rank], result: Reading) -> None:
    """Add memory, hosts and versions, each if all ranks have printed it."""
    for kind, name in MEMORY.items():
        held = np.array([rank.memory.get(kind, np.nan) for rank in ranks])
        if not np.isnan(held).any():
            _put(result, name, held.mean())
            result.arrays[name] = held
        elif not np.isnan(held).all():
            silent = int(np.isnan(held).argmax())
            result.warnings.append(f"{name} is not known: rank {silent} prints none")
    hosts = [rank.host for rank in ranks if rank.host]
    result.hosts = hosts if len(hosts) == len(ranks) else []
    result.versions = dict(ranks[0].versions)
