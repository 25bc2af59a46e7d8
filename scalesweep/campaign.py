"""Campaigns: from a YAML grid to points and runs."""

import itertools
import math
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.benchmark import Benchmark, load_benchmark
from scalesweep.errors import UserError
from scalesweep.expressions import Expression
from scalesweep.programs import check_programs, named_programs
from scalesweep.record import canonical_json, digest_of
from scalesweep.site import Site, load_site
from scalesweep.yamlfile import check_schema, load_yaml

MAX_POINTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of one point."""

    run_id: str
    point: Mapping[str, Any]
    repeat: int


@dataclass(frozen=True)
class Experiment:
    """A benchmark with axes, expanded: its points, runs, and what was excluded and why.

    ``memory_gb_per_rank`` is in GiB; ``constraint`` is a Slurm feature expression that may name
    parameters in braces.
    """

    name: str
    benchmark: Benchmark
    description: str
    scaling: str
    axes: tuple[str, ...]
    linked: tuple[str, ...]
    points: tuple[Mapping[str, Any], ...]
    runs: tuple[Run, ...]
    excluded: tuple[tuple[Mapping[str, Any], str], ...]
    time_limit_minutes: float
    expected_minutes: float | None
    memory_gb_per_rank: float | None
    constraint: str | None


@dataclass(frozen=True)
class Campaign:
    """A campaign file, checked and expanded; ``budget_node_hours`` is None without a budget.

    ``programs``: paths of the users' programs by the names in commands.
    """

    name: str
    description: str
    file: Path
    site: Site
    results: Path
    experiments: tuple[Experiment, ...]
    digest: str
    programs: Mapping[str, str]
    budget_node_hours: float | None

    @property
    def runs_folder(self) -> Path:
        """Where the runs of this campaign's site live."""
        return self.results / "runs" / self.site.name

    def unique_runs(self) -> dict[str, tuple[Experiment, Run]]:
        """Every run once, with the first experiment that asks for it, in plan order."""
        found: dict[str, tuple[Experiment, Run]] = {}
        for experiment in self.experiments:
            for run in experiment.runs:
                found.setdefault(run.run_id, (experiment, run))
        return found


def load_campaign(
    path: Path,
    site: str | None = None,
    results: str | None = None,
    cluster: bool = False,
) -> Campaign:
    """Read, check and expand a campaign file.

    ``site`` and ``results`` override the file's own. ``cluster`` is whether jobs go to Slurm: it
    picks between the sites of a file that names one for each. Raises UserError naming file, key
    and allowed values.
    """
    content = load_yaml(path)
    check_schema(content, "campaign", path)
    site_name = site or _site_name(content["site"], cluster, f"{path}: site")
    machine = load_site(site_name, f"{path}: site")
    experiments = tuple(
        _experiment(name, spec, machine, f"{path}: experiments.{name}")
        for name, spec in content["experiments"].items()
    )
    _check_collisions(experiments, path)
    programs = named_programs({**machine.programs, **content.get("programs", {})})
    check_programs(experiments, machine, programs, path)
    try:
        digest = digest_of([content, site_name])
    except ValueError:
        raise UserError(f"{path}: a number is infinite or not a number") from None
    return Campaign(
        name=content["campaign"],
        description=content.get("description", ""),
        file=path,
        site=machine,
        results=Path(results or content.get("results", "results")),
        experiments=experiments,
        digest=digest,
        programs=programs,
        budget_node_hours=content.get("budget_node_hours"),
    )


def _site_name(site: str | Mapping[str, str], cluster: bool, where: str) -> str:
    """The site of a campaign that names one, or one for each way to run."""
    if isinstance(site, str):
        return site
    key, other, way = ("slurm", "local", "with") if cluster else ("local", "slurm", "without")
    if key not in site:
        raise UserError(
            f"{where}: names no site {way} --profile slurm; add '{key}: NAME' beside "
            f"'{other}: {site[other]}', or name one with --config site=NAME"
        )
    return site[key]


def _check_collisions(experiments: tuple[Experiment, ...], path: Path) -> None:
    seen: dict[str, Run] = {}
    for experiment in experiments:
        for run in experiment.runs:
            other = seen.setdefault(run.run_id, run)
            if other is not run and (other.point, other.repeat) != (run.point, run.repeat):
                raise UserError(f"{path}: two points share the id {run.run_id}: rename a value")


