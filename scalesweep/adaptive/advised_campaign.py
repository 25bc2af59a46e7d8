"""A campaign file of what has been measured and what is advised, and of nothing else.

It is the original with other points: what is finished, so that its report has everything, and the
runs that are advised. Run ids are those of the original, because they know neither campaign nor
experiment (``config.benchmark``), so no run is paid for twice, and the original finds them as soon
as its axes or repeats reach them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.core.files import write_atomic
from scalesweep.core.status import Status
from scalesweep.state.run_state import RunState

# What of an experiment says which runs there are; all else is kept.
_GRID = ("axes", "linked", "extra", "repeats", "profile")
# Of a campaign: what brings further runs with it.
_ASIDE = ("control",)


def advised_campaign(
    content: Mapping[str, Any],
    campaign: Campaign,
    states: Mapping[str, RunState],
    more: Iterable[tuple[str, Mapping[str, Any], int]],
    description: str,
) -> dict[str, Any]:
    """The content of the file.

    ``content``: that of the original; ``more``: experiment, point and how many further runs of it.
    Experiments of which nothing is advised are left out.
    """
    wanted: dict[str, list[tuple[Mapping[str, Any], int]]] = {}
    for name, point, count in more:
        wanted.setdefault(name, []).append((point, count))
    experiments = {
        experiment.name: _experiment(
            content["experiments"][experiment.name], experiment, states, wanted[experiment.name]
        )
        for experiment in campaign.experiments
        if experiment.name in wanted
    }
    kept = {key: value for key, value in content.items() if key not in _ASIDE}
    if "accept_stale" in kept:
        kept["accept_stale"] = [name for name in kept["accept_stale"] if name in experiments]
    return {
        **kept,
        "description": description,
        "site": campaign.site.name,
        "results": str(campaign.results),
        "experiments": experiments,
    }


def _experiment(
    spec: Mapping[str, Any],
    experiment: Experiment,
    states: Mapping[str, RunState],
    more: Iterable[tuple[Mapping[str, Any], int]],
) -> dict[str, Any]:
    """An experiment's entry, its points as ``linked`` with the numbers of their repeats."""
    benchmark = experiment.benchmark
    points: dict[str, tuple[Mapping[str, Any], list[int]]] = {}
    for run in experiment.runs:
        if states[run.run_id].status == Status.DONE:
            identity = benchmark.identity_of(run.point)
            points.setdefault(identity, (run.point, []))[1].append(run.repeat)
    for point, count in more:
        _, numbers = points.setdefault(benchmark.identity_of(point), (point, []))
        free = [number for number in range(len(numbers) + count) if number not in numbers]
        numbers += free[:count]
    first = next(iter(points.values()))[0]
    set_here = {*spec.get("axes", {}), *(spec.get("linked") or [{}])[0], "ranks"}
    set_here |= {name for extra in spec.get("extra", []) for name in extra}
    differ = {n for n in first if any(point[n] != first[n] for point, _ in points.values())}
    worked_out = experiment.derivation.derived.keys()
    names = sorted((set_here | differ) - worked_out, key=lambda name: (name != "ranks", name))
    fixed = {name: value for name, value in spec.get("fixed", {}).items() if name not in names}
    return {
        **{key: value for key, value in spec.items() if key not in (*_GRID, "fixed")},
        **({"fixed": fixed} if fixed else {}),
        "linked": [{name: point[name] for name in names} for point, _ in points.values()],
        "repeats": [sorted(numbers) for _, numbers in points.values()],
    }


def write_advised(content: Mapping[str, Any], path: Path) -> None:
    """Write a campaign file. Raises OSError."""
    text = yaml.safe_dump(dict(content), sort_keys=False, width=100, allow_unicode=True)
    head = "# Written by `scalesweep advise`: what is measured already, and what to measure next.\n"
    write_atomic(path, head + text)
