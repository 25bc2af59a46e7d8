"""What the columns of a published table mean: a YAML file, written by hand or from a draft."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from scalesweep.analysis.flop_conventions import is_share, unnamed_convention
from scalesweep.analysis.metrics import contradiction
from scalesweep.config.derived_parameters import in_order
from scalesweep.config.formula import Formula, Number, by_alias
from scalesweep.config.log_patterns import RESERVED
from scalesweep.config.memory import load_memory
from scalesweep.config.mesh import Mesh, load_mesh
from scalesweep.config.reserved_names import check_metrics, check_parameter, check_varying
from scalesweep.config.transformer import Transformer, load_transformer
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import Cell, Row, Table, read_table

# Ranks on a node: where a map says it, prediction knows the borders of nodes.
PER_NODE = "ranks_per_node"

Checked = TypeVar("Checked", bound=BaseModel)
Plain = bool | int | float | str
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
_COLUMN = Field(default=None, description="a column")
_FORMULA = Field(
    default=None,
    description="arithmetic and comparisons over columns; what is no letter, digit or `_` in a "
    "column's name is written `_`",
)
_DOC = Field(default="", description="the meaning")


class RefusedRowError(ValueError):
    """Why a row (or one of its values side by side) is not imported."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class From(_Model):
    """Where a value comes from: one of a column, a formula, or a constant."""

    column: str | None = _COLUMN
    formula: str | None = _FORMULA
    value: Plain | None = Field(default=None, description="a constant that no column has")

    @property
    def named(self) -> list[str]:
        """Which of these it has."""
        words = ("column", "formula", "value")
        return [word for word in words if getattr(self, word) is not None]


class Parameter(From):
    """A parameter of the runs."""

    derive: str | None = Field(
        default=None,
        description="an expression over the map's parameters; alone, or beside what the table "
        "prints: rows that contradict it are refused. The parameter tells no points apart",
    )
    type: Literal["integer", "number", "string", "boolean"] | None = Field(
        default=None, description="of its values"
    )
    unit: str | None = Field(default=None, description="shown with every value")
    doc: str = _DOC
    workload: bool = Field(
        default=False, description="it says what is computed (a model): values are never ranked"
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if len(self.named) != 1 and (self.named or self.derive is None):
            raise ValueError("name one of column, formula, value and derive")
        return self


class Metric(From):
    """A metric of the runs."""

    unit: str = Field(min_length=1, description='`"1"` for a plain number')
    better: Literal["higher", "lower"] = Field(description="which direction is better")
    scope: Literal["rank", "total"] = Field(
        description="`total`: all ranks together; `rank`: one of them"
    )
    kind: Literal["extensive", "intensive", "latency"] | None = Field(
        default=None, description="where name and unit would say otherwise"
    )
    doc: str = _DOC


class SideBySide(_Model):
    """Columns of one metric that are values of one parameter."""

    parameter: Name
    values: dict[Plain, dict[Name, str | From | list[str | From]]] = Field(min_length=1)
    unit: str | None = None
    doc: str = "Which columns of the table."
    workload: bool = False


class Failed(_Model):
    """Words of a column that say that a run failed, and of what."""

    column: str
    values: dict[Plain, Cause] | list[Plain] = Field(min_length=1)

    @property
    def causes(self) -> dict[str, str]:
        """Cause by word."""
        values = self.values
        causes = values if isinstance(values, dict) else dict.fromkeys(values, Cause.NOT_STATED)
        return {str(word).strip().lower(): str(cause) for word, cause in causes.items()}


class Form(_Model):
    """How a table is written, where that cannot be found out."""

    separator: str | None = Field(default=None, min_length=1)
    decimal: Literal[".", ","] | None = None
    thousands: Literal[".", ",", " ", "'", "_"] | None = None

    @model_validator(mode="after")
    def _unlike(self) -> Self:
        if self.thousands is not None and self.thousands == self.decimal:
            raise ValueError(f"thousands: {self.thousands!r} is the decimal mark too")
        return self


class Work(_Model):
    """The work of a step or epoch."""

    scope: Literal["rank", "total"]
    samples: str


class MapFile(_Model):
    """A map says what the columns of a table mean: `scalesweep import TABLE --map FILE`."""

    name: Name = Field(description="the benchmark that the runs belong to; part of their ids")
    summary: str = Field(default="", description="one sentence for the report")
    source: str = Field(default="", description="where it was published; kept in every record")
    table: Form = Field(
        default=Form(),
        description="`{separator, decimal, thousands}`: the marks, where they cannot be found out",
    )
    parameters: dict[Name, Parameter] = Field(
        description="name -> where it comes from; `ranks` is required, `ranks_per_node` tells "
        "predictions where a node ends"
    )
    metrics: dict[Name, Metric] = Field(description="name -> where it comes from", min_length=1)
    side_by_side: SideBySide | None = Field(
        default=None,
        description="`{parameter, values: {VALUE: {METRIC: COLUMN}}, unit, doc, workload}`: "
        "columns of one metric as values of one parameter; a list of columns: repeats",
    )
    failed: Failed | None = Field(
        default=None,
        description="`{column, values}`: words of runs that failed, as a list or with the "
        "[cause](causes.md) of each: `{OOM: GPU_OUT_OF_MEMORY}`. `OOM`, `failed` and the like in "
        "the cell of a metric are known",
    )
    ignore: list[str] = Field(default=[], description="columns that are left out on purpose")
    scale: Name = Field(default="ranks", description="what `ranks` counts: gpus, nodes, ...")
    scaling: Literal["weak", "strong", "model", "none"] | None = Field(
        default=None, description="as the source states it; without it by `work`"
    )
    work: Work | None = Field(default=None, description="`{scope, samples}`: as in benchmark.yaml")
    mesh: list[Any] | None = Field(default=None, description="as in benchmark.yaml")
    transformer: dict[str, Any] | None = Field(default=None, description="as in benchmark.yaml")
    memory: dict[str, Any] | None = Field(default=None, description="as in benchmark.yaml")


class Side(NamedTuple):
    """Which of the columns side by side: the parameter's value, None without any, and the place
    among the columns of one value, which are repeats."""

    value: str | None
    number: int = 0


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
    metrics: Mapping[str, Mapping[Side, Source]]
    derive: Mapping[str, Expression]
    mesh: Mesh | None
    transformer: Transformer | None
    declared: Mapping[str, Any]

    @property
    def sides(self) -> list[Side]:
        """What stands side by side, in the order of the map; a single one without any."""
        return list(dict.fromkeys(side for values in self.metrics.values() for side in values))

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the map reads or leaves out on purpose."""
        sources = [*self.parameters.values()]
        for values in self.metrics.values():
            sources += values.values()
        failed = [self.file.failed.column] if self.file.failed else []
        return frozenset(name for s in sources for name in s.columns).union(
            self.file.ignore, failed
        )


def load_map(path: Path, source: Path) -> TableMap:
    """Read a map and the table that it describes; what it leaves out is as a draft has it.

    Raises UserError naming the map, the key and what is allowed, or what is wrong with the table.
    """
    content = load_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a map of keys")
    form = checked(Form, content.get("table") or {}, f"{path}: table")
    table = read_table(source, form.separator, form.decimal, form.thousands)
    missing = {"name", "parameters", "metrics", "scale"} - content.keys()
    if {"parameters", "metrics"} <= missing:
        missing.add("side_by_side")
    drafted = draft_of(table).content if missing - {"scale"} else {}
    content = {key: drafted[key] for key in drafted if key in missing} | content
    return _Reader(path, table).read(checked(MapFile, content, str(path)))


def checked(model: type[Checked], content: Any, where: str) -> Checked:
    """The content as a model. Raises UserError naming the key and what is allowed."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"] if not str(part)[:1].isupper()]
        words = str(first["msg"]).removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            known = _keys_at(model, place[:-1])
            words = f"unknown key; {choices(place[-1], known)}" if known else "unknown key"
        elif first["type"] not in ("missing", "value_error"):
            words = f"{str(first['input'])[:40]!r}: {words}"
        raise UserError(f"{where}: {'.'.join(place)}: {words}") from None


