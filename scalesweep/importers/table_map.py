"""What the columns of a published table mean: a YAML file, written by hand or from a draft.

``workflow/schemas/table_map.yaml`` is its schema, docs/guide/importing.md explains every key.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.analysis.flop_conventions import is_share, unnamed_convention
from scalesweep.analysis.metrics import contradiction
from scalesweep.config.derived_parameters import in_order
from scalesweep.config.formula import Formula, Number, by_alias
from scalesweep.config.log_patterns import RESERVED
from scalesweep.config.memory import Memory, load_memory
from scalesweep.config.mesh import Mesh, load_mesh
from scalesweep.config.reserved_names import check_metrics, check_parameter, check_varying
from scalesweep.config.transformer import Transformer, load_transformer
from scalesweep.config.yaml_loader import check_schema, load_yaml
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression
from scalesweep.importers.table_file import Cell, Row, Table, read_table

# Ranks on a node: where a map says it, prediction knows the borders of nodes.
PER_NODE = "ranks_per_node"


class RefusedRowError(ValueError):
    """Why a row (or one of its values side by side) is not imported."""


@dataclass(frozen=True)
class Source:
    """Where a value comes from: a column, a formula over columns, or a constant.

    ``columns`` are the columns it reads. ``text`` and ``number`` give its value for a row, None
    where a cell is empty; both raise RefusedRowError.
    """

    columns: tuple[str, ...]
    value: Callable[[Row], Cell]
    what: str
    table: Table

    def text(self, row: Row) -> Cell:
        """The value as it is written: what a parameter of names has."""
        return self.value(row)

    def number(self, row: Row) -> Number | None:
        """The value as a number."""
        try:
            return self.table.number(self.value(row))
        except ValueError as error:
            raise RefusedRowError(f"{self.what}: {error}") from None


@dataclass(frozen=True)
class ParameterMap:
    """A parameter; ``source`` is None for the one whose values are columns side by side, and for
    those that no column has and that are worked out (``derive``)."""

    name: str
    source: Source | None
    type: str | None
    unit: str | None
    doc: str
    workload: bool
    derive: Expression | None = None  # what the value follows from, which every row must keep


@dataclass(frozen=True)
class Values:
    """Where the values of a metric are: its mean, and what the source states of its spread."""

    mean: Source
    std: Source | None = None
    count: Source | None = None
    efficiency: Source | None = None


class Side(NamedTuple):
    """A value of the parameter side by side (None without one), and which of its columns."""

    value: str | None
    number: int = 0


@dataclass(frozen=True)
class MetricMap:
    """A metric's meaning; ``values`` by what stands side by side."""

    name: str
    unit: str
    better: str
    scope: str
    doc: str
    ddof: int
    kind: str | None = None  # extensive, intensive or latency, where the map says it
    values: Mapping[Side, Values] = field(default_factory=dict)


