"""What the columns of a published table mean: a YAML file, written by hand or from a draft."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, model_validator

from scalesweep.analysis.flop_conventions import is_share, unnamed_convention
from scalesweep.analysis.metrics import contradiction
from scalesweep.config.derived_parameters import in_order
from scalesweep.config.log_patterns import RESERVED
from scalesweep.config.models import FILLED, Model, Name, either, one_of, read
from scalesweep.config.parameter import check_metrics, check_parameter, check_varying
from scalesweep.config.shapes import Mesh, Transformer, load_shapes
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression, Formula, Number, by_alias
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import Cell, Row, Table, read_table

# Ranks on a node: where a map says it, prediction knows the borders of nodes.
PER_NODE = "ranks_per_node"
Plain = bool | int | float | str


class RefusedRowError(ValueError):
    """Why a row (or one of its values side by side) is not imported."""


class From(Model):
    """Where a value comes from: one of a column, a formula, or a constant."""

    column: str | None = Field(default=None, description="a column")
    formula: str | None = Field(
        default=None,
        description="arithmetic and comparisons over columns; what is no letter, digit or `_` in a "
        "column's name is written `_`",
    )
    value: Plain | None = Field(default=None, description="a constant that no column has")

    @property
    def named(self) -> list[str]:
        """Which of these it has."""
        return [word for word in ("column", "formula", "value") if getattr(self, word) is not None]


class Parameter(From):
    """A parameter of the runs."""

    derive: str | None = None
    """an expression over the map's parameters; alone, or beside what the table prints: rows that
    contradict it are refused. The parameter tells no points apart"""
    type: Literal["integer", "number", "string", "boolean"] | None = None
    """of its values"""
    unit: str | None = None
    """shown with every value"""
    doc: str = ""
    """the meaning"""
    workload: bool = False
    """it says what is computed (a model): values are never ranked"""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if len(self.named) != 1 and (self.named or self.derive is None):
            raise ValueError("name one of column, formula, value and derive")
        return self


class Metric(From):
    """A metric of the runs."""

    unit: Annotated[str, Field(min_length=1)]
    """`"1"` for a plain number"""
    better: Literal["higher", "lower"]
    """which direction is better"""
    scope: Literal["rank", "total"]
    """`total`: all ranks together; `rank`: one of them"""
    kind: Literal["extensive", "intensive", "latency"] | None = None
    """where name and unit would say otherwise"""
    doc: str = ""
    """the meaning"""


class SideBySide(Model):
    """Columns of one metric that are values of one parameter."""

    parameter: Name
    values: Annotated[dict[Plain, dict[Name, str | list[str]]], FILLED]
    unit: str | None = None
    doc: str = "Which columns of the table."
    workload: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that it names."""
        every = [it for metrics in self.values.values() for it in metrics.values()]
        return [name for it in every for name in ([it] if isinstance(it, str) else it)]


class Failed(Model):
    """Words of a column that say that a run failed, and of what."""

    column: str
    values: Annotated[
        Annotated[dict[Plain, Annotated[str, one_of(Cause)]], FILLED, Tag("#map")]
        | Annotated[list[Plain], FILLED, Tag("#list")],
        either("a list of words, or a map of words to causes"),
    ]

    @property
    def causes(self) -> dict[str, str]:
        """Cause by word."""
        values = self.values
        causes = values if isinstance(values, dict) else dict.fromkeys(values, Cause.NOT_STATED)
        return {str(word).strip().lower(): str(cause) for word, cause in causes.items()}


class Form(Model):
    """How a table is written, where that cannot be found out."""

    separator: Annotated[str, Field(min_length=1)] | None = None
    decimal: Literal[".", ","] | None = None
    thousands: Literal[".", ",", " ", "'", "_"] | None = None


class Work(Model):
    """The work of a step or epoch."""

    scope: Literal["rank", "total"]
    samples: str


