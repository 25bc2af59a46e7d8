"""A campaign that shows imported runs: experiments made of points that differ in few ways."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.grid import Grid, varying_parameters
from scalesweep.config.growing_model import fault_of_growth
from scalesweep.core.files import canonical_json, write_atomic
from scalesweep.core.scaling_kinds import MODEL, NONE
from scalesweep.importers.imported_run import GPU
from scalesweep.importers.repeat_names import plain_name
from scalesweep.importers.write_records import Written

Point = Mapping[str, Any]
FOLDER = "folder"
MOST_COMBINATIONS = 10_000  # of axes; what is sparser than that lists its points


@dataclass(frozen=True)
class Comparison:
    """An experiment of the points that are equal but for ``vary`` and take several values of it."""

    name: str
    vary: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class Rules:
    """How the runs of one benchmark become experiments.

    ``scaling`` names the experiment of points that are equal but for what they scale over.
    ``methods`` are parameters that say how workers exchange what they learn: each method has a
    scaling experiment of its own, and where a method was not measured on one worker, the only
    method that was is its base: one worker exchanges nothing. ``prefix`` keeps the names of
    several benchmarks apart. ``totals`` are parameters per rank that in a scaling series are the
    same over all ranks together, as where ranks share a data set. ``stated`` is the kind of scaling
    that the source states, for benchmarks that declare no work. ``crossed``: the parameters are
    independent of each other, and each is compared with the others equal. ``derive``: parameters
    that follow from others, with their expressions. ``per_rank`` are parameters that are the work
    of a rank, where a source states it: points that share them scale weakly, points whose totals
    are equal scale strongly; neither is known of points without any of them. ``with_scale`` are
    chosen anew at each scale, as the batch of trainings to a target is: points of a series may
    differ in them. ``shared`` are parameters that say how workers share the work, null of one
    worker: it is the base of a series where only one way to share continues it.
    """

    scaling: str
    comparisons: tuple[Comparison, ...]
    methods: tuple[str, ...] = ()
    prefix: str = ""
    totals: tuple[str, ...] = ()
    stated: str = "none"
    crossed: bool = False
    derive: Mapping[str, str] = field(default_factory=dict)
    per_rank: tuple[str, ...] = ()
    with_scale: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Group:
    """Points of an experiment, in the order of their import."""

    name: str
    description: str
    scales: bool
    points: tuple[Point, ...]
    stated: str = ""  # the kind of scaling, where it is not that of the rules


def campaign_of(
    written: Sequence[Written],
    rules: Mapping[str, Rules],
    description: str,
    site: str,
    results: str,
) -> dict[str, Any]:
    """A campaign file's content that plans the imported points.

    ``rules`` by benchmark. Runs of different ``variant`` never share an experiment, whose entries
    name the repeats that are theirs. Points that no rule takes go to ``other_points``.
    """
    kinds: dict[str, tuple[Mapping[str, str], list[Written]]] = {}
    for run, variant in zip(written, variants_of(written), strict=True):
        key = canonical_json([run.benchmark.name, variant])
        kinds.setdefault(key, (variant, []))[1].append(run)
    names = [runs[0].benchmark.name for _, runs in kinds.values()]
    experiments: dict[str, Any] = {}
    for variant, runs in kinds.values():
        benchmark = runs[0].benchmark
        rule = rules.get(benchmark.name) or Rules("scaling", (), prefix=f"{benchmark.name}_")
        suffix = _slug(*variant.values()) if names.count(benchmark.name) > 1 else ""
        for group in _groups(benchmark, runs, rule):
            name = _unused(group.name + suffix, experiments)
            experiments[name] = _experiment(benchmark, runs, group, rule, variant)
    return {
        "campaign": "imported",
        "description": description,
        "site": site,
        "results": results,
        "experiments": experiments,
    }


def variants_of(written: Sequence[Written]) -> list[Mapping[str, str]]:
    """What sets each run apart: its variant, and its folder where that alone tells it from others.

    Of a run whose log does not name the GPU that of the others, if all others of its benchmark that
    are like it otherwise have the same.
    """
    gpus: dict[str, set[str]] = {}
    keys = []
    for run in written:
        rest = {name: value for name, value in run.variant.items() if name != GPU}
        keys.append(canonical_json([run.benchmark.name, rest]))
        if GPU in run.variant:
            gpus.setdefault(keys[-1], set()).add(run.variant[GPU])
    variants: list[Mapping[str, str]] = []
    for run, key in zip(written, keys, strict=True):
        known = gpus.get(key, set())
        lent = {GPU: min(known)} if len(known) == 1 else {}
        variants.append({**lent, **run.variant})
    return with_folders(written, variants)


def _slug(*words: str) -> str:
    text = re.sub(r"[^a-z0-9]+", "_", "_".join(words).lower()).strip("_")
    return f"_{text}" if text else ""


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _groups(benchmark: Benchmark, runs: Sequence[Written], rules: Rules) -> list[_Group]:
    unique = {canonical_json(run.point): run.point for run in runs}
    points = list(unique.values())
    if _model_grows(benchmark, points, rules):
        what = "Points whose model grows with the scale."
        return [_Group(rules.prefix + rules.scaling, what, True, tuple(points))]
    groups = [
        *_scaling_groups(benchmark, points, rules),
        *(
            _Group(rules.prefix + it.name, it.description, False, tuple(_alike(points, it.vary)))
            for it in rules.comparisons
        ),
    ]
    groups = [group for group in groups if group.points]
    if rules.crossed and groups:  # a point that scales with none is compared with others
        groups = [replace(groups[0], points=tuple(points))]
    used = {canonical_json(point) for group in groups for point in group.points}
    others = tuple(point for key, point in unique.items() if key not in used)
    if others:
        name, what = "other_points", "Points that belong to no comparison."
        if rules.crossed:
            name, what = "points", "The points of the table."
        groups.append(_Group(rules.prefix + name, what, False, others))
    return groups


def _key(point: Point, without: Collection[str]) -> str:
    return canonical_json({name: value for name, value in point.items() if name not in without})


def _scale(benchmark: Benchmark) -> tuple[str, ...]:
    """The parameters that may differ within a scaling series."""
    return (*benchmark.scale_parameters, "ranks_per_node")


def _series_key(benchmark: Benchmark, point: Point, rules: Rules, methods: bool = True) -> str:
    """What the points of a scaling series share; without ``methods`` they may differ in those."""
    totals = {
        name: point[name] and point[name] * benchmark.scale_of(point) for name in rules.totals
    }
    free = (*rules.derive, *rules.with_scale, *(() if methods else rules.methods))
    without = (*_scale(benchmark), *free)
    return _key({**point, **totals}, without)


def _alike(points: Sequence[Point], vary: Sequence[str]) -> Iterator[Point]:
    """Points of the groups that are equal but for ``vary`` and take several values of it."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(_key(point, vary), []).append(point)
    for group in groups.values():
        if len({canonical_json([point[name] for name in vary]) for point in group}) > 1:
            yield from group