def _experiment(name: str, spec: Mapping[str, Any], site: Site, where: str) -> Experiment:
    benchmark = load_benchmark(spec["benchmark"], f"{where}.benchmark")
    axes = {
        key: _axis(benchmark, key, value, f"{where}.axes.{key}")
        for key, value in spec.get("axes", {}).items()
    }
    linked = _linked(benchmark, spec.get("linked", []), f"{where}.linked")
    fixed = {
        key: benchmark.parameter(key, f"{where}.fixed").normalise(value, f"{where}.fixed")
        for key, value in spec.get("fixed", {}).items()
    }
    _check_overlap(axes, linked, fixed, where)
    if math.prod(len(values) for values in axes.values()) * max(1, len(linked)) > MAX_POINTS:
        raise UserError(f"{where}: the grid has more than {MAX_POINTS} points")

    base = {**benchmark.defaults, **fixed}
    rules = _exclusions(benchmark, spec.get("exclude", []), f"{where}.exclude")
    points: dict[str, Mapping[str, Any]] = {}
    excluded: list[tuple[Mapping[str, Any], str]] = []
    point: Mapping[str, Any]
    for combination in _grid(axes, linked):
        point = {**base, **combination}
        reason = next((reason for rule, reason in rules if rule(point)), None)
        if reason is None:
            points.setdefault(canonical_json(point), point)
        else:
            excluded.append((point, reason))
    for extra in _extra(benchmark, spec.get("extra", []), base, axes, linked, f"{where}.extra"):
        points.setdefault(canonical_json(extra), extra)
    if not points:
        raise UserError(f"{where}: no point is left: {len(excluded)} excluded by 'exclude'")
    for point in points.values():
        if site.launch is not None:  # else nothing is started: what stands there was imported
            benchmark.check_point(point, where)
        site.check_point(point, where)
    if site.launch is not None:
        benchmark.command.check(points.values())

    scaling = spec.get("scaling", "none")
    varying = _varying(benchmark, list(points.values()))
    _check_scaling(benchmark, scaling, varying, list(points.values()), where)
    return Experiment(
        name=name,
        benchmark=benchmark,
        description=spec.get("description", ""),
        scaling=scaling,
        axes=varying,
        linked=tuple(linked[0]) if linked else (),
        points=tuple(points.values()),
        runs=tuple(
            Run(benchmark.run_id(point, repeat), point, repeat)
            for repeat in range(spec.get("repeats", 1))
            for point in points.values()
        ),
        excluded=tuple(excluded),
        time_limit_minutes=float(spec.get("time_limit_minutes", site.time_limit_minutes)),
        expected_minutes=spec.get("expected_minutes"),
        memory_gb_per_rank=spec.get("memory_gb_per_rank"),
        constraint=_constraint(benchmark, spec.get("constraint"), f"{where}.constraint"),
    )


def _constraint(benchmark: Benchmark, template: str | None, where: str) -> str | None:
    """The template of a Slurm constraint, after a look at the parameters in its braces."""
    allowed = ", ".join(sorted(benchmark.parameters))
    try:
        fields = [part[1:] for part in string.Formatter().parse(template or "")]
    except ValueError as error:
        raise UserError(
            f"{where}: {template!r}: {error}; in braces stands a parameter: {allowed}"
        ) from None
    for name, form, conversion in fields:
        if name is None:
            continue
        if name not in benchmark.parameters:
            raise UserError(f"{where}: names {name!r}, which is no parameter; allowed: {allowed}")
        if form or conversion:
            raise UserError(f"{where}: {{{name}}} takes no format; allowed: {{{name}}} alone")
    return template


def _axis(benchmark: Benchmark, name: str, value: Any, where: str) -> list[Any]:
    """Values of an axis in order, normalised; refuses repeated ones."""
    parameter = benchmark.parameter(name, where)
    values = _range(value, where) if isinstance(value, dict) else value
    if not isinstance(values, list):
        values = [values]
    elif "array" in parameter.types and values and not isinstance(values[0], list):
        values = [values]  # one list given for a parameter whose value is a list
    result = [parameter.normalise(item, where) for item in values]
    for index, item in enumerate(result):
        if item in result[:index]:
            raise UserError(f"{where}: {item!r} stands here twice")
    return result


def _range(spec: Mapping[str, Any], where: str) -> list[Any]:
    """``{from, to, factor}`` (geometric) or ``{from, to, step}``; ``to`` is included if met."""
    if not {"from", "to"} <= spec.keys() or not {"factor", "step"} & spec.keys():
        raise UserError(f"{where}: a range is {{from, to, factor}} or {{from, to, step}}")
    start, stop = spec["from"], spec["to"]
    if stop < start:
        raise UserError(f"{where}: to = {stop} is less than from = {start}")
    if "factor" in spec and start <= 0:
        raise UserError(f"{where}: from = {start}: a range with a factor starts above 0")
    values: list[Any] = []
    value = start
    # Half a step of slack: 0.1 + 0.1 + 0.1 must still reach 0.3.
    slack = spec.get("step", start) * 1e-9
    while value <= stop + slack:
        values.append(value)
        count = len(values)
        value = (
            start * spec["factor"] ** count if "factor" in spec else start + count * spec["step"]
        )
        if count > MAX_POINTS:
            raise UserError(f"{where}: the range has more than {MAX_POINTS} values")
    return [round(v, 12) if isinstance(v, float) else v for v in values]