@dataclass(frozen=True)
class TableMap:
    """A map that fits its table."""

    path: Path
    table: Table
    name: str
    summary: str
    source: str
    parameters: Mapping[str, ParameterMap]
    metrics: Mapping[str, MetricMap]
    side_by_side: str | None
    repeat: Source | None
    unfinished: Source | None  # a column whose words in ``unfinished_words`` say so
    unfinished_words: frozenset[str]
    failed: Source | None  # a column whose words say that a run failed
    failed_words: Mapping[str, str]  # these words, and the cause that each stands for
    ignore: frozenset[str]
    scale: str
    scaling: str
    work: Mapping[str, str] | None
    mesh: Mesh | None
    transformer: Transformer | None
    memory: Memory | None

    @property
    def sides(self) -> list[Side]:
        """What stands side by side, in the order of the map; a single one without any."""
        sides = dict.fromkeys(side for metric in self.metrics.values() for side in metric.values)
        return list(sides)

    @property
    def derive(self) -> dict[str, str]:
        """The parameters that follow from others, with their expressions."""
        return {name: it.derive.text for name, it in self.parameters.items() if it.derive}

    @cached_property
    def worked_out(self) -> tuple[str, ...]:
        """The parameters that no column has, each after those that it is worked out from."""
        derived = {name: it.derive for name, it in self.parameters.items() if it.derive}
        names = in_order(derived, f"{self.path}: parameters")
        return tuple(name for name in names if self.parameters[name].source is None)

    @property
    def declared(self) -> dict[str, Any]:
        """Mesh, transformer and memory as benchmark.yaml has them."""
        mesh = self.mesh and [{"role": r, "ranks": text} for r, text in self.mesh.texts.items()]
        model = self.transformer and self.transformer.texts
        memory = self.memory and self.memory.declared
        declared = (("mesh", mesh), ("transformer", model), ("memory", memory))
        return {key: of for key, of in declared if of}

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the map reads or leaves out on purpose."""
        return frozenset(
            {name for source in self._sources() for name in source.columns} | self.ignore
        )

    def _sources(self) -> Iterator[Source]:
        sources = [parameter.source for parameter in self.parameters.values()]
        for metric in self.metrics.values():
            for it in metric.values.values():
                sources += [it.mean, it.std, it.count, it.efficiency]
        sources += [self.repeat, self.unfinished, self.failed]
        yield from filter(None, sources)


def load_map(path: Path, file: Path) -> TableMap:
    """Read a map and the table that it describes.

    Raises UserError naming the map, the key and what is allowed, or what is wrong with the table.
    """
    content = load_yaml(path)
    check_schema(content, "table_map", path)
    form = content.get("table", {})
    thousands = form.get("thousands")
    decimal = form.get("decimal", "," if thousands == "." else "." if thousands else None)
    if thousands is not None and thousands == decimal:
        raise UserError(f"{path}: table.thousands: {thousands!r} is the decimal mark too")
    table = read_table(file, form.get("separator"), decimal, thousands)
    return _Reader(path, table).read(content)


def _listed(columns: Any) -> list[Any]:
    """The columns of a value side by side: none, a single one, or several, which are repeats."""
    if columns is None:
        return []
    return columns if isinstance(columns, list) else [columns]


def _word(cell: Any) -> str:
    """What a cell says, whatever the case of its letters."""
    return str(cell).strip().lower()


def _failures(values: Mapping[Any, str] | Sequence[Any]) -> dict[str, str]:
    """The words of failed runs with their causes; those of a list name none."""
    causes = values if isinstance(values, Mapping) else dict.fromkeys(values, Cause.NOT_STATED)
    return {_word(word): str(cause) for word, cause in causes.items()}


class _Reader:
    """Makes a ``TableMap`` of YAML that fits the schema."""

    def __init__(self, path: Path, table: Table) -> None:
        self.path = path
        self.table = table
        self.aliases = by_alias(table.columns)

    def read(self, content: Mapping[str, Any]) -> TableMap:
        """The map that a file's content describes. Raises UserError that names file and key."""
        side = content.get("side_by_side")
        parameters = {
            name: self._parameter(name, spec) for name, spec in content["parameters"].items()
        }
        if side:
            name = side["parameter"]
            if name in parameters:
                raise self._error("side_by_side.parameter", f"{name!r} is also under parameters")
            words = side.get("doc", "Which columns of the table.")
            parameters[name] = ParameterMap(
                name, None, "string", side.get("unit"), words, side.get("workload", False)
            )
        for value, columns in side["values"].items() if side else ():
            if unknown := sorted(set(columns) - set(content["metrics"])):
                raise self._error(
                    f"side_by_side.values.{value}",
                    f"{unknown[0]!r} is no metric; allowed: {', '.join(content['metrics'])}",
                )
        metrics = {
            name: self._metric(name, spec, side) for name, spec in content["metrics"].items()
        }
        self._check_names(parameters, metrics, content)
        for name in content.get("ignore", []):
            self._column(name, "ignore")
        repeat, ends = content.get("repeat"), content.get("unfinished", {})
        failed = content.get("failed", {})
        return TableMap(
            path=self.path,
            table=self.table,
            name=content["name"],
            summary=content.get("summary", f"Published table {self.table.file.name}."),
            source=content.get("source", ""),
            parameters=parameters,
            metrics=metrics,
            side_by_side=side["parameter"] if side else None,
            repeat=self._source(repeat, "repeat") if repeat else None,
            unfinished=self._source(ends["column"], "unfinished.column") if ends else None,
            unfinished_words=frozenset(map(_word, ends.get("values", ()))),
            failed=self._source(failed["column"], "failed.column") if failed else None,
            failed_words=_failures(failed.get("values", ())),
            ignore=frozenset(content.get("ignore", [])),
            scale=content.get("scale", "ranks"),
            scaling=content.get("scaling", ""),
            work=content.get("work"),
            mesh=load_mesh(content["mesh"], parameters, f"{self.path}: mesh")
            if "mesh" in content
            else None,
            transformer=load_transformer(
                content["transformer"], parameters, f"{self.path}: transformer"
            )
            if "transformer" in content
            else None,
            memory=load_memory(content["memory"], parameters, f"{self.path}: memory")
            if "memory" in content
            else None,
        )

    def _error(self, key: str, what: str) -> UserError:
        return UserError(f"{self.path}: {key}: {what}")

    def _check_names(
        self,
        parameters: Mapping[str, ParameterMap],
        metrics: Mapping[str, MetricMap],
        content: Mapping[str, Any],
    ) -> None:
        """Raise UserError if a parameter or a metric has a name that is reserved or used twice."""
        for name in (*parameters, content.get("scale", "ranks")):
            where = f"{self.path}: parameters.{name}"
            check_parameter(name, where)
            check_varying([name], where)
            if name == PER_NODE and {"type", "unit", "workload"} & set(content["parameters"][name]):
                raise self._error(f"parameters.{name}", "takes no type, unit or workload: a count")
            if name in metrics:
                raise self._error(f"metrics.{name}", "is also the name of a parameter")
        self._check_derived(parameters)
        check_metrics(metrics, self.path, "metrics")
        for name in metrics:
            if fault := unnamed_convention(name):
                raise self._error(f"metrics.{name}", fault)
            if is_share(name) and metrics[name].unit != "1":
                raise self._error(
                    f"metrics.{name}.unit",
                    'is "1" for a share of a peak; divide percentages (formula: MFU / 100)',
                )
        if (scale := content.get("scale", "ranks")) != "ranks" and scale in parameters:
            raise self._error("scale", f"{scale!r} is also a parameter: map the column to ranks")
        for name in metrics:
            if name in RESERVED:
                raise self._error(
                    f"metrics.{name}", "the name is reserved by scalesweep; choose another"
                )
        if work := content.get("work"):
            expression = Expression(work["samples"], f"{self.path}: work.samples")
            expression.check_names(set(parameters))

    def _check_derived(self, parameters: Mapping[str, ParameterMap]) -> None:
        """Raise UserError for what cannot be derived, or from what is not there."""
        derived = {name: it.derive for name, it in parameters.items() if it.derive is not None}
        for name, expression in derived.items():
            expression.check_names(set(parameters))
            if name in ("ranks", PER_NODE):
                raise self._error(
                    f"parameters.{name}", "cannot be derived; derive the others from it"
                )
        in_order(derived, f"{self.path}: parameters")

    def _parameter(self, name: str, spec: Mapping[str, Any]) -> ParameterMap:
        key = f"parameters.{name}"
        given = {part: spec[part] for part in ("column", "formula", "value") if part in spec}
        derive = spec.get("derive")
        printed = bool(given) or derive is None
        source = self._source(self._single(given, key), key) if printed else None
        what = f"{source.what} of the table" if source else f"worked out: {derive}"
        words = spec.get("doc", f"{what}.".capitalize())
        return ParameterMap(
            name,
            source,
            spec.get("type"),
            spec.get("unit"),
            words,
            spec.get("workload", False),
            None if derive is None else Expression(derive, f"{self.path}: {key}.derive"),
        )

    def _metric(self, name: str, spec: Mapping[str, Any], side: Any) -> MetricMap:
        """The columns of a metric: one, or with ``side`` (the entry ``side_by_side``) one for each
        side.

        Raises UserError if no column is named, or one at both places.
        """
        key = f"metrics.{name}"
        kind = spec.get("kind")
        if kind and (fault := contradiction(kind, spec["unit"], spec["better"])):
            raise self._error(f"{key}.kind", fault)
        values: dict[Side, Values] = {}
        shared = {part: spec[part] for part in ("std", "count", "efficiency") if part in spec}
        if side is None:
            given = {part: spec[part] for part in ("column", "formula") if part in spec}
            values[Side(None)] = self._values(self._single(given, key), shared, key)
        else:
            for word in ("column", "formula"):
                if word in spec:
                    raise self._error(key, f"{word} is named under side_by_side.values instead")
            for value, columns in side["values"].items():
                where = f"side_by_side.values.{value}.{name}"
                for number, column in enumerate(_listed(columns.get(name))):
                    values[Side(str(value), number)] = self._side(column, shared, where)
            if not values:
                raise self._error(key, "no value under side_by_side names its column")
            if any(place.number for place in values) and any(v.efficiency for v in values.values()):
                raise self._error(key, "efficiency: not with a list of columns for a value")
        words = next(iter(values.values())).mean.what
        return MetricMap(
            name=name,
            unit=spec["unit"],
            better=spec["better"],
            scope=spec["scope"],
            doc=spec.get("doc", f"{words} of the published table"),
            ddof=spec.get("ddof", 1),
            kind=kind,
            values=values,
        )

    def _single(self, given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        if len(given) != 1:
            keys = ", ".join(given) or "none of them"
            raise self._error(key, f"name one of column, formula and value, not {keys}")
        return given

    def _side(self, spec: Any, shared: Mapping[str, Any], key: str) -> Values:
        if not isinstance(spec, Mapping):
            return self._values(spec, shared, key)
        given = {part: spec[part] for part in ("column", "formula") if part in spec}
        rest = {part: spec[part] for part in ("std", "count", "efficiency") if part in spec}
        return self._values(self._single(given, key), {**shared, **rest}, key)

    def _values(self, mean: Any, others: Mapping[str, Any], key: str) -> Values:
        sources = {part: self._source(spec, f"{key}.{part}") for part, spec in others.items()}
        if "count" in sources and "std" not in sources:
            raise self._error(f"{key}.count", "without std it says nothing of an interval")
        return Values(self._source(mean, key), **sources)

    def _source(self, spec: Any, key: str) -> Source:
        if isinstance(spec, str):
            spec = {"column": spec}
        elif not isinstance(spec, Mapping):
            spec = {"value": spec}
        if "column" in spec:
            column = self._column(spec["column"], key)
            return Source((column,), lambda row: row.cells[column], f"column {column}", self.table)
        if "value" in spec:
            constant = spec["value"]
            return Source((), lambda row: constant, f"constant {constant}", self.table)
        return self._formula(str(spec["formula"]), f"{self.path}: {key}")

    def _column(self, name: str, key: str) -> str:
        if name not in self.table.columns:
            raise self._error(
                key, f"no column {name!r}; the table has {', '.join(self.table.columns)}"
            )
        return name

    def _formula(self, text: str, where: str) -> Source:
        """A formula over the numbers of a row."""
        formula = Formula(text, where, self.aliases, "column")

        def value(row: Row) -> Cell:
            numbers: dict[str, Number] = {}
            for name, column in formula.reads.items():
                try:
                    number = self.table.number(row.cells[column])
                except ValueError as error:
                    raise RefusedRowError(f"column {column}: {error}") from None
                if number is None:
                    return None
                numbers[name] = number
            try:
                return formula(numbers)
            except ValueError as error:
                raise RefusedRowError(str(error)) from None

        return Source(tuple(formula.reads.values()), value, f"formula {text}", self.table)