class MapFile(Model):
    """A map says what the columns of a table mean: `scalesweep import TABLE --map FILE`."""

    name: Name
    """the benchmark that the runs belong to; part of their ids"""
    summary: str = ""
    """one sentence for the report"""
    source: str = ""
    """where it was published; kept in every record"""
    table: Form = Form()
    """`{separator, decimal, thousands}`: the marks, where they cannot be found out"""
    parameters: dict[Name, Parameter]
    """name -> where it comes from; `ranks` is required, `ranks_per_node` tells predictions where a
    node ends"""
    metrics: Annotated[dict[Name, Metric], FILLED]
    """name -> where it comes from"""
    side_by_side: SideBySide | None = None
    """`{parameter, values: {VALUE: {METRIC: COLUMN}}, unit, doc, workload}`: columns of one metric
    as values of one parameter; a list of columns: repeats"""
    failed: Failed | None = None
    """`{column, values}`: words of runs that failed, as a list or with the [cause](causes.md) of
    each: `{OOM: GPU_OUT_OF_MEMORY}`. `OOM`, `failed` and the like in the cell of a metric are
    known"""
    ignore: tuple[str, ...] = ()
    """columns that are left out on purpose"""
    scale: Name = "ranks"
    """what `ranks` counts: gpus, nodes, ..."""
    scaling: Literal["weak", "strong", "model", "none"] | None = None
    """as the source states it; without it by `work`"""
    work: Work | None = None
    """`{scope, samples}`: as in benchmark.yaml"""
    mesh: dict[str, Any] | None = None
    """as in benchmark.yaml"""
    transformer: dict[str, Any] | None = None
    """as in benchmark.yaml"""
    memory: dict[str, Any] | None = None
    """as in benchmark.yaml"""


@dataclass(frozen=True)
class Source:
    """Where a value comes from: ``columns`` are those it reads, ``text`` gives it as it is
    written, None where a cell is empty. Raises RefusedRowError."""

    what: str
    columns: tuple[str, ...]
    text: Callable[[Row], Cell]
    table: Table

    def number(self, row: Row) -> Number | None:
        """The value as a number. Raises RefusedRowError."""
        try:
            return self.table.number(self.text(row))
        except ValueError as error:
            raise RefusedRowError(f"{self.what}: {error}") from None


