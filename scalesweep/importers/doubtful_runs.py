"""What is to be doubted about runs that were imported together."""

from collections.abc import Sequence

from scalesweep.core.files import canonical_json
from scalesweep.importers.write_records import Written


def doubtful(runs: Sequence[Written]) -> list[str]:
    """What is to be doubted about imported runs, in sentences.

    Runs of identical numbers that were read from different content; repeats of a point that ran
    different numbers of epochs, so that their last errors are of different epochs.
    """
    found = []
    same: dict[tuple[str, str], list[Written]] = {}
    points: dict[tuple[str, str, str], list[Written]] = {}
    for run in runs:
        if run.values:
            same.setdefault((run.benchmark.name, run.values), []).append(run)
        key = run.benchmark.name, canonical_json(run.point), canonical_json(dict(run.variant))
        points.setdefault(key, []).append(run)
    for twins in same.values():
        if len(twins) > 1:
            found.append(
                f"{len(twins)} runs have identical numbers, though their sources differ: "
                f"{_places(twins)}; copies of one run?"
            )
    for repeats in points.values():
        counts = sorted({int(run.epochs_run) for run in repeats if run.epochs_run is not None})
        if len(counts) > 1 and not any(
            value is not None and name.startswith("target_")
            for name, value in repeats[0].point.items()
        ):
            found.append(
                f"repeats of one point ran {counts[0]} to {counts[-1]} epochs, and its final "
                f"values are of different epochs: {_places(repeats)}"
            )
    return found


def _places(runs: Sequence[Written]) -> str:
    named = [run.place for run in runs[:3]]
    return ", ".join(named) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
