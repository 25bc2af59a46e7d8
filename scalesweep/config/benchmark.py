"""Benchmarks: what runs on N ranks, with which parameters, and what identifies a run of it."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.analysis.metrics import contradiction
from scalesweep.config.benchmark_keys import BenchmarkKeys, DataKeys, LaunchKeys, WorkersKeys
from scalesweep.config.command_template import Command, load_command, program_named
from scalesweep.config.launcher_template import LAUNCHER_PLACES, fill_launcher
from scalesweep.config.layout import Layout, load_layout
from scalesweep.config.log_patterns import Extract, check_main_metric, load_extract
from scalesweep.config.memory import Memory, load_memory
from scalesweep.config.mesh import Mesh, load_mesh
from scalesweep.config.models import Model, read
from scalesweep.config.parameter import VARIABLE_PREFIX, Parameter, load_parameter
from scalesweep.config.reserved_names import check_parameter, check_varying
from scalesweep.config.study import OWN_BENCHMARKS, file_names, find_file
from scalesweep.config.transformer import Transformer, load_transformer
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import written
from scalesweep.core.paths import BENCHMARKS

# Folder of the benchmarks that an import made, in its results folder.
MADE = "benchmarks"


@dataclass(frozen=True)
class DataSet:
    """The data set a benchmark reads: who makes it, what identifies it, how much is needed."""

    name: str
    program: tuple[str, ...]  # words after Python's
    version: int
    parameters: tuple[str, ...]
    files: Mapping[str, Expression]
    bytes_per_file: Expression

    def folder(self, point: Mapping[str, Any]) -> str:
        """Folder name of the data set of a point: the same for every point that can share it."""
        spec = {"version": self.version, **{name: point[name] for name in self.parameters}}
        digest = blake2b(canonical_json(spec).encode(), digest_size=4).hexdigest()
        return f"{self.name}-{digest}"

    def spec(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of the data set of a point."""
        return {name: point[name] for name in self.parameters}

    def needed(self, point: Mapping[str, Any]) -> dict[str, int]:
        """Files of each split that a point reads."""
        return {split: int(count(point)) for split, count in self.files.items()}


class PointRule(NamedTuple):
    """What the values of a point must not be: whether they are, the names that decide, and why."""

    broken: Callable[[Mapping[str, Any]], bool]
    names: frozenset[str]
    reason: str


