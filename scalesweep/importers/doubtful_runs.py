"""What is to be doubted about runs that were imported together."""

import math
from collections.abc import Sequence
from itertools import pairwise

from scalesweep.core.files import canonical_json, digest_of
from scalesweep.core.formatting import number
from scalesweep.importers.write_campaign import variants_of
from scalesweep.importers.write_records import PRINTED, Written

# Rates of repeats, in natural logarithms. Two that are this far apart are doubted; of several those
# that fall into two groups with a gap that is as many times as wide as either group, too.
FAR, GAP, TIMES_AS_WIDE = math.log(1.5), math.log(1.15), 4.0


def doubtful(runs: Sequence[Written]) -> list[str]:
    """What is to be doubted about imported runs, in sentences.

    Runs of identical numbers that were read from different content; repeats of a point that ran
    different numbers of epochs, so that their last errors are of different epochs; repeats whose
    rates differ by far more than repeats do, so that something was set that no log states.
    """
    doubts = []
    same: dict[str, list[Written]] = {}
    points: dict[str, list[Written]] = {}
    for run, variant in zip(runs, variants_of(runs), strict=True):
        if PRINTED not in run.record["notes"]:
            numbers = {name: it["value"] for name, it in run.record["metrics"].items()}
            samples = run.record["samples"] and run.record["samples"]["blake2b"]
            same.setdefault(digest_of([run.benchmark.name, numbers, samples]), []).append(run)
        key = canonical_json([run.benchmark.name, dict(run.point), dict(variant)])
        points.setdefault(key, []).append(run)
    for twins in same.values():
        if len(twins) > 1:
            doubts.append(
                f"{len(twins)} runs have identical numbers, though their sources differ: "
                f"{_places(twins)}; copies of one run?"
            )
    for repeats in points.values():
        counts = {it["value"] for run in repeats if (it := run.metric("epochs_run"))}
        targets = [name for name in repeats[0].point if name.startswith("target_")]
        if len(counts) > 1 and all(repeats[0].point[name] is None for name in targets):
            doubts.append(
                f"repeats of one point ran {min(counts):g} to {max(counts):g} epochs, and its "
                f"final values are of different epochs: {_places(repeats)}"
            )
        main = repeats[0].benchmark.main_metric
        known = sorted(
            (it["value"], run.order, run)
            for run in repeats
            if (it := run.metric(main)) and it["unit"].endswith("/s") and it["value"] > 0
        )
        if _apart([rate for rate, *_ in known]):
            low, high = number(known[0][0], 3), number(known[-1][0], 3)
            doubts.append(
                f"{len(known)} repeats of one point have {main} from {low} to {high}, further "
                "apart than repeats are: was something set that the sources do not state? Import "
                f"them from folders of their own ({_places([known[0][2], known[-1][2]])})"
            )
    return doubts


def _apart(rates: Sequence[float]) -> bool:
    """Whether rates, in order, are further apart than those of repeats."""
    if len(rates) < 2:
        return False
    logs = [math.log(rate) for rate in rates]
    gaps = [after - before for before, after in pairwise(logs)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    within = max(logs[widest] - logs[0], logs[-1] - logs[widest + 1])
    in_groups = len(logs) > 2 and gaps[widest] > max(GAP, TIMES_AS_WIDE * within)
    return logs[-1] - logs[0] > FAR or in_groups


def _places(runs: Sequence[Written]) -> str:
    named = [run.place for run in runs[:3]]
    return ", ".join(named) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