def _scaling_groups(
    benchmark: Benchmark, points: Sequence[Point], rules: Rules
) -> Iterator[_Group]:
    """The groups of points that become experiments over the scale: one per method.

    A method that was not measured on one worker has one more, with the base that another method
    lends.
    """
    name = rules.prefix + rules.scaling
    what = f"Scaling over {benchmark.scale}"
    if rules.per_rank:
        yield from _by_work(benchmark, points, rules)
        return
    if not rules.methods:
        yield _Group(name, f"{what}.", True, tuple(_series(benchmark, points, rules)))
        return
    methods: dict[str, list[Point]] = {}
    for point in points:
        methods.setdefault(_method(point, rules.methods, points), []).append(point)
    lent: dict[tuple[str, str], list[Point]] = {}
    for method, members in methods.items():
        own = tuple(_series(benchmark, members, rules))
        # A series that begins at two workers, where another method lends it a base, has that one:
        # its efficiency at two would be 1 of its own making.
        begins = _begins(benchmark, own, rules)
        own = tuple(
            point
            for point in own
            if begins[_series_key(benchmark, point, rules)] == 1
            or not _bases(benchmark, point, points, rules)
        )
        yield _Group(f"{name}_{method}", f"{what}, {_spaced(method)}.", True, own)
        taken = {canonical_json(point) for point in own}
        for point in members:
            if canonical_json(point) in taken:
                continue
            for base in _bases(benchmark, point, points, rules):
                key = method, _method(base, rules.methods, points)
                lent.setdefault(key, []).extend([base, point])
    for (method, base_method), members in lent.items():
        yield _Group(
            f"{name}_{method}_over_{base_method}",
            f"{what}: {_spaced(method)}, against a single one with {_spaced(base_method)}, "
            "as it was not measured on one itself.",
            True,
            tuple({canonical_json(point): point for point in members}.values()),
        )