@dataclass(frozen=True)
class Workers:
    """What a benchmark scales over, where that is not its ranks: name, and count at a point."""

    name: str
    count: Expression
    doc: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark folder: ``benchmark.yaml`` read, checked, and ready to identify runs.

    ``extract``: how the metrics are read from what a foreign program prints; None for a native one.
    ``framework``: what it trains with, by which the site chooses Python and launcher. ``launch``:
    instead of the site's; ``python``: what starts the program instead of the site's,
    maybe ``{program:NAME}``; ``threads``: how many a rank computes with, None where that is not
    known.
    ``ceiling``: what of the machine its main metric is the most of: ``compute`` (FLOP/s),
    ``memory``, ``network`` or ``files`` (bytes/s); None for all other benchmarks.
    ``parts``: regular expressions that group the functions of a profile; empty: those by default.
    ``noexchange``: the program can train without the exchange of gradients.
    ``quantities``: parameters that are the experiment's: the program does not know them.
    """

    name: str
    version: int
    summary: str
    folder: Path
    parameters: Mapping[str, Parameter]
    divides: tuple[tuple[Expression, Expression], ...]
    refuse: tuple[tuple[Expression, str], ...]
    work_scope: str | None
    work: Expression | None
    workers: Workers | None
    main_metric: str | None
    ceiling: str | None
    metrics: Mapping[str, str]  # definitions, for the report
    compare: Mapping[str, str]  # of metrics that say so: between which runs they are compared
    kinds: Mapping[str, str]  # of metrics that say so: extensive, intensive or latency
    data: DataSet | None
    env: Mapping[str, str]
    command: Command
    launch: Mapping[str, tuple[str, ...]] | None
    python: str | None
    threads: Expression | None
    extract: Extract | None
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    noexchange: bool = False
    gpus: Expression | None = None  # that a rank takes where there are GPUs; None: not known
    framework: str | None = None
    quantities: frozenset[str] = frozenset()
    layout: Layout | None = None  # names for how ranks share the work; None: parameters name it
    mesh: Mesh | None = None  # the axes that the ranks lie along; None: not known
    transformer: Transformer | None = None  # the model, where it is one
    memory: Memory | None = None  # what its bytes depend on besides mesh and model

    def parameter(self, name: str, where: str) -> Parameter:
        """A parameter by name; raises UserError naming the known ones."""
        try:
            return self.parameters[name]
        except KeyError:
            raise UserError(
                f"{where}: benchmark {self.name} has no parameter {name!r}; "
                + choices(name, sorted(self.parameters))
            ) from None

    def check_point(self, point: Mapping[str, Any], where: str) -> None:
        """Raise UserError for values that do not go together or sizes that do not divide.

        For sizes the message names the nearest numbers that would do.
        """
        for rule, reason in self.refuse:
            if rule(point):
                values = [f"{name} = {written(point[name])}" for name in sorted(rule.names)]
                raise UserError(f"{where}: {', '.join(values)}: {reason}")
        for divisor, number in self.divides:
            by, value = divisor(point), number(point)
            if value % by:
                low = value - value % by
                would = " or ".join(str(n) for n in (low, low + by) if n > 0)
                raise UserError(
                    f"{where}: {number.text_at(point)} = {value} is not a multiple of "
                    f"{divisor.text_at(point)} = {by}; nearest valid: {would}"
                )
        if self.mesh and (fault := self.mesh.fault(point)):
            raise UserError(f"{where}: {fault}; {self.mesh.rule}")

    @cached_property
    def rules(self) -> tuple[PointRule, ...]:
        """The rules of ``check_point``, one by one."""

        def divides(divisor: Expression, number: Expression) -> PointRule:
            reason = f"{number.text} is not a multiple of {divisor.text}"
            names = divisor.names | number.names
            return PointRule(lambda point: bool(number(point) % divisor(point)), names, reason)

        refused = [PointRule(rule, rule.names, reason) for rule, reason in self.refuse]
        divided = [divides(*sizes) for sizes in self.divides]
        if (mesh := self.mesh) is None:
            return *refused, *divided
        no_mesh = PointRule(lambda point: bool(mesh.fault(point)), mesh.names, mesh.rule)
        return *refused, *divided, no_mesh

    def total_work(self, point: Mapping[str, Any]) -> int | None:
        """Samples per epoch over all ranks, or None if the benchmark does not say."""
        if self.work is None:
            return None
        samples = int(self.work(point))
        return samples * int(point["ranks"]) if self.work_scope == "rank" else samples

    def threads_of(self, point: Mapping[str, Any]) -> int | None:
        """Threads that a rank computes with: 1 where the benchmark does not say; None where it says
        0, as many as the framework chooses, which depends on the cores that a rank may use."""
        threads = self.threads(point) if self.threads else 1
        if isinstance(threads, int | float) and math.isfinite(threads):
            return max(1, math.ceil(threads)) if threads else None
        text = self.threads.text if self.threads else ""
        raise UserError(f"{self.folder}/benchmark.yaml: threads: '{text}' is {threads!r}")

    def variables(self, point: Mapping[str, Any]) -> dict[str, str]:
        """Environment variables that parameters set."""
        return {
            variable: str(point[parameter])
            for variable, parameter in self.env.items()
            if point[parameter] is not None
        }

    def with_variables(self, names: Iterable[str]) -> "Benchmark":
        """The same with environment variables that experiments may set.

        Each is a parameter (``VARIABLE_PREFIX``) whose default is to leave the variable as it is:
        ids of runs that do not set it stay what they are.
        """
        known = {
            f"{VARIABLE_PREFIX}{name}": Parameter(
                name=f"{VARIABLE_PREFIX}{name}",
                types=("string", "null"),
                default=None,
                doc=f"Environment variable {name}; null leaves it unchanged.",
            )
            for name in sorted(names)
        }
        return replace(
            self,
            parameters={**self.parameters, **known},
            env={**self.env, **{key.removeprefix(VARIABLE_PREFIX): key for key in known}},
            defaults={**self.defaults, **dict.fromkeys(known)},
        )

    def scaled_over(self, name: str | None, where: str) -> "Benchmark":
        """The same where an experiment scales over an integer parameter (None: as it is)."""
        if name is None or name == self.scale:
            return self
        if "integer" not in self.parameter(name, where).types:
            every = sorted(n for n, p in self.parameters.items() if "integer" in p.types)
            raise UserError(f"{where}: {name!r} takes no whole numbers; {choices(name, every)}")
        check_varying([name], where)
        return replace(
            self, workers=Workers(name, Expression(name, where), self.parameters[name].doc)
        )

    def with_quantities(self, quantities: Mapping[str, Parameter]) -> "Benchmark":
        """The same with parameters that an experiment has for itself, outside of run ids."""
        if not quantities:
            return self
        return replace(
            self,
            parameters={**self.parameters, **quantities},
            defaults={**self.defaults, **dict.fromkeys(quantities)},
            quantities=self.quantities | quantities.keys(),
        )

    def program_values(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """What the program is told of a point: all but the experiment's own quantities."""
        return {name: value for name, value in point.items() if name not in self.quantities}

    @property
    def scale(self) -> str:
        """What runs scale over: ``ranks``, or the name of ``workers``."""
        return self.workers.name if self.workers else "ranks"

    @property
    def scale_parameters(self) -> frozenset[str]:
        """The parameters that make up the scale."""
        return self.workers.count.names if self.workers else frozenset({"ranks"})

    def scaled(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point together with what it scales over."""
        return {**point, self.scale: self.scale_of(point)}

    def scale_of(self, point: Mapping[str, Any]) -> int:
        """Ranks of a point, or the devices that replace them."""
        return int(self.workers.count(point) if self.workers else point["ranks"])

    @property
    def work_parameters(self) -> frozenset[str]:
        """The parameters that decide how much a rank has to do."""
        return self.work.names if self.work else frozenset()

    @property
    def size_parameters(self) -> frozenset[str]:
        """Those of ``work_parameters`` that set an amount, and not how ranks share it: layouts at
        the same work are series of their own."""
        layout = self.mesh.names - {"ranks"} if self.mesh else frozenset()
        return self.work_parameters - layout

    def run_id(self, point: Mapping[str, Any], repeat: int) -> str:
        """``<benchmark>-r<ranks>-<digest>``: what was measured, whatever campaign asked for it.

        The digest covers name, version, the parameters that differ from their defaults, and
        the repeat; ``point`` is complete and normalised.
        """
        return self.id_of(point, self.identity_of(point), repeat)

    def id_of(self, point: Mapping[str, Any], identity: str, repeat: int) -> str:
        """The same of a point whose ``identity`` is known."""
        return f"{self.name}-r{point['ranks']}-{self.run_digest(identity, repeat)}"

    def run_digest(self, identity: str, repeat: int) -> str:
        """The digest in the id of a run."""
        text = f"{self._head}{identity},{repeat}]"
        return blake2b(text.encode(), digest_size=6).hexdigest()

    @cached_property
    def _head(self) -> str:
        """Canonical JSON of name and version: what the digests of all run ids begin with."""
        return canonical_json([self.name, self.version]).removesuffix("]") + ","

    def identity_of(self, point: Mapping[str, Any]) -> str:
        """What the ids of a point cover of it: canonical JSON of what is not the default."""
        defaults = self.defaults
        differing = {name: value for name, value in point.items() if value != defaults[name]}
        for name in self.quantities & differing.keys():
            del differing[name]
        return canonical_json(differing)

    def fingerprint(self) -> str:
        """Digest of all defaults: may change only together with ``version``."""
        text = canonical_json(dict(self.defaults))
        return blake2b(text.encode(), digest_size=8).hexdigest()


def load_benchmark(
    name: str, where: str = "benchmark", folder: Path | None = None, beside: Path | None = None
) -> Benchmark:
    """Read ``benchmarks/<name>/benchmark.yaml`` of the study or of ``workflow``, or of ``folder``.

    ``where`` starts the error for an unknown name (for example campaign file and key). ``beside``
    is a campaign's folder: an import may have made a benchmark of its own in ``benchmarks`` there.
    Raises UserError for an unknown benchmark or a faulty file.
    """
    path = folder / "benchmark.yaml" if folder else _benchmark_file(name)
    if path is None and beside is not None:
        path = beside / MADE / name / "benchmark.yaml"
    if path is None or not path.is_file():
        files = file_names(OWN_BENCHMARKS, BENCHMARKS, "*/benchmark.yaml")
        known = sorted({file.parent.name for file in files})
        raise UserError(f"{where}: no benchmark {name!r}; {choices(name, known)}")
    folder = path.parent
    keys = read(BenchmarkKeys, load_yaml(path), path)
    if keys.name != name:
        raise UserError(f"{path}: name: {keys.name!r} differs from its folder {name!r}")
    parameters = {key: load_parameter(key, spec, path) for key, spec in keys.parameters.items()}
    known_names = frozenset(parameters)

    def expression(text: str, key: str) -> Expression:
        return Expression(text, f"{path}: {key}").check_names(known_names)

    for variable, parameter in keys.env.items():
        if parameter not in parameters:
            raise UserError(f"{path}: env.{variable}: {parameter!r} is not a parameter")
    result = keys.result if isinstance(keys.result, str) else _said(keys.result)
    extract = load_extract(result, path)
    defaults = {key: parameter.default for key, parameter in parameters.items()}
    nullable = [key for key, parameter in parameters.items() if "null" in parameter.types]
    workers = _workers(keys.workers, path, expression) if keys.workers else None
    if workers and workers.name in parameters:
        raise UserError(f"{path}: workers.name: {workers.name!r} is also a parameter")
    return Benchmark(
        name=name,
        version=keys.version,
        summary=keys.summary,
        folder=folder,
        parameters=parameters,
        divides=tuple(
            (expression(rule.divisor, "divides"), expression(rule.number, "divides"))
            for rule in keys.divides
        ),
        refuse=tuple((expression(rule.when, "refuse"), rule.reason) for rule in keys.refuse),
        work_scope=keys.work.scope if keys.work else None,
        work=expression(keys.work.samples, "work.samples") if keys.work else None,
        workers=workers,
        main_metric=check_main_metric(extract, keys.main_metric, path),
        ceiling=_ceiling(keys, path),
        metrics={
            **(extract.definitions if extract else {}),
            **{name: metric.definition for name, metric in keys.metrics.items()},
        },
        compare={name: metric.compare for name, metric in keys.metrics.items() if metric.compare},
        kinds=_kinds(keys, extract, path),
        data=_data_set(keys.data, folder, path, expression) if keys.data else None,
        env=keys.env,
        command=load_command(keys.command, parameters, nullable, path),
        launch=_launch(keys.launch, path),
        python=_python(keys.python, path),
        threads=expression(keys.threads, "threads") if keys.threads else None,
        extract=extract,
        parts=_parts(keys.parts or {}, path),
        defaults=defaults,
        noexchange=keys.noexchange,
        gpus=expression(keys.gpus, "gpus") if keys.gpus else None,
        framework=keys.framework,
        layout=load_layout(_said(keys.layout), defaults, path) if keys.layout else None,
        mesh=load_mesh([_said(axis) for axis in keys.mesh], parameters, f"{path}: mesh")
        if keys.mesh
        else None,
        transformer=load_transformer(_said(keys.transformer), parameters, f"{path}: transformer")
        if keys.transformer
        else None,
        memory=load_memory(_said(keys.memory), parameters, f"{path}: memory")
        if keys.memory
        else None,
    )


def _said(keys: Model) -> dict[str, Any]:
    """What a file says, as a mapping."""
    return keys.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


def _kinds(keys: BenchmarkKeys, extract: Extract | None, path: Path) -> dict[str, str]:
    """Kinds by metric; raises UserError for one that contradicts unit and direction."""
    stated = {name: metric.kind for name, metric in keys.metrics.items() if metric.kind}
    kinds: dict[str, str] = {**(extract.kinds if extract else {}), **stated}
    for metric, kind in kinds.items():
        meant = extract.meaning_of(metric) if extract else None
        if meant and (fault := contradiction(kind, meant["unit"], meant["better"])):
            raise UserError(f"{path}: {metric}: kind: {fault}")
    return kinds


def _benchmark_file(name: str) -> Path | None:
    return find_file(OWN_BENCHMARKS, BENCHMARKS, f"{name}/benchmark.yaml")


def _launch(keys: LaunchKeys | None, path: Path) -> Mapping[str, tuple[str, ...]] | None:
    """The benchmark's own launcher templates, tried; raises UserError."""
    if keys is None:
        return None
    templates = {"single": keys.single, "multi": keys.multi}
    for words in templates.values():
        fill_launcher(words, dict.fromkeys(LAUNCHER_PLACES, 1), f"{path}: launch")
    return templates


def _python(python: str | None, path: Path) -> str | None:
    """What starts the program, checked: a path, a name, or ``{program:NAME}``."""
    if python is not None and "{" in python and program_named(python) is None:
        raise UserError(
            f"{path}: python: {python!r}; allowed: a path, a name that is found in PATH, or "
            "{program:NAME}"
        )
    return python


def _ceiling(keys: BenchmarkKeys, path: Path) -> str | None:
    """What of the machine the main metric is the most of; raises UserError if none is named."""
    if keys.ceiling is not None and keys.main_metric is None:
        raise UserError(
            f"{path}: ceiling: {keys.ceiling} needs a main_metric, whose best value it is"
        )
    return keys.ceiling


def _workers(keys: WorkersKeys, path: Path, expression: Any) -> Workers:
    count = expression(keys.count, "workers.count")
    if "ranks" not in count.names:
        raise UserError(
            f"{path}: workers.count: '{count.text}' does not depend on ranks; "
            "an experiment names another parameter by scale: NAME"
        )
    check_parameter(keys.name, f"{path}: workers.name")
    check_varying([keys.name], f"{path}: workers.name")
    return Workers(keys.name, count, keys.doc)


def _parts(content: Mapping[str, Any], path: Path) -> dict[str, tuple[str, ...]]:
    """Patterns by part; raises UserError for one that is no regular expression."""
    for part, patterns in content.items():
        for pattern in patterns:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise UserError(
                    f"{path}: parts.{part}: '{pattern}' is not a regular expression ({error})"
                ) from None
    return {part: tuple(patterns) for part, patterns in content.items()}


def _data_set(keys: DataKeys, folder: Path, path: Path, expression: Any) -> DataSet:
    name, program = _staging_program(keys.program, folder, path)
    return DataSet(
        name=keys.name or name,
        program=program,
        version=keys.version,
        parameters=keys.parameters,
        files={
            split: expression(text, f"data.files.{split}") for split, text in keys.files.items()
        },
        bytes_per_file=expression(keys.bytes_per_file, "data.bytes_per_file"),
    )


def _staging_program(text: str, folder: Path, path: Path) -> tuple[str, tuple[str, ...]]:
    """The folder's name and the command of a program that makes data.

    ``text``: a file, relative to the benchmark's folder, or ``<package>.<module>`` in the folder of
    the benchmarks, which starts it (its ``__main__.py``).
    """
    file = (folder / text).resolve()
    if file.is_file():
        return file.parent.name, (str(file),)
    package, _, module = text.partition(".")
    if not (folder.parent / package / f"{module}.py").is_file():
        raise UserError(f"{path}: data.program: no file {file}, and no module {text} of benchmarks")
    return package, (str(folder.parent), text)