@dataclass(frozen=True)
class TableMap:
    """A map that fits its table: sources of every parameter and metric by their names.

    ``derive``: expressions of parameters that follow from others, each after those it reads.
    """

    path: Path
    file: MapFile
    table: Table
    parameters: Mapping[str, Source]
    metrics: Mapping[str, Source]
    derive: Mapping[str, Expression]
    mesh: Mesh | None
    transformer: Transformer | None
    declared: Mapping[str, Any]

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the map reads or leaves out on purpose."""
        sources = [*self.parameters.values(), *self.metrics.values()]
        failed = [self.file.failed.column] if self.file.failed else []
        beside = self.file.side_by_side.columns if self.file.side_by_side else []
        read = {name for source in sources for name in source.columns}
        return frozenset(read.union(self.file.ignore, failed, beside))


def load_map(path: Path, source: Path) -> TableMap:
    """Read a map and the table that it describes; what it leaves out is as a draft has it.

    Raises UserError naming the map, the key and what is allowed, or what is wrong with the table.
    """
    content = load_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a map of keys")
    form = read(Form, content.get("table") or {}, path)
    table = read_table(source, form.separator, form.decimal, form.thousands)
    missing = {"name", "parameters", "metrics", "scale"} - content.keys()
    if {"parameters", "metrics"} <= missing:
        missing.add("side_by_side")
    drafted = draft_of(table).content if missing - {"scale"} else {}
    content = {key: drafted[key] for key in drafted if key in missing} | content
    file = read(MapFile, content, path)
    side = file.side_by_side
    names = [*file.parameters, *([side.parameter] if side else [])]
    _check(path, file, names, table.columns)
    _check_metrics(path, file)
    if side:
        file, table = _melted(file, table, side)
    texts = {name: it.derive for name, it in file.parameters.items() if it.derive}
    derive = {
        name: Expression(text, f"{path}: parameters.{name}.derive").check_names(set(names))
        for name, text in texts.items()
    }
    stated = {key: getattr(file, key) for key in ("mesh", "transformer", "memory")}
    declared = {key: of for key, of in stated.items() if of}
    shapes = load_shapes(declared, names, path)
    return TableMap(
        path=path,
        file=file,
        table=table,
        parameters={
            name: _source(path, table, it, f"parameters.{name}")
            for name, it in file.parameters.items()
            if it.named
        },
        metrics={
            name: _source(path, table, it, f"metrics.{name}") for name, it in file.metrics.items()
        },
        derive={name: derive[name] for name in in_order(derive, f"{path}: parameters")},
        mesh=shapes.mesh,
        transformer=shapes.transformer,
        declared=declared,
    )


def _check(path: Path, file: MapFile, names: list[str], columns: Iterable[str]) -> None:
    """Raise UserError for names that are reserved, unknown or used twice."""
    where = f"{path}: "
    if "ranks" not in names:
        raise UserError(f"{where}parameters: 'ranks' is missing: name the column that counts them")
    for name in (*names, file.scale):
        check_parameter(name, f"{where}parameters.{name}")
        check_varying([name], f"{where}parameters.{name}")
        twice = name in file.metrics or names.count(name) > 1
        if twice or (name == file.scale != "ranks" and name in names):
            raise UserError(f"{where}parameters.{name}: the name is used twice")
    for name in {"ranks", PER_NODE} & file.parameters.keys():
        if file.parameters[name].derive:
            raise UserError(f"{where}parameters.{name}: cannot be derived; derive the others")
    if side := file.side_by_side:
        for value, metrics in side.values.items():
            if unknown := sorted(metrics.keys() - file.metrics.keys()):
                words = f"{unknown[0]!r} is no metric; {choices(unknown[0], file.metrics)}"
                raise UserError(f"{where}side_by_side.values.{value}: {words}")
        for name in side.columns:
            _known(name, columns, f"{where}side_by_side.values")
    if file.work:
        Expression(file.work.samples, f"{where}work.samples").check_names(set(names))
    for name in file.ignore:
        _known(name, columns, f"{where}ignore")
    if file.failed:
        _known(file.failed.column, columns, f"{where}failed.column")


def _check_metrics(path: Path, file: MapFile) -> None:
    check_metrics(file.metrics, f"{path}: metrics")
    for name, metric in file.metrics.items():
        named = len(metric.named)
        faults = {
            ".kind": metric.kind and contradiction(metric.kind, metric.unit, metric.better),
            "": unnamed_convention(name),
            ".unit": is_share(name)
            and metric.unit != "1"
            and 'is "1" for a share of a peak; divide percentages (formula: MFU / 100)',
        }
        if name in RESERVED:
            faults[""] = "the name is reserved; choose another"
        if file.side_by_side and named:
            faults[""] = f"{metric.named[0]} is named under side_by_side.values instead"
        elif not file.side_by_side and named != 1:
            faults[""] = "name one of column, formula and value"
        for key, fault in faults.items():
            if fault:
                raise UserError(f"{path}: metrics.{name}{key}: {fault}")


def _known(name: str, columns: Iterable[str], where: str) -> str:
    if name not in columns:
        raise UserError(f"{where}: no column {name!r}; the table has {', '.join(columns)}")
    return name


def _melted(file: MapFile, table: Table, side: SideBySide) -> tuple[MapFile, Table]:
    """The table with a row for each of the values side by side, and its map: the parameter and the
    metrics are columns of their own."""
    rows: list[Row] = []
    for row in table.rows:
        for number, (value, given) in enumerate(side.values.items()):
            columns = {name: [it] if isinstance(it, str) else it for name, it in given.items()}
            for place in range(max(map(len, columns.values()))):
                said = {n: row.cells[it[place]] for n, it in columns.items() if place < len(it)}
                cells = {**row.cells, **dict.fromkeys(file.metrics), **said}
                cells[side.parameter] = str(value)
                rows.append(Row(row.file, row.line, cells, (number, place, str(value))))
    parameter = Parameter(
        column=side.parameter, unit=side.unit, doc=side.doc, workload=side.workload
    )
    parameters = {**file.parameters, side.parameter: parameter}
    metrics = {name: it.model_copy(update={"column": name}) for name, it in file.metrics.items()}
    names = (*table.columns, side.parameter, *metrics)
    return (
        file.model_copy(update={"parameters": parameters, "metrics": metrics}),
        replace(table, columns=names, rows=tuple(rows)),
    )


def _source(path: Path, table: Table, given: From, key: str) -> Source:
    where = f"{path}: {key}"
    if (column := given.column) is not None:
        _known(column, table.columns, where)
        return Source(f"column {column}", (column,), lambda row: row.cells[column], table)
    if given.formula is None:
        return Source(f"constant {given.value}", (), lambda row: given.value, table)
    formula = Formula(given.formula, where, by_alias(table.columns), "column")

    def value(row: Row) -> Cell:
        numbers = {}
        for name, column in formula.reads.items():
            try:
                numbers[name] = table.number(row.cells[column])
            except ValueError as error:
                raise RefusedRowError(f"column {column}: {error}") from None
        known = {name: number for name, number in numbers.items() if number is not None}
        try:
            return formula(known) if len(known) == len(numbers) else None
        except ValueError as error:
            raise RefusedRowError(str(error)) from None

    return Source(f"formula {given.formula}", tuple(formula.reads.values()), value, table)