def _linked(benchmark: Benchmark, entries: list[Any], where: str) -> list[dict[str, Any]]:
    """Zipped parameters: every entry sets the same parameters, each to one value."""
    result = []
    for index, entry in enumerate(entries):
        here = f"{where}[{index}]"
        result.append(
            {
                key: benchmark.parameter(key, here).normalise(value, here)
                for key, value in entry.items()
            }
        )
        if result[0].keys() != result[-1].keys():
            raise UserError(
                f"{here}: sets {', '.join(sorted(entry))}, the first entry sets "
                f"{', '.join(sorted(result[0]))}; all entries must set the same parameters"
            )
    return result


def _check_overlap(
    axes: Mapping[str, Any], linked: list[dict[str, Any]], fixed: Mapping[str, Any], where: str
) -> None:
    places = [("axes", set(axes)), ("linked", set(linked[0]) if linked else set())]
    places.append(("fixed", set(fixed)))
    for (one, left), (other, right) in itertools.combinations(places, 2):
        if both := sorted(left & right):
            raise UserError(f"{where}: {both[0]!r} is set in {one} and in {other}; keep one")


def _grid(axes: Mapping[str, list[Any]], linked: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in linked or [{}]:
        for values in itertools.product(*axes.values()):
            yield {**entry, **dict(zip(axes, values, strict=True))}


def _exclusions(benchmark: Benchmark, rules: list[Any], where: str) -> list[tuple[Expression, str]]:
    result = []
    for index, rule in enumerate(rules):
        text, reason = (rule, rule) if isinstance(rule, str) else (rule["when"], rule["reason"])
        expression = Expression(text, f"{where}[{index}]").check_names(set(benchmark.parameters))
        if not expression.names:
            raise UserError(f"{where}[{index}]: '{text}' names no parameter")
        result.append((expression, reason))
    return result


def _extra(
    benchmark: Benchmark,
    entries: list[Mapping[str, Any]],
    base: Mapping[str, Any],
    axes: Mapping[str, list[Any]],
    linked: list[dict[str, Any]],
    where: str,
) -> Iterator[dict[str, Any]]:
    """Single points beside the grid; what an entry leaves open must have one value only."""
    for index, entry in enumerate(entries):
        here = f"{where}[{index}]"
        point = dict(base)
        choices = {**axes, **{key: [e[key] for e in linked] for key in (linked or [{}])[0]}}
        for key, values in choices.items():
            if key in entry:
                continue
            if any(value != values[0] for value in values):
                raise UserError(f"{here}: must set {key!r}, which takes {len(values)} values")
            point[key] = values[0]
        for key, value in entry.items():
            point[key] = benchmark.parameter(key, here).normalise(value, here)
        yield point


def _varying(benchmark: Benchmark, points: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """Parameters with more than one value among the points, what they scale over first."""
    first = points[0]
    names = [
        name for name in benchmark.parameters if any(point[name] != first[name] for point in points)
    ]
    if benchmark.workers and len({benchmark.scale_of(point) for point in points}) > 1:
        names.append(benchmark.scale)
    return tuple(sorted(names, key=lambda name: name != benchmark.scale))


def _check_scaling(
    benchmark: Benchmark,
    scaling: str,
    varying: tuple[str, ...],
    points: list[Mapping[str, Any]],
    where: str,
) -> None:
    """A weak series keeps the work per rank, a strong one the work in all: refuse a mix-up."""
    if scaling == "none" or benchmark.work is None:
        return
    scale = benchmark.scale
    if scale not in varying:
        raise UserError(f"{where}.scaling: {scaling}, but '{scale}' takes one value only")
    left_out = {scale, *benchmark.work.names, *benchmark.scale_parameters}
    others = [name for name in varying if name not in left_out]
    series: dict[str, dict[float, set[int]]] = {}
    for point in points:
        count = benchmark.scale_of(point)
        total = benchmark.total_work(point) or 0
        work = total / count if scaling == "weak" else total
        key = canonical_json([point[name] for name in others])
        series.setdefault(key, {}).setdefault(work, set()).add(count)
    unit = f"samples per {scale.removesuffix('s')}" if scaling == "weak" else "samples in all"
    for works in series.values():
        for work, seen in works.items():
            if len(seen) == 1 and len(works) > 1:
                amounts = ", ".join(f"{w:g} at {min(n)} {scale}" for w, n in sorted(works.items()))
                raise UserError(
                    f"{where}.scaling: {scaling} needs the same {unit} at several numbers of "
                    f"{scale}, but {work:g} stands at {min(seen)} {scale} only ({amounts})"
                )
