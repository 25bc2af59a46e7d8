"""The keys of an experiment: their types, defaults and words."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag, model_validator

from scalesweep.config.models import (
    FILLED,
    LISTED,
    UNEQUAL,
    Count,
    Expr,
    Minutes,
    Model,
    Name,
    Positive,
    Real,
    Share,
    Text,
    Whole,
    WrongKeyError,
    either,
    instead_of,
    matching,
    one_of,
)
from scalesweep.core.profilers import KINDS, NONE

MAX_REPEATS = 10_000
_FEATURES = "a Slurm feature expression, without spaces"
_LIMIT = r"\s*efficiency\s*<\s*(\d+\.?\d*|\.\d+)\s*"
Values = dict[Any, Any]
_Entries = tuple[Annotated[Values, FILLED], ...]
Alone = Literal[1]
_Formula = Annotated[
    Annotated[Text, Tag("#text")] | Annotated[dict[str, Text], FILLED, Tag("#map")],
    either("a text, or with several benchmarks a map of benchmarks to texts"),
]


class RangeKeys(Model):
    """Values from one number to another."""

    FORM: ClassVar[str] = "a list ([value, value]), or {from, to, factor} or {from, to, step}"
    first: Real = Field(alias="from")
    last: Real = Field(alias="to")
    factor: Annotated[Real, Field(gt=1)] = None
    step: Annotated[Real, Field(gt=0)] = None

    @model_validator(mode="after")
    def _fits_together(self) -> "RangeKeys":
        if (self.factor is None) == (self.step is None):
            raise ValueError("a range must be {from, to, factor} or {from, to, step}")
        return self


class Exclusion(Model):
    """Points that are left out."""

    FORM: ClassVar[str] = "an expression, or {when: expression, reason: text}"
    when: Expr
    reason: str = ""


class Requirement(Model):
    """What every point must keep."""

    FORM: ClassVar[str] = "an expression, or {that: expression, reason: text}"
    that: Expr
    reason: str = ""


class DerivedKeys(Model):
    """A parameter that is worked out."""

    FORM: ClassVar[str] = "an expression, a number, or {value, type, unit, doc}"
    value: Expr
    """an expression over parameters, and other names under `derive`"""
    type: Literal["integer", "number", "string", "boolean"] = "integer"
    """of a name that is no parameter of the benchmark: what its values are"""
    unit: str | None = None
    """of a name that is no parameter of the benchmark"""
    doc: str = ""
    """of a name that is no parameter of the benchmark: what it is"""


class MetricKeys(Model):
    """A metric that is worked out for each run."""

    formula: _Formula
    """arithmetic over metrics, numeric parameters and `wall_s`, `hosts`, `samples`, `bytes` of a
    run; of metrics of epochs those after the first, with `_init` behind the name the first; with
    several benchmarks also benchmark -> formula"""
    unit: Annotated[Text, Field(max_length=40)]
    """`"1"` for a plain number"""
    better: Literal["higher", "lower"] | None = None
    """which direction is better; times and joules: lower, rates and what is per joule: higher, of
    others it must be stated"""
    scope: Literal["rank", "total"] = "total"
    """`total`: all ranks together; `rank`: one of them"""
    doc: str = ""
    """the meaning, for the report"""


class PredictKeys(Model):
    """Counts that are to be predicted."""

    ranks: Annotated[tuple[Annotated[Count, Field(le=10_000_000)], ...], FILLED, UNEQUAL]
    """the counts to predict"""


class StopRule(Model):
    """When larger counts are not worth their node-hours."""

    when: Annotated[str, matching(_LIMIT, "efficiency, < and a number: 'efficiency < 0.3'")]
    """`efficiency`, `<` and a number, such as `"efficiency < 0.3"`"""

    @property
    def limit(self) -> float:
        """The limit."""
        return float(self.when.partition("<")[2])


class UntilPrecise(Model):
    """Repeats until the mean of a metric is precise."""

    least: Annotated[Count, Field(ge=3)] = Field(alias="min")
    """repeats of every point, before any interval is checked"""
    most: Annotated[Count, Field(ge=3, le=MAX_REPEATS)] = Field(alias="max")
    """repeats of a point at most"""
    until: Share
    """half width of the 95 % interval over the mean that is precise enough, such as `2 %`"""
    metric: str | None = None
    """the metric that decides; default: the one that findings are about"""

    @model_validator(mode="after")
    def _fits_together(self) -> "UntilPrecise":
        if self.most < self.least:
            raise WrongKeyError("max", f"must be {self.least} (min) or more, not {self.most}")
        return self


_Numbers = Annotated[tuple[Annotated[Whole, Field(ge=0)], ...], UNEQUAL]
_Repeats = Annotated[
    Annotated[Count, Field(le=MAX_REPEATS), Tag("#number")]
    | Annotated[tuple[_Numbers, ...], FILLED, Tag("#list")]
    | Annotated[UntilPrecise, Tag("#map")],
    either("a whole number, or {min, max, until}"),
]
_Axis = Annotated[
    Annotated[RangeKeys, Tag("#map")] | Annotated[list[Any], FILLED, Tag("#list")],
    either(RangeKeys.FORM),
]


class ExperimentKeys(Model):
    """An experiment."""

    benchmarks: Annotated[tuple[Name, ...], LISTED, FILLED, UNEQUAL, Field(alias="benchmark")]
    """a folder in `workflow/benchmarks/`, or in `benchmarks/` of your study. A list of them is
    compared in one report ([several benchmarks](../guide/campaigns.md#several-benchmarks))"""
    description: str = ""
    """shown in the report"""
    scaling: Literal["weak", "strong", "model", "none"] = "none"
    """weak: the work per rank must be the same at every rank count; strong: the work in all;
    model: the model grows with the ranks
    ([kinds](../guide/campaigns.md#kinds-of-scaling)). A campaign that contradicts this is refused
    """
    scale: Name | None = None
    """the integer parameter that the experiment scales over, such as `threads`; default: ranks, or
    the benchmark's `workers`"""
    axes: dict[Any, _Axis] = Field({})
    """parameter -> its values (a list, `{from, to, factor}` or `{from, to, step}`); the grid is
    their product. `{from: 1, to: 1024, factor: 2}` includes 1024. `env.NAME` is an environment
    variable of the runs, a text, or null to leave it unchanged; so it is under `linked`, `fixed`
    and `extra`"""
    linked: Annotated[_Entries, FILLED] | None = None
    """each entry sets several parameters at once; multiplied with the axes"""
    fixed: Values = Field({})
    """parameters with one value; parameters that are not mentioned have the benchmark's default"""
    fixed_of: dict[str, Values] = Field({})
    """with several benchmarks: benchmark -> parameters with one value in its runs alone"""
    exclude: tuple[Annotated[Exclusion, instead_of("when", str)], ...] = ()
    """expressions over parameters, such as `"ranks > 256 and batch_size == 1"`, or
    `{when, reason}`; excluded points are counted with their reason"""
    derive: dict[Name, Annotated[DerivedKeys, instead_of("value", str, int, float)]] = Field({})
    """name -> an expression over parameters:
    [derived parameters](../guide/campaigns.md#derived-parameters). A value that a parameter cannot
    have, such as a fraction where it takes whole numbers, excludes the point"""
    require: tuple[Annotated[Requirement, instead_of("that", str)], ...] = ()
    """expressions over parameters that every point must keep, such as `"tp <= ranks_per_node"`, or
    `{that, reason}`; points that do not are excluded, and counted with the reason"""
    extra: _Entries = ()
    """single points in addition to the grid; each sets every parameter that takes several values"""
    main_metric: str | None = None
    """the metric that figures and findings are about: one of the benchmark's `metrics`, or of the
    experiment's; default: the benchmark's"""
    metrics: dict[Name, MetricKeys] = Field({})
    """name -> a metric that is worked out for each run
    ([derived metrics](../guide/campaigns.md#derived-metrics)); no part of run ids"""
    predict: PredictKeys | None = None
    """predict these rank (or device) counts; needs `scaling: weak` or `strong`
    ([prediction](../guide/prediction.md))"""
    stop: StopRule | None = None
    """leave out larger counts of a series once a smaller one is clearly beyond a limit
    ([stop](../guide/campaigns.md#stop-at-a-count))"""
    profile: Annotated[str, one_of((NONE, *KINDS))] = NONE
    """run each point once more under this profiler, apart from its measured runs
    ([profiles](../guide/profiles.md)); `noexchange`: each run once more without the exchange of
    gradients
    ([run without exchange](../guide/time_breakdown.md#without-time-stamps-a-run-without-exchange))
    """
    repeats: _Repeats = 1
    """runs of every point; intervals need at least 2. As a map:
    [until a point is precise](../guide/campaigns.md#repeats-until-a-point-is-precise). Campaigns of
    imported runs have a list: for each entry of `linked`, or combination of `axes`, the numbers of
    its repeats (`[]`: no such point)"""
    concurrent_runs: Alone | None = None
    """1: no run of this experiment starts while another of its runs lasts"""
    time_limit_minutes: Minutes | None = None
    """a run that takes longer is ended: TIMEOUT, or HANG if no rank made progress during its last
    quarter; default: the site's"""
    expected_minutes: Minutes | None = None
    """wall time of one run, until runs have finished"""
    memory_gib_per_rank: Positive | None = None
    """GiB that a rank may use; requested from Slurm. Default: the share of a node's memory"""
    constraint: Annotated[str, matching(r"(?!\+$)\S+", _FEATURES)] | None = None
    """Slurm feature expression, without spaces, that the nodes of a run must meet; may name
    parameters in braces (`"knl&{memory_mode}"`); replaces the site's. With `+` in front
    (`"+{memory_mode}"`) it is required in addition to the site's"""

    @property
    def benchmark(self) -> str:
        """The benchmark, of several the first."""
        return self.benchmarks[0]

    @property
    def until_precise(self) -> UntilPrecise | None:
        """Until when runs are repeated; None: a fixed number of times."""
        return self.repeats if isinstance(self.repeats, UntilPrecise) else None
