"""A campaign that shows imported runs: an experiment for each benchmark and variant; and what is
to be doubted about them."""

import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.config.points import grid_points
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json, digest_of, write_atomic
from scalesweep.core.formatting import number
from scalesweep.core.scaling_kinds import NONE
from scalesweep.importers.write_records import PRINTED, Written

Point = Mapping[str, Any]
FOLDER = "folder"
MOST_COMBINATIONS = 10_000  # of axes; what is sparser than that lists its points
# Parts of a name that number repeats, jobs or dates.
_REPEAT = re.compile(
    r"(?<![a-z])(?:run|repeat|repetition|rep|trial|try|attempt|seed|job|jobid)[-_. ]?\d+"
    r"|(?<!\d)20\d\d[-_.]\d\d[-_.]\d\d(?:[-_.T ]\d\d[-_.:]\d\d(?:[-_.:]\d\d)?)?(?!\d)"
    r"|^\d+$",
    re.IGNORECASE | re.ASCII,
)
FAR = 1.5  # rates of repeats that are so many times apart are doubted
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rules:
    """What a source says of the work of its runs.

    ``stated``: the kind of scaling. ``derive``: parameters that follow from others, with their
    expressions. ``per_rank``: parameters that are the work of a rank, of benchmarks that declare no
    work. ``along``: parameters that may change along a series, as the batch of trainings to a
    target, which is chosen anew at each scale.
    """

    stated: str = ""
    derive: Mapping[str, str] = field(default_factory=dict)
    per_rank: tuple[str, ...] = ()
    along: tuple[str, ...] = ()


def campaign_of(
    written: Sequence[Written], rules: Mapping[str, Rules], site: str, results: str
) -> dict[str, Any]:
    """A campaign file's content that plans the imported points; ``rules`` by benchmark.

    Runs of different ``variant`` never share an experiment. Scaling is weak if the work of each
    rank is the same along every series, strong if that of all is; where a table has series of both
    kinds, each kind has an experiment, and so have the points of neither.
    """
    kinds: dict[str, tuple[Mapping[str, str], list[Written]]] = {}
    for run, variant in zip(written, variants_of(written), strict=True):
        key = _key([run.benchmark.name, variant])
        kinds.setdefault(key, (variant, []))[1].append(run)
    names = [runs[0].benchmark.name for _, runs in kinds.values()]
    experiments: dict[str, Any] = {}
    for variant, runs in kinds.values():
        benchmark = runs[0].benchmark
        rule = rules.get(benchmark.name, Rules())
        several = names.count(benchmark.name) > 1
        words = re.sub(r"[^a-z0-9]+", "_", "_".join(variant.values()).lower()).strip("_")
        name = f"{benchmark.name}_{words}" if several and words else benchmark.name
        points = list({_key(run.point): run.point for run in runs}.values())
        for scaling, members in _by_scaling(benchmark, points, rule):
            own = name if len(members) == len(points) or scaling == "weak" else f"{name}_{scaling}"
            place, free = 2, own
            while free in experiments:
                free, place = f"{own}_{place}", place + 1
            experiments[free] = _experiment(benchmark, runs, members, scaling, rule, variant)
    return {
        "campaign": "imported", "description": "Published results, imported.", "site": site,
        "results": results,
        "experiments": experiments,
    }  # fmt: skip


