"""The keys of benchmark.yaml: their types, defaults and words."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr

from scalesweep.config.command_template import Both, Command
from scalesweep.config.log_patterns import Kind, Result
from scalesweep.config.models import Count, Expr, Flag, Model, Name, Pattern, Short, instead_of
from scalesweep.config.parameter import Parameter
from scalesweep.config.shapes import Memory, Mesh, Transformer
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import written

Point = Mapping[str, Any]


class Divides(Model):
    """Sizes that must divide without a rest."""

    divisor: Expr
    number: Expr

    @property
    def reason(self) -> str:
        """What is wrong where they do not divide."""
        return f"{self.number.text} is not a multiple of {self.divisor.text}"

    def fault(self, point: Point) -> str | None:
        """The same with the sizes of a point, and the nearest that would do."""
        by, value = self.divisor.number(point), self.number.number(point)
        if not by:
            return f"{self.divisor.text} is 0"
        if not value % by:
            return None
        low = value - value % by
        would = " or ".join(str(n) for n in (low, low + by) if n > 0)
        return (
            f"{value} ({self.number.text}) is not a multiple of {by} ({self.divisor.text}); "
            f"nearest valid: {would}"
        )


class Refuse(Model):
    """Values that do not go together."""

    when: Expr
    reason: str

    def fault(self, point: Point) -> str | None:
        """The reason with the values, where it holds at a point."""
        if not self.when(point):
            return None
        values = [f"{name} = {written(point[name])}" for name in sorted(self.when.names)]
        return f"{', '.join(values)}: {self.reason}"


class Workers(Model):
    """What runs scale over instead of ranks."""

    name: Name
    count: Expr
    """an expression, which reads `ranks`"""
    doc: str


class DefinedMetric(Model):
    """A metric."""

    definition: str
    """the sentence that the report prints"""
    compare: Literal["always", "same_training", "never"] | None = None
    """between which runs it is compared, default `always`: `same_training`, those that train to a
    target or on as many samples; `never`, as a loss or an accuracy that is not the main metric"""
    kind: Kind | None = None
    """`extensive`: a rate or time of work, which has an ideal, hence efficiency and predictions;
    `intensive`: a bandwidth of a link, a utilisation; `latency`. Default: by unit and name"""


class Work(Model):
    """Samples of an epoch."""

    scope: Literal["rank", "total"]
    samples: Expr


class DataSet(Model):
    """A data set that is made before runs."""

    called: Name | None = Field(None, alias="name")
    """begin of the data sets' folder names; default: the program's package or folder"""
    module: str = Field(alias="program")
    """a module of a package (`my_benchmark.stage`) or a file in the benchmark's folder"""
    version: Count = 1
    """raise it when the data change"""
    parameters: tuple[str, ...]
    """the parameters that identify the data set"""
    files: dict[str, Expr]
    """split -> number of files, an expression"""
    bytes_per_file: Expr
    """an expression"""

    _program: tuple[str, tuple[str, ...]] = PrivateAttr()

    @property
    def program(self) -> tuple[str, ...]:
        """What makes it: words after Python's."""
        return self._program[1]

    @property
    def name(self) -> str:
        """What its folders' names begin with."""
        return self.called or self._program[0]

    def folder(self, point: Point) -> str:
        """Folder name of the data set of a point: the same for every point that can share it."""
        spec = {"version": self.version, **self.spec(point)}
        return f"{self.name}-{digest_of(spec, 4)}"

    def spec(self, point: Point) -> dict[str, Any]:
        """The parameters of the data set of a point."""
        return {name: point[name] for name in self.parameters}

    def needed(self, point: Point) -> dict[str, int]:
        """Files of each split that a point reads."""
        return {split: int(count(point)) for split, count in self.files.items()}

    def find_program(self, path: Path) -> None:
        """Look for the program of the benchmark in ``path``: a file of its folder, or
        ``<package>.<module>`` beside it, which starts it (``__main__.py``). Raises UserError."""
        folder, (package, _, module) = path.parent, self.module.partition(".")
        file = (folder / self.module).resolve()
        if file.is_file():
            self._program = (file.parent.name, (str(file),))
        elif (folder.parent / package / f"{module}.py").is_file():
            self._program = (package, (str(folder.parent), self.module))
        else:
            raise UserError(
                f"{path}: data.program: no file {file}, and no module {self.module} of benchmarks"
            )


