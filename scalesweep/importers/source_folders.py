"""Folders that tell runs apart which state the same of themselves: they are no repeats.

What was set, as a precision or an environment variable, may be in no log but in the name of its
folder (fp16, fp32). Runs of one point from several folders are repeats only where their logs show
the same command, or where the folders' names differ in nothing but the number of a repeat.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from scalesweep.core.files import canonical_json
from scalesweep.importers.repeat_names import plain_name
from scalesweep.importers.write_records import Written

FOLDER = "folder"


def with_folders(
    written: Sequence[Written], variants: Sequence[Mapping[str, str]]
) -> list[Mapping[str, str]]:
    """The variant of each run, with what its folder is called where that tells it from others.

    Only the levels of the folders count at which runs of one point differ: fp16/n2 and fp32/n2 are
    fp16 and fp32, so that the series over n1, n2, ... stay whole.
    """
    kinds: dict[str, list[int]] = {}
    points: dict[str, list[int]] = {}
    for place, (run, variant) in enumerate(zip(written, variants, strict=True)):
        kind = [run.benchmark.name, dict(variant)]
        kinds.setdefault(canonical_json(kind), []).append(place)
        points.setdefault(canonical_json([*kind, dict(run.point)]), []).append(place)
    levels: dict[int, set[int]] = {}
    for places in points.values():
        differ = _levels([written[place] for place in places])
        for place in places if differ else ():
            levels.setdefault(place, set()).update(differ)
    described = list(variants)
    for places in kinds.values():
        every = sorted(set().union(*(levels.get(place, set()) for place in places)))
        for place in places if every else ():
            parts = _parts(written[place])
            name = "/".join(parts[level] for level in every if level < len(parts))
            if name:
                described[place] = {**variants[place], FOLDER: name}
    return described


def _parts(run: Written) -> tuple[str, ...]:
    """The folders that a run was read from, the outermost first."""
    return Path(run.file).absolute().parent.parts


def _levels(runs: Sequence[Written]) -> set[int]:
    """The levels at which the folders of runs of one point differ by more than a repeat's number;
    none where all show the same command."""
    commands = {run.command for run in runs}
    if len(commands) == 1 and commands != {()}:
        return set()
    names = zip_longest(*{_parts(run) for run in runs}, fillvalue="")
    return {level for level, folders in enumerate(names) if len(set(map(plain_name, folders))) > 1}