def _by_scaling(
    benchmark: Benchmark, points: Sequence[Point], rules: Rules
) -> Iterator[tuple[str, list[Point]]]:
    """The kinds of scaling, each with its points: all of them where the source states it."""
    works = [_work_of_a_rank(benchmark, point, rules) for point in points]
    free = {
        *benchmark.scale_parameters, *benchmark.work_parameters, "ranks_per_node",
        *rules.per_rank, *rules.along, *rules.derive,
        # What is the work of a rank at every point, as a micro-batch without accumulation.
        *(name for name in points[0] if works == [point[name] for point in points]),
    }  # fmt: skip
    keys = [_key({n: v for n, v in point.items() if n not in free}) for point in points]
    frame = pd.DataFrame({"key": keys, "weak": works}, dtype=object)
    frame["scale"] = [benchmark.scale_of(point) for point in points]
    frame["strong"] = [work and work * n for work, n in zip(works, frame["scale"], strict=True)]
    # Points that have another of the same work, of a rank or of all, at another scale.
    weak, strong = (
        frame.groupby(["key", work])["scale"].transform("nunique") > 1
        for work in ("weak", "strong")
    )
    if rules.stated or not (weak | strong).any():
        yield rules.stated or NONE, list(points)
        return
    # A point without others of its series is compared with those of other series.
    alone = frame.groupby("key")["scale"].transform("size") == 1
    groups = {"weak": weak | alone, "strong": strong} if weak.any() else {"strong": strong | alone}
    if not (strong & ~weak).any():
        groups = {"weak": weak | alone}
    groups[NONE] = ~pd.concat(groups, axis=1).any(axis=1)
    for name, group in groups.items():
        if group.any():
            yield name, [point for point, there in zip(points, group, strict=True) if there]


def _work_of_a_rank(benchmark: Benchmark, point: Point, rules: Rules) -> float | None:
    """The work of what a benchmark scales over; None where it is not known."""
    if benchmark.work:
        return (benchmark.total_work(point) or 0) / benchmark.scale_of(point) or None
    return next((point[name] for name in rules.per_rank if point[name] is not None), None)


def _key(content: Any) -> str:
    return canonical_json(dict(content) if isinstance(content, Mapping) else content)


def _experiment(
    benchmark: Benchmark,
    runs: Sequence[Written],
    points: Sequence[Point],
    scaling: str,
    rules: Rules,
    variant: Mapping[str, str],
) -> dict[str, Any]:
    """The entry of an experiment: its points as ``axes`` and ``fixed``, with the repeats of each
    combination, none where there is no such point; as ``linked`` where these are too many."""
    settings = ", ".join(f"{name}: {value}" for name, value in sorted(variant.items()))
    ordered = sorted(points, key=lambda point: (benchmark.scale_of(point), point["ranks"]))
    names = [name for name in benchmark.defaults if name not in rules.derive]

    def key(point: Point) -> str:
        return _key([point[name] for name in names])

    repeats: dict[str, list[int]] = {key(point): [] for point in ordered}
    for run in runs:
        if (own := repeats.get(key(run.point))) is not None:
            own.append(run.repeat)
    entry: dict[str, Any] = {
        "benchmark": benchmark.name,
        "description": f"Imported runs ({settings})." if settings else "Imported runs.",
        "scaling": scaling,
        **({"derive": dict(rules.derive)} if rules.derive else {}),
    }
    axes: dict[str, list[Any]] = {}
    fixed: dict[str, Any] = {}
    for name in names:
        values = list({_key([point[name]]): point[name] for point in ordered}.values())
        if len(values) > 1:
            axes[name] = values
        elif name == "ranks" or values[0] != benchmark.defaults[name]:
            fixed[name] = values[0]
    if math.prod(map(len, axes.values())) > MOST_COMBINATIONS:
        linked = [{name: point[name] for name in (*axes, *fixed)} for point in ordered]
        return entry | {"linked": linked, "repeats": list(repeats.values())}
    choices = [[{name: value} for value in values] for name, values in axes.items()]
    grid = grid_points({**benchmark.defaults, **fixed}, choices)
    every = [repeats.get(key(point), []) for point in grid]
    return entry | {"axes": axes, "fixed": fixed, "repeats": every}


def former_rules(content: Any, written: Sequence[Written]) -> dict[str, Rules]:
    """What an earlier import said of its table, which is true after the next one too; the scaling
    of benchmarks that declare work is found out again."""
    found_out = {run.benchmark.name for run in written if run.benchmark.work}
    return {
        name: Rules("" if name in found_out else spec["scaling"], spec.get("derive", {}))
        for spec in content["experiments"].values() for name in [spec["benchmark"]]
    }  # fmt: skip