def _keys_at(model: type[BaseModel], place: list[str]) -> list[str]:
    """The keys that a map may have at a place; empty if that is not one of a model."""
    inner: dict[str, type[BaseModel]] = {
        "parameters": Parameter, "metrics": Metric, "side_by_side": SideBySide,
        "failed": Failed, "table": Form, "work": Work,
    }  # fmt: skip
    there = inner.get(place[0]) if place else model
    return list(there.model_fields) if there else []


class _Reader:
    """Makes a ``TableMap`` of a file that is a map."""

    def __init__(self, path: Path, table: Table) -> None:
        self.path = path
        self.table = table
        self.aliases = by_alias(table.columns)

    def read(self, file: MapFile) -> TableMap:
        """The map of a table. Raises UserError that names file and key."""
        side = file.side_by_side
        names = [*file.parameters, *([side.parameter] if side else [])]
        self._check(file, names)
        texts = {name: it.derive for name, it in file.parameters.items() if it.derive}
        derive = {
            name: Expression(text, f"{self.path}: parameters.{name}.derive").check_names(set(names))
            for name, text in texts.items()
        }
        for key in [*file.ignore, *([file.failed.column] if file.failed else [])]:
            self._column(key, "ignore" if key in file.ignore else "failed.column")
        known, at = dict.fromkeys(names), f"{self.path}: "
        mesh = load_mesh(file.mesh, known, f"{at}mesh") if file.mesh else None
        model = file.transformer and load_transformer(file.transformer, known, f"{at}transformer")
        memory = file.memory and load_memory(file.memory, known, f"{at}memory")
        declared = {
            "mesh": mesh and [{"role": r, "ranks": text} for r, text in mesh.texts.items()],
            "transformer": model and model.texts,
            "memory": memory and memory.declared,
        }
        return TableMap(
            path=self.path,
            file=file,
            table=self.table,
            parameters={
                name: self._source(it, f"parameters.{name}")
                for name, it in file.parameters.items()
                if it.named
            },
            metrics={name: dict(self._values(name, it, side)) for name, it in file.metrics.items()},
            derive={name: derive[name] for name in in_order(derive, f"{self.path}: parameters")},
            mesh=mesh,
            transformer=model or None,
            declared={key: of for key, of in declared.items() if of},
        )

    def _error(self, key: str, what: str) -> UserError:
        return UserError(f"{self.path}: {key}: {what}")

    def _check(self, file: MapFile, names: list[str]) -> None:
        """Raise UserError if a parameter or a metric has a name that is reserved or used twice."""
        side = file.side_by_side
        if "ranks" not in names:
            raise self._error("parameters", "'ranks' is missing: name the column that counts them")
        for name in (*names, file.scale):
            check_parameter(name, f"{self.path}: parameters.{name}")
            check_varying([name], f"{self.path}: parameters.{name}")
            if name in file.metrics or (file.scale != "ranks" and file.scale in names):
                raise self._error("scale" if name == file.scale else f"metrics.{name}",
                                  f"{name!r} is also a parameter")  # fmt: skip
        if side and side.parameter in file.parameters:
            raise self._error("side_by_side.parameter", f"{side.parameter!r} is a parameter too")
        for value, columns in side.values.items() if side else ():
            if unknown := sorted(columns.keys() - file.metrics.keys()):
                what = f"{unknown[0]!r} is no metric; {choices(unknown[0], file.metrics)}"
                raise self._error(f"side_by_side.values.{value}", what)
        for name in ("ranks", PER_NODE):
            if name in file.parameters and file.parameters[name].derive:
                raise self._error(f"parameters.{name}", "cannot be derived; derive the others")
        if file.work:
            expression = Expression(file.work.samples, f"{self.path}: work.samples")
            expression.check_names(set(names))
        self._check_metrics(file)

    def _check_metrics(self, file: MapFile) -> None:
        check_metrics(file.metrics, self.path, "metrics")
        for name, metric in file.metrics.items():
            kind = metric.kind
            if kind and (why := contradiction(kind, metric.unit, metric.better)):
                raise self._error(f"metrics.{name}.kind", why)
            if fault := unnamed_convention(name):
                raise self._error(f"metrics.{name}", fault)
            if is_share(name) and metric.unit != "1":
                words = 'is "1" for a share of a peak; divide percentages (formula: MFU / 100)'
                raise self._error(f"metrics.{name}.unit", words)
            if name in RESERVED:
                raise self._error(f"metrics.{name}", "the name is reserved; choose another")

    def _values(
        self, name: str, metric: Metric, side: SideBySide | None
    ) -> Iterator[tuple[Side, Source]]:
        """The sources of a metric: one, or one for each side."""
        key = f"metrics.{name}"
        if side is None:
            yield Side(None), self._source(metric, key)
            return
        if metric.named:
            raise self._error(key, f"{metric.named[0]} is named under side_by_side.values instead")
        for value, columns in side.values.items():
            given = columns.get(name, [])
            for number, spec in enumerate(given if isinstance(given, list) else [given]):
                where = f"side_by_side.values.{value}.{name}"
                yield Side(str(value), number), self._source(spec, where)

    def _source(self, given: str | From, key: str) -> Source:
        spec = From(column=given) if isinstance(given, str) else given
        if len(spec.named) != 1:
            words = ", ".join(spec.named) or "none of them"
            raise self._error(key, f"name one of column, formula and value, not {words}")
        if spec.column is not None:
            return self._of_column(self._column(spec.column, key))
        if spec.formula is not None:
            return self._formula(spec.formula, f"{self.path}: {key}")
        constant = spec.value
        return Source(f"constant {constant}", (), lambda row: constant, self.table)

    def _column(self, name: str, key: str) -> str:
        if name not in self.table.columns:
            raise self._error(
                key, f"no column {name!r}; the table has {', '.join(self.table.columns)}"
            )
        return name

    def _of_column(self, name: str) -> Source:
        return Source(f"column {name}", (name,), lambda row: row.cells[name], self.table)

    def _formula(self, text: str, where: str) -> Source:
        """A formula over the numbers of a row."""
        formula = Formula(text, where, self.aliases, "column")
        reads = {name: self._of_column(column) for name, column in formula.reads.items()}

        def value(row: Row) -> Cell:
            numbers = {name: source.number(row) for name, source in reads.items()}
            known = {name: number for name, number in numbers.items() if number is not None}
            if len(known) < len(numbers):
                return None
            try:
                return formula(known)
            except ValueError as error:
                raise RefusedRowError(str(error)) from None

        return Source(f"formula {text}", tuple(formula.reads.values()), value, self.table)