# Of a result that is empty the model says what to write.
_RESULTS: dict[Any, Any] = {"native": None, "wall_time": {"warmup": 0}, None: {}}
_Result = Annotated[Result | None, Short(_RESULTS.get, ("native", "wall_time", type(None)))]


class BenchmarkKeys(Model):
    """`benchmark.yaml` says what varies in a benchmark and how its program is started and read: in
    `workflow/benchmarks/NAME/`, or `benchmarks/NAME/` of your study
    ([add a benchmark](../guide/benchmarks.md), [external programs](../guide/external_programs.md)).
    Expressions are Python's arithmetic, comparison and `x if c else y` over parameter names."""

    name: Name
    """the folder's name"""
    version: Count
    """raise it when what is measured changes; it is part of every run id"""
    summary: str
    """one sentence for plan and report"""
    parameters: dict[Name, Parameter]
    """name -> parameter; `ranks` and `ranks_per_node` are required"""
    divides: tuple[Divides, ...] = ()
    """pairs that must divide without a rest: other points are left out, with the reason"""
    refuse: tuple[Refuse, ...] = ()
    """values that do not go together: points with them are left out, with the reason"""
    workers: Workers | None = None
    """what runs scale over instead of ranks, where a rank may have several devices"""
    mesh: Mesh | None = None
    """ranks along each axis; points whose product, without `ep`, is not `ranks` are left out"""
    transformer: Transformer | None = None
    """shape of a decoder-only transformer, for [FLOP](../methods/utilisation.md) and memory"""
    memory: Memory | None = None
    """what the [memory](../methods/memory.md) of a rank depends on besides these two"""
    defined: dict[Any, Annotated[DefinedMetric, instead_of("definition", str)]] = Field(
        {}, alias="metrics"
    )
    """name -> definition for the report; as a map also `compare` and `kind`"""
    parts: dict[Name, tuple[Pattern, ...]] = Field({})
    """part -> patterns of [functions](../guide/profiles.md#parts-of-a-program) in profiles"""
    noexchange: Flag = False
    """the program can train without the exchange of gradients (`profile: noexchange`)"""
    main_metric: Name | None = None
    """what figures and findings are about; default: `total_throughput`, else the first"""
    ceiling: Literal["compute", "memory", "network", "files", "copies"] | None = None
    """the main metric, in FLOP/s or bytes/s, is the most that a machine can do of this"""
    work: Work | None = None
    """samples of an epoch, of a rank or in all; checks weak and strong scaling"""
    data: DataSet | None = None
    """a data set that is made before runs"""
    env: dict[str, str] = Field({})
    """variables set from parameters before the program starts, unless null"""
    launch: Both | None = None
    """replaces the site's launcher command: `single` for one rank, `multi` for several"""
    framework: Literal["tensorflow", "torch"] | None = None
    """whose Python and launcher of the site start it; points are unsupported if it has none"""
    threads: Expr | None = None
    """threads of a rank, default 1; 0: as many as the framework chooses"""
    gpus: Expr | None = None
    """GPUs that a rank takes if there are any; more than a node has are refused"""
    command: Command
    """[words](../guide/external_programs.md#the-command), or `{when, words}`, that start a rank"""
    extract: _Result = Field(alias="result")
    """`native`: the program writes native.json; `wall_time`: the time from its start to its end; or
    a map of how what it prints is read: `reader`, `stamps`, `extract`"""
