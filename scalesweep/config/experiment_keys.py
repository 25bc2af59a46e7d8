"""The keys of an experiment: their types, defaults and words."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag, model_validator

from scalesweep.config.models import (
    FILLED,
    LISTED,
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
    checked,
    either,
    instead_of,
    matching,
    one_of,
)
from scalesweep.core.profilers import KINDS, NONE

MAX_REPEATS = 10_000
_FEATURES = "a Slurm feature expression, without spaces"
Values = dict[Any, Any]
_Entries = tuple[Annotated[Values, FILLED], ...]
Alone = Literal[1]


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


class DerivedKeys(Model):
    """A parameter that is worked out."""

    FORM: ClassVar[str] = "an expression, a number, or {value, unit, doc}"
    value: Expr
    """an expression over parameters, and other names under `derive`"""
    unit: str | None = None
    """of a name that is no parameter of the benchmark, and takes whole numbers"""
    doc: str = ""
    """what such a name means"""


class MetricKeys(Model):
    """A metric that is worked out for each run."""

    formula: Annotated[dict[str, Text], FILLED, instead_of("", str)]
    """arithmetic over metrics, numeric parameters and `wall_s`, `hosts`, `samples`, `bytes` of a
    run; with several benchmarks also benchmark -> formula"""
    unit: Annotated[Text, Field(max_length=40)]
    """`"1"` for a plain number"""
    better: Literal["higher", "lower"]
    """which direction is better"""
    scope: Literal["rank", "total"] = "total"
    """`total`: all ranks together; `rank`: one of them"""
    doc: str = ""
    """the meaning, for the report"""


class UntilPrecise(Model):
    """Repeats until the mean of a metric is precise."""

    least: Annotated[Count, Field(ge=3)] = Field(alias="min")
    """repeats of every point"""
    most: Annotated[Count, Field(ge=3, le=MAX_REPEATS)] = Field(alias="max")
    """repeats of a point at most"""
    until: Share
    """half width of the 95 % interval over the mean, such as `2 %`"""

    @model_validator(mode="after")
    def _fits_together(self) -> "UntilPrecise":
        if self.most < self.least:
            raise ValueError(f"max must be {self.least} (min) or more, not {self.most}")
        return self


_Numbers = Annotated[
    tuple[Annotated[Whole, Field(ge=0)], ...],
    checked(lambda of: None if len({*of}) == len(of) else "a run would count twice"),
]
_Repeats = Annotated[
    Annotated[Count, Field(le=MAX_REPEATS), Tag("#number")]
    | Annotated[tuple[_Numbers, ...], Tag("#list")]
    | Annotated[UntilPrecise, Tag("#map")],
    either("a whole number, or {min, max, until}"),
]
_Axis = Annotated[
    Annotated[RangeKeys, Tag("#map")] | Annotated[list[Any], FILLED, Tag("#list")],
    either(RangeKeys.FORM),
]


class ExperimentKeys(Model):
    """An experiment."""

    benchmarks: Annotated[tuple[Name, ...], LISTED, FILLED, Field(alias="benchmark")]
    """a folder in `workflow/benchmarks/` or your study's `benchmarks/`, or a list to compare
    ([several benchmarks](../guide/campaigns.md#several-benchmarks))"""
    description: str = ""
    """shown in the report"""
    scaling: Literal["weak", "strong", "model", "none"] = "none"
    """what stays the same while the ranks grow; weak: the work per rank, strong: that in all
    ([kinds](../guide/campaigns.md#kinds-of-scaling))"""
    scale: Name | None = None
    """the integer parameter to scale over; default: ranks, or the benchmark's `workers`"""
    axes: dict[Any, _Axis] = Field({})
    """parameter -> its values (a list, `{from, to, factor}` or `{from, to, step}`, up to `to`); the
    grid is their product. `env.NAME` is an environment variable"""
    linked: Annotated[_Entries, FILLED] | None = None
    """each entry sets several parameters at once; multiplied with the axes"""
    fixed: Values = Field({})
    """parameters with one value; those not mentioned have the benchmark's default"""
    fixed_of: dict[str, Values] = Field({})
    """with several benchmarks: benchmark -> `fixed` of its runs alone"""
    exclude: tuple[Annotated[Exclusion, instead_of("when", str)], ...] = ()
    """expressions over parameters, such as `"tp > ranks_per_node"`, or `{when, reason}`: points
    that are left out, and counted with the reason"""
    derive: dict[Name, Annotated[DerivedKeys, instead_of("value", str, int, float)]] = Field({})
    """name -> an expression over parameters; a value that it cannot have excludes the point
    ([derived parameters](../guide/campaigns.md#derived-parameters))"""
    extra: _Entries = ()
    """single points beside the grid; each sets every parameter of `axes` and `linked`"""
    main_metric: str | None = None
    """the metric that figures and findings are about; default: the benchmark's"""
    metrics: dict[Name, MetricKeys] = Field({})
    """name -> a metric [worked out for each run](../guide/campaigns.md#derived-metrics)"""
    predict: tuple[Count, ...] = ()
    """counts to [predict](../guide/prediction.md); needs `scaling: weak` or `strong`"""
    stop_below: Share | None = None
    """leave out larger counts of a series once the efficiency of a smaller one is clearly below,
    such as `30 %` ([stop](../guide/campaigns.md#stop-at-a-count))"""
    profile: Annotated[str, one_of((NONE, *KINDS))] = NONE
    """run each point once more under this profiler ([profiles](../guide/profiles.md)), or each run
    [without exchange](../guide/time_breakdown.md#without-time-stamps-a-run-without-exchange)"""
    repeats: _Repeats = 1
    """runs of every point (intervals need 2), as a map
    [until it is precise](../guide/campaigns.md#repeats-until-a-point-is-precise), or in written
    campaigns a list: for each combination of `linked` and `axes` the numbers of its repeats"""
    concurrent_runs: Alone | None = None
    """1: no run of this experiment starts while another of its runs lasts"""
    time_limit_minutes: Minutes | None = None
    """a run that takes longer is ended; default: the site's"""
    expected_minutes: Minutes | None = None
    """wall time of one run, until runs have finished"""
    memory_gib_per_rank: Positive | None = None
    """requested from Slurm; default: the share of a node's memory"""
    constraint: Annotated[str, matching(r"(?!\+$)\S+", _FEATURES)] | None = None
    """Slurm feature expression of the nodes instead of the site's (with `+` in front: beside it),
    such as `"knl&{memory_mode}"` with a parameter in braces"""

    @property
    def benchmark(self) -> str:
        """The benchmark, of several the first."""
        return self.benchmarks[0]

    @property
    def until_precise(self) -> UntilPrecise | None:
        """Until when runs are repeated; None: a fixed number of times."""
        return self.repeats if isinstance(self.repeats, UntilPrecise) else None