def write_campaign(content: Mapping[str, Any], path: Path) -> None:
    """Write a generated campaign file; an experiment whose scaling its points do not bear out
    compares them without one, with a warning."""
    text = "# Written by import: the points that were imported.\n"
    while True:
        write_atomic(path, text + yaml.safe_dump(dict(content), sort_keys=False, width=100))
        try:
            load_campaign(path)
            return
        except UserError as error:
            broken = [
                entry
                for name, entry in content["experiments"].items()
                if f"experiments.{name}.scaling" in str(error) and entry["scaling"] != NONE
            ]
            if not broken:
                raise
            _log.warning("%s; its points are compared without a series", error)
            broken[0]["scaling"] = NONE


def plain_name(name: str) -> str:
    """A name without the number of a run, repeat, trial, attempt, seed or job, and without a date;
    other numbers stay, as they may say what was set (fp16, n2, resnet_50)."""
    return _REPEAT.sub("", name).strip("-_. ").lower()


def variants_of(written: Sequence[Written]) -> list[Mapping[str, str]]:
    """What sets each run apart: its variant, and its folder where that alone tells it from others.

    What was set, as a precision or an environment variable, may be in no log but in the name of its
    folder (fp16, fp32). Runs of one point from several folders are repeats only where their logs
    show the same command, or where the folders' names differ in nothing but the number of a repeat.
    Only the levels of the folders count at which runs of one point differ: fp16/n2 and fp32/n2 are
    fp16 and fp32, so that the series over n1, n2, ... stay whole.
    """
    points: dict[tuple[str, str], list[Written]] = {}
    kinds = [_key([run.benchmark.name, dict(run.variant)]) for run in written]
    for kind, run in zip(kinds, written, strict=True):
        points.setdefault((kind, _key(run.point)), []).append(run)
    levels: dict[str, set[int]] = {}
    for (kind, _), runs in points.items():
        levels.setdefault(kind, set()).update(_levels(runs))
    described: list[Mapping[str, str]] = []
    for kind, run in zip(kinds, written, strict=True):
        parts = _folders(run)
        name = "/".join(parts[level] for level in sorted(levels[kind]) if level < len(parts))
        described.append({**run.variant, **({FOLDER: name} if name else {})})
    return described


def _folders(run: Written) -> tuple[str, ...]:
    """The folders that a run was read from, the outermost first."""
    return Path(run.file).absolute().parent.parts


def _levels(runs: Sequence[Written]) -> set[int]:
    """The levels at which the folders of runs of one point differ by more than a repeat's number;
    none where all show the same command."""
    commands = {run.command for run in runs}
    if len(commands) == 1 and commands != {()}:
        return set()
    names = zip_longest(*{_folders(run) for run in runs}, fillvalue="")
    return {level for level, folders in enumerate(names) if len(set(map(plain_name, folders))) > 1}


def doubtful(runs: Sequence[Written]) -> list[str]:
    """What is to be doubted about imported runs, in sentences.

    Runs of identical numbers that were read from different content; repeats whose rates differ by
    far more than repeats do, so that something was set that no log states.
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
        main = repeats[0].benchmark.main_metric
        mains = [(run.record["metrics"].get(main), run) for run in repeats]
        rates = [(it["value"], run) for it, run in mains if it and it["unit"].endswith("/s")]
        known = sorted((rate, run.order, run) for rate, run in rates if rate > 0)
        if known and known[-1][0] > FAR * known[0][0]:
            low, high = number(known[0][0], 3), number(known[-1][0], 3)
            doubts.append(
                f"{len(known)} repeats of one point have {main} from {low} to {high}, further "
                "apart than repeats are: correct a wrong one, or import what was set otherwise "
                f"from a folder of its own ({_places([known[0][2], known[-1][2]])})"
            )
    return doubts


def _places(runs: Sequence[Written]) -> str:
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    return ", ".join(run.place for run in runs[:3]) + more
