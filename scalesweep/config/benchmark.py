"""Benchmarks: what runs on N ranks, with which parameters, and what identifies a run of it."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from pydantic import PrivateAttr

from scalesweep.analysis.metrics import contradiction
from scalesweep.config.benchmark_keys import BenchmarkKeys, Divides, Point, Refuse, Workers
from scalesweep.config.models import read, settled
from scalesweep.config.parameter import VARIABLE_PREFIX, Parameter, check_parameter, check_varying
from scalesweep.config.shapes import Mesh
from scalesweep.config.study import OWN_BENCHMARKS, file_names, named_file
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.files import canonical_json
from scalesweep.core.paths import BENCHMARKS

# Folder of the benchmarks that an import made, in its results folder.
MADE = "benchmarks"


class Benchmark(BenchmarkKeys):
    """A benchmark: what runs on N ranks, and what identifies a run of it."""

    _file: Path = PrivateAttr(Path())
    _quantities: frozenset[str] = PrivateAttr(frozenset())

    def settle(self, path: Path) -> Self:
        """The benchmark of a file, its keys checked, with a main metric. Raises UserError."""
        self._file = path
        where = f"{path}: parameters"
        if lacking := {"ranks", "ranks_per_node"} - self.parameters.keys():
            raise UserError(f"{where}: the key {min(lacking)!r} is missing")
        for name, parameter in self.parameters.items():
            check_parameter(name, where)
            parameter.settle(f"{where}.{name}")
        settled(self, f"{path}: ", self.parameters)
        if unknown := set(self.env.values()) - self.parameters.keys():
            raise UserError(f"{path}: env: {min(unknown)!r} is not a parameter")
        self.command.check_words(self.parameters, f"{path}: command")
        if self.data:
            self.data.find_program(path)
        if self.workers:
            check_parameter(self.scale, f"{path}: workers.name")
            check_varying([self.scale], f"{path}: workers.name")
            if self.scale in self.parameters:
                raise UserError(f"{path}: workers.name: {self.scale!r} is also a parameter")
        return self.model_copy(update={"main_metric": self._checked_main_metric(path)})

    def _checked_main_metric(self, path: Path) -> str | None:
        extract, main = self.extract, self.main_metric
        if extract is None:
            return main
        extract.settle(path)
        if main is not None and not extract.meaning_of(main):
            allowed = ", ".join(extract.known)
            raise UserError(f"{path}: main_metric: {main!r} is not one of {allowed}")
        for metric, kind in self.kinds.items():
            meant = extract.meaning_of(metric)
            if meant and (fault := contradiction(kind, meant["unit"], meant["better"])):
                raise UserError(f"{path}: {metric}: kind: {fault}")
        return main or extract.main_metric

    @property
    def folder(self) -> Path:
        """Where its file is."""
        return self._file.parent

    @property
    def quantities(self) -> frozenset[str]:
        """Parameters that are the experiment's: the program does not know them."""
        return self._quantities

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The default of every parameter."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    @cached_property
    def metrics(self) -> dict[str, str]:
        """Definitions of metrics, for the report."""
        given = self.extract.given if self.extract else {}
        stated = {name: metric.definition for name, metric in self.defined.items()}
        return {**{name: value.definition for name, value in given.items()}, **stated}

    @property
    def compare(self) -> dict[str, str]:
        """Between which runs metrics are compared, of those that say so."""
        return {name: it.compare for name, it in self.defined.items() if it.compare}

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kinds of metrics, of those that say so."""
        stated = [(it.name, it.kind) for it in (self.extract.metrics if self.extract else ())]
        stated += [(name, metric.kind) for name, metric in self.defined.items()]
        return {name: kind for name, kind in stated if kind}

    def parameter(self, name: str, where: str) -> Parameter:
        """A parameter by name; raises UserError naming the known ones."""
        if name in self.parameters:
            return self.parameters[name]
        known = choices(name, sorted(self.parameters))
        raise UserError(f"{where}: benchmark {self.name} has no parameter {name!r}; {known}")

    def normalised(self, values: Point, where: str) -> dict[str, Any]:
        """Values of parameters in their one form. Raises UserError."""
        return {
            name: self.parameter(name, where).normalise(of, f"{where}: {name}")
            for name, of in values.items()
        }

    @property
    def rules(self) -> tuple[Divides | Refuse | Mesh, ...]:
        """What the values of a point must not be: ``reason``, and its ``fault`` with the values."""
        return (*self.refuse, *self.divides, *([self.mesh] if self.mesh else []))

    def check_point(self, point: Mapping[str, Any], where: str) -> None:
        """Raise UserError for a point that breaks a rule."""
        for rule in self.rules:
            if fault := rule.fault(point):
                raise UserError(f"{where}: {fault}")

    def total_work(self, point: Mapping[str, Any]) -> int | None:
        """Samples per epoch over all ranks, or None if the benchmark does not say."""
        if self.work is None:
            return None
        samples = int(self.work.samples.number(point))
        return samples * int(point["ranks"]) if self.work.scope == "rank" else samples

    def variables(self, point: Mapping[str, Any]) -> dict[str, str]:
        """Environment variables that parameters set."""
        return {
            variable: str(point[parameter])
            for variable, parameter in self.env.items()
            if point[parameter] is not None
        }

    def with_variables(self, names: Iterable[str]) -> "Benchmark":
        """The same with environment variables as parameters; null by default, so no id changes."""
        env = {name: f"{VARIABLE_PREFIX}{name}" for name in sorted(names)}
        known = {
            key: Parameter.of(("string", "null"), f"Environment variable {name}; null: unchanged.")
            for name, key in env.items()
        }
        return self._changed(known, env={**self.env, **env})

    def _changed(self, more: Mapping[str, Parameter], **fields: Any) -> "Benchmark":
        """The same with more parameters, and other fields."""
        changed = {"parameters": {**self.parameters, **more}, **fields}
        made = self.model_copy(update=changed)
        made.__dict__.pop("defaults", None)  # cached
        return made

    def scaled_over(self, name: str | None, where: str) -> "Benchmark":
        """The same where an experiment scales over an integer parameter (None: as it is)."""
        if name is None or name == self.scale:
            return self
        if "integer" not in self.parameter(name, where).types:
            every = sorted(n for n, p in self.parameters.items() if "integer" in p.types)
            raise UserError(f"{where}: {name!r} takes no whole numbers; {choices(name, every)}")
        check_varying([name], where)
        doc = self.parameters[name].doc
        workers = Workers.model_construct(name=name, count=Expression(name, where), doc=doc)
        return self._changed({}, workers=workers)

    def with_quantities(self, quantities: Mapping[str, Parameter]) -> "Benchmark":
        """The same with parameters that an experiment has for itself, outside of run ids."""
        made = self._changed(quantities)
        made._quantities = self._quantities | quantities.keys()
        return made

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
        return int(self.workers.count.number(point) if self.workers else point["ranks"])

    @property
    def work_parameters(self) -> frozenset[str]:
        """The parameters that decide how much a rank has to do."""
        return self.work.samples.names if self.work else frozenset()

    def run_id(self, point: Mapping[str, Any], repeat: int, identity: str = "") -> str:
        """``<benchmark>-r<ranks>-<digest>``: what was measured, whatever campaign asked for it. The
        digest covers name, version, parameters that differ from their defaults, and the repeat;
        ``point`` is complete and normalised, ``identity`` its own where it is known."""
        text = f"{self._head}{identity or self.identity_of(point)},{repeat}]"
        digest = blake2b(text.encode(), digest_size=6).hexdigest()
        return f"{self.name}-r{point['ranks']}-{digest}"

    @cached_property
    def _head(self) -> str:
        """Canonical JSON of name and version: what the digests of all run ids begin with."""
        return canonical_json([self.name, self.version]).removesuffix("]") + ","

    def identity_of(self, point: Mapping[str, Any]) -> str:
        """What the ids of a point cover of it: canonical JSON of what is not the default."""
        defaults, own = self.defaults, self.quantities
        return canonical_json({n: v for n, v in point.items() if v != defaults[n] and n not in own})


def load_benchmark(
    name: str, where: str = "benchmark", folder: Path | None = None, beside: Path | None = None
) -> Benchmark:
    """Read ``benchmarks/<name>/benchmark.yaml`` of the study or of ``workflow``, of ``folder``, or
    what an import made ``beside`` its campaign. Raises UserError."""
    files = file_names(OWN_BENCHMARKS, BENCHMARKS, "*/benchmark.yaml")
    if folder is not None:
        files = [folder / "benchmark.yaml"]
    elif beside is not None and all(file.parent.name != name for file in files):
        files += (beside / MADE).glob("*/benchmark.yaml")
    path = named_file("benchmark", name, files, where)
    benchmark = read(Benchmark, load_yaml(path), path)
    if benchmark.name != name:
        raise UserError(f"{path}: name: {benchmark.name!r} differs from its folder {name!r}")
    return benchmark.settle(path)