def _by_work(benchmark: Benchmark, points: Sequence[Point], rules: Rules) -> Iterator[_Group]:
    """Series of equal work per rank, of equal work in all, and those whose work is not known."""
    stated = [p for p in points if any(p[name] is not None for name in rules.per_rank)]
    unknown = [p for p in points if all(p[name] is None for name in rules.per_rank)]
    for kind, members, what in (
        ("weak", stated, "with the same work for each"),
        ("strong", stated, "with the same work in all"),
        ("none", unknown, "the work is not stated"),
    ):
        totals = rules.per_rank if kind == "strong" else ()
        series = tuple(_series(benchmark, members, replace(rules, totals=totals)))
        name = f"{rules.prefix}{'' if kind == 'none' else f'{kind}_'}{rules.scaling}"
        yield _Group(name, f"Scaling over {benchmark.scale}, {what}.", True, series, kind)


def _begins(benchmark: Benchmark, points: Sequence[Point], rules: Rules) -> dict[str, int]:
    """The smallest scale of each series, by its key."""
    begins: dict[str, int] = {}
    for point in points:
        key, scale = _series_key(benchmark, point, rules), benchmark.scale_of(point)
        begins[key] = min(scale, begins.get(key, scale))
    return begins


def _series(benchmark: Benchmark, points: Sequence[Point], rules: Rules) -> Iterator[Point]:
    """Points of the groups that differ in nothing but their scale."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(_series_key(benchmark, point, rules), []).append(point)
    if rules.shared:
        _join_alone(benchmark, groups, rules)
    for group in groups.values():
        if len({benchmark.scale_of(point) for point in group}) > 1:
            yield from group


def _join_alone(benchmark: Benchmark, groups: dict[str, list[Point]], rules: Rules) -> None:
    """Put the points of one worker, which shares nothing, into the only series that goes on from
    them."""
    anyhow = replace(rules, derive={**rules.derive, **dict.fromkeys(rules.shared, "")})
    for key, group in list(groups.items()):
        first = group[0]
        alone = all(benchmark.scale_of(point) == 1 for point in group)
        if not alone or any(first[name] is not None for name in rules.shared):
            continue
        wanted = _series_key(benchmark, first, anyhow)
        others = [
            other
            for name, other in groups.items()
            if name != key and _series_key(benchmark, other[0], anyhow) == wanted
        ]
        if len(others) == 1 and all(benchmark.scale_of(point) > 1 for point in others[0]):
            others[0][:0] = groups.pop(key)


def _bases(
    benchmark: Benchmark, point: Point, points: Sequence[Point], rules: Rules
) -> list[Point]:
    """The point on one worker that serves as this one's base, where only one method has one.

    A method of the same first parameter is preferred.
    """
    without = (*_scale(benchmark), *rules.methods)
    single = [
        other
        for other in points
        if benchmark.scale_of(other) == 1 and _key(other, without) == _key(point, without)
    ]
    kin = [other for other in single if other[rules.methods[0]] == point[rules.methods[0]]]
    bases = kin or single
    return bases if len(bases) == 1 and benchmark.scale_of(point) > 1 else []


def _method(point: Point, names: Sequence[str], points: Sequence[Point]) -> str:
    """A method in one word: the first of its parameters, and those that tell it from others."""
    first, *rest = names
    alike = [other for other in points if other[first] == point[first]]
    differing = [
        str(point[name])
        for name in rest
        if point[name] is not None and len({canonical_json(other[name]) for other in alike}) > 1
    ]
    return _slug(str(point[first]), *differing).strip("_")


def _spaced(method: str) -> str:
    return method.replace("_", " ")


def _experiment(
    benchmark: Benchmark,
    runs: Sequence[Written],
    group: _Group,
    rules: Rules,
    variant: Mapping[str, str],
) -> dict[str, Any]:
    settings = ", ".join(f"{name}: {value}" for name, value in sorted(variant.items()))
    points = sorted(group.points, key=lambda point: (benchmark.scale_of(point), point["ranks"]))
    repeats: dict[str, list[int]] = {}
    for run in runs:
        repeats.setdefault(canonical_json(run.point), []).append(run.repeat)
    numbers = {key: repeats[key] for key in map(canonical_json, points)}
    return {
        "benchmark": benchmark.name,
        "description": f"{group.description} ({settings})" if settings else group.description,
        "scaling": _scaling(benchmark, group, rules),
        **({"derive": dict(rules.derive)} if rules.derive else {}),
        **(
            (rules.crossed and _crossed(benchmark, points, numbers, rules.derive))
            or {
                "linked": _linked(benchmark, points, rules.derive),
                "repeats": list(numbers.values()),
            }
        ),
    }


def _scaling(benchmark: Benchmark, group: _Group, rules: Rules) -> str:
    """``weak`` if in every series each worker has the same work, ``strong`` if all together do;
    ``model`` where the source says so and the model grows."""
    if not group.scales:  # layouts are compared at one scale, and hold what the source states
        return rules.stated if benchmark.mesh and rules.stated != MODEL else NONE
    if group.stated:
        return group.stated
    if _model_grows(benchmark, group.points, rules):
        return MODEL
    each: dict[str, set[float]] = {}
    total: dict[str, set[float]] = {}
    for point in group.points:
        work = benchmark.total_work(point)
        if not work:
            return NONE if rules.stated == MODEL else rules.stated
        key = _series_key(benchmark, point, rules, methods=False)
        each.setdefault(key, set()).add(work / benchmark.scale_of(point))
        total.setdefault(key, set()).add(work)
    for scaling, sizes in (("weak", each), ("strong", total)):
        if all(len(size) == 1 for size in sizes.values()):
            return scaling
    return NONE


def _model_grows(benchmark: Benchmark, points: Sequence[Point], rules: Rules) -> bool:
    """Whether the source states it, and its points bear it out."""
    if rules.stated != MODEL:
        return False
    return fault_of_growth(benchmark, varying_parameters(benchmark, points), points) is None


def _crossed(
    benchmark: Benchmark,
    points: Sequence[Point],
    repeats: Mapping[str, list[int]],
    derived: Collection[str],
) -> dict[str, Any] | None:
    """The points as ``axes`` and ``fixed``, with the repeats of each combination, none where there
    is no such point; None where there would be too many combinations.

    ``repeats``: numbers of those of each point, by its canonical JSON; ``derived``: parameters that
    follow from the others.
    """
    axes: dict[str, list[Any]] = {}
    fixed: dict[str, Any] = {}
    for name, default in benchmark.defaults.items():
        if name in derived:
            continue
        values = list({canonical_json(point[name]): point[name] for point in points}.values())
        if len(values) > 1:
            axes[name] = values
        elif name == "ranks" or values[0] != default:
            fixed[name] = values[0]
    if math.prod(map(len, axes.values())) > MOST_COMBINATIONS:
        return None
    grid = Grid({**benchmark.defaults, **fixed}, axes, [])
    by_rest = {_key(point, derived): repeats[canonical_json(point)] for point in points}
    every = [by_rest.get(_key(point, derived), []) for point in grid.points()]
    return {"axes": axes, "fixed": fixed, "repeats": every}


def _linked(
    benchmark: Benchmark, points: Sequence[Point], derived: Collection[str]
) -> list[dict[str, Any]]:
    """The points as ``linked`` entries: every parameter that differs from its default anywhere, but
    for those that follow from others."""
    names = [
        name
        for name, default in benchmark.defaults.items()
        if name == "ranks"
        or (name not in derived and any(point[name] != default for point in points))
    ]
    return [{name: point[name] for name in names} for point in points]


def former_rules(content: Any) -> dict[str, Rules]:
    """The rules of the benchmarks of a generated campaign, as far as it shows them: what an earlier
    import said of its table is true after the next one too."""
    specs = content.get("experiments", {}).values() if isinstance(content, dict) else ()
    rules: dict[str, Rules] = {}
    for spec in specs:
        name = spec["benchmark"]
        rule = rules.setdefault(name, Rules("scaling", (), prefix=f"{name}_"))
        stated = rule.stated if spec.get("scaling", "none") == "none" else spec["scaling"]
        crossed = rule.crossed or "axes" in spec
        derive = {**rule.derive, **spec.get("derive", {})}
        rules[name] = replace(rule, stated=stated, crossed=crossed, derive=derive)
    return rules


def write_campaign(content: Mapping[str, Any], path: Path) -> None:
    """Write a generated campaign file."""
    text = yaml.safe_dump(dict(content), sort_keys=False, width=100, allow_unicode=True)
    write_atomic(path, f"# Written by import: the points that were imported.\n{text}")


def with_folders(
    written: Sequence[Written], variants: Sequence[Mapping[str, str]]
) -> list[Mapping[str, str]]:
    """The variant of each run, with what its folder is called where that tells it from others.

    What was set, as a precision or an environment variable, may be in no log but in the name of its
    folder (fp16, fp32). Runs of one point from several folders are repeats only where their logs
    show the same command, or where the folders' names differ in nothing but the number of a repeat.
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
