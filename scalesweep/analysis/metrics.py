"""What the numbers mean: label, unit, direction, scope and formula of every quantity.

Summary, tables, figures and report all name quantities through this module. A quantity is
in columns ``<metric>_<stat>_<phase>``, or ``<metric>_<phase>`` where it is one value.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

from scalesweep.core.formatting import PHASES
from scalesweep.core.scaling_kinds import FLOP_RATE, MODEL, OF_SAMPLES


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a number means; n is the number of samples per epoch over all ranks."""

    name: str
    label: str
    unit: str  # "1" for ratios
    better: str  # higher | lower
    scope: str  # rank | total
    formula: str
    derived: bool = False  # made from other quantities over several points, in the tables
    kind: str = ""  # extensive | intensive | latency; empty where nothing says

    @property
    def scales(self) -> bool:
        """Whether it is a rate or a time of work: it has an ideal, efficiency and speedup."""
        return self.kind == EXTENSIVE

    @property
    def of_time(self) -> bool:
        """Whether the less of it there is, the faster the work: of metrics that scale."""
        return self.better == "lower"

    @property
    def meaning(self) -> dict[str, str]:
        """What a table's file says of its column."""
        names = ("label", "unit", "better", "scope")
        return {name: getattr(self, name) for name in names}


RATE = "samples/s"
# Bytes of the units that an amount of memory may be in.
BYTES: Mapping[str, float] = {
    "bytes": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip
_OF_MEMORY = re.compile(r"mem|rss|hbm", re.IGNORECASE)

# What becomes of a metric as ranks are added. Extensive: a rate of work, of all ranks or a rank's
# share of it, or a time of work. Intensive: bandwidth of a link, utilisation, MFU. Latency: the
# time of an operation. Only the first has an ideal.
EXTENSIVE, INTENSIVE, LATENCY = "extensive", "intensive", "latency"
KINDS = (EXTENSIVE, INTENSIVE, LATENCY)
# Behind the name of a metric with a value for each key: the kind of all of them.
EVERY_KEY = "_*"
# nccl-tests print busbw and algbw.
_OF_A_LINK = re.compile(r"(?:.*_)?(?:bandwidth|bw|busbw|algbw|utili[sz]ation|mfu|hfu)(?:_.*)?")
_STEP = r"(?:(?:time)?step|iteration|iter|it|batch(?:e)?|epoch|update|call)s?"
# What a rate counts that is larger the more ranks share it: in weak scaling its ideal is no larger.
_OF_STEPS = re.compile(rf"{_STEP}/s")
_TIME = re.compile(rf"(?:ns|us|µs|ms|s|sec|seconds|min|minutes|h|hours|d|days)(?:/{_STEP})?")


def is_memory(name: str, unit: str) -> bool:
    """Whether a metric is memory in use, by its name and unit."""
    return bool(_OF_MEMORY.search(name)) and unit in BYTES


def contradiction(kind: str, unit: str, better: str) -> str:
    """Why a metric of this unit and direction cannot be of a declared kind; empty if it can."""
    timed = _TIME.fullmatch(unit) is not None
    if kind == INTENSIVE or (timed == (better == "lower") and (timed or kind != LATENCY)):
        return ""
    rate = "a rate (better: higher) or " if kind == EXTENSIVE else ""
    return f"{kind} is for {rate}a time (better: lower), and this is {unit!r}, better: {better}"


def kind_of(
    name: str,
    unit: str,
    better: str,
    declared: Mapping[str, str],
    scaling: str = "none",
    main: bool = False,
) -> str:
    """The kind of a plain metric: as ``declared`` in benchmark.yaml, else what name and unit say.

    ``declared`` by name, or by stem and ``EVERY_KEY``. A rate of no link is extensive; one that
    counts steps is not where ``scaling`` is weak: all ranks together take each of them. Where it is
    that of the model, samples are more work at every count, and FLOP/s alone has an ideal. A time
    is one of work where it is the ``main`` metric, in weak and strong scaling; empty for another
    time, or anything else less of which is better: what it is of is not known.
    """
    kind = _kind_of(name, unit, better, declared, scaling, main)
    if kind == EXTENSIVE and better == "lower" and scaling not in OF_SAMPLES:
        return ""
    if scaling == MODEL and kind == EXTENSIVE and not unit.endswith(FLOP_RATE):
        return INTENSIVE
    return kind


def _kind_of(
    name: str, unit: str, better: str, declared: Mapping[str, str], scaling: str, main: bool
) -> str:
    keyed = [stem for stem in declared if stem.endswith(EVERY_KEY) and name.startswith(stem[:-1])]
    stated = declared.get(name) or (declared[max(keyed, key=len)] if keyed else "")
    if stated:
        return "" if contradiction(stated, unit, better) else stated
    if better != "higher":
        return EXTENSIVE if main and _TIME.fullmatch(unit) else ""
    of_steps = scaling == "weak" and _OF_STEPS.fullmatch(unit)
    if not unit.endswith("/s") or of_steps or _OF_A_LINK.fullmatch(name):
        return INTENSIVE
    return EXTENSIVE


# The one place where the meaning of a quantity is written.
# Formulas as in cosmoflow-benchmark, notebooks/DataBenchmark.ipynb.
_ALL = (
    Quantity("local_time", "Epoch time per rank", "s", "lower", "rank", "local_times"),
    Quantity("total_time", "Epoch time", "s", "lower", "total", "global_times"),
    Quantity(
        "local_throughput", "Throughput per rank", RATE, "higher", "rank",
        "n / (ranks * local_times)", kind=EXTENSIVE,
    ),
    Quantity(
        "total_throughput", "Total throughput", RATE, "higher", "total", "n / global_times",
        kind=EXTENSIVE,
    ),
    Quantity(
        "read_rate", "Read rate", "bytes/s", "higher", "total", "bytes_per_epoch / global_times",
        kind=EXTENSIVE,
    ),
    Quantity(
        "local_ideal", "Ideal throughput per rank", RATE, "higher", "rank",
        "base local_throughput", True,
    ),
    Quantity(
        "total_ideal", "Ideal total throughput", RATE, "higher", "total",
        "ranks / base ranks * base total_throughput", True,
    ),
    Quantity(
        "local_eff", "Efficiency per rank", "1", "higher", "rank",
        "local_throughput / local_ideal", True,
    ),
    Quantity(
        "total_eff", "Efficiency", "1", "higher", "total", "total_throughput / total_ideal", True
    ),
    Quantity(
        "total_speedup", "Speedup", "1", "higher", "total",
        "total_throughput / base total_throughput", True,
    ),
)  # fmt: skip
QUANTITIES: dict[str, Quantity] = {quantity.name: quantity for quantity in _ALL}
EPOCH_METRICS = tuple(name for name, quantity in QUANTITIES.items() if not quantity.derived)
EPOCH_PHASES = ("init", "later")
# Plain metrics of every run whose power was sampled.
ENERGY = ("energy", "energy_per_sample", "energy_delay_product", "mean_power", "peak_power")
STATS = ("mean", "median", "std", "low", "high", "cv")

_CURVES = (
    Quantity("loss", "Training loss", "1", "lower", "total", "mean over the ranks"),
    Quantity("validation_loss", "Validation loss", "1", "lower", "total", "mean over the ranks"),
    Quantity("mae", "Training MAE", "1", "lower", "total", "mean over the ranks"),
    Quantity("validation_mae", "Validation MAE", "1", "lower", "total", "mean over the ranks"),
    Quantity("accuracy", "Training accuracy", "1", "higher", "total", "mean over the ranks"),
    Quantity(
        "validation_accuracy", "Validation accuracy", "1", "higher", "total", "mean over the ranks"
    ),
    Quantity("learning_rate", "Learning rate", "1", "lower", "total", "of the epoch's last step"),
    Quantity("epoch_ends", "Wall time", "s", "lower", "total", "since the first epoch began"),
    Quantity("local_times", "Training time per rank", "s", "lower", "rank", "local_times"),
    Quantity("global_times", "Training time", "s", "lower", "total", "global_times"),
    Quantity("training_times", "Training time", "s", "lower", "total", "training_times"),
    Quantity("validation_times", "Validation time", "s", "lower", "total", "validation_times"),
    Quantity("span_input", "Waiting for input", "s", "lower", "rank", "span_input"),
)
# Arrays [epoch, rank] that make up the curves of a training run; the accuracies among them.
EPOCH_CURVES: dict[str, Quantity] = {quantity.name: quantity for quantity in _CURVES}
ACCURACY_CURVES = tuple(
    prefix + name for name in ("loss", "mae", "accuracy") for prefix in ("", "validation_")
)

# Between which runs a metric is compared: any; those that train to a target or as much as each
# other; none. Losses, errors and accuracies after a window of timed steps say how long that was.
ALWAYS, SAME_TRAINING, NEVER = "always", "same_training", "never"
_LEARNED = frozenset({"loss", "mae", "accuracy", "perplexity"})


def compared(metric: str, declared: Mapping[str, str], main: str | None) -> str:
    """Between which runs a metric is compared: ALWAYS, SAME_TRAINING or NEVER.

    As the benchmark has ``declared`` it (``compare`` in benchmark.yaml); otherwise what a model has
    learned, by its name, only where it is the ``main`` metric.
    """
    learned = not _LEARNED.isdisjoint(metric.split("_")) and metric != main
    return declared.get(metric, NEVER if learned else ALWAYS)


_COLUMN = re.compile(rf"(.+?)(?:_({'|'.join(STATS)}))?_({'|'.join(PHASES)})")


class Column(NamedTuple):
    """A quantity column's parts; ``stat`` is empty where the column is the value itself."""

    metric: str
    stat: str
    phase: str


@cache
def column(metric: str, stat: str, phase: str) -> str:
    """Name of a quantity's column: ``<metric>_<stat>_<phase>``, without an empty stat."""
    return "_".join(part for part in (metric, stat, phase) if part)


def split_column(name: str) -> Column | None:
    """Parts of a quantity's column name, or None if it does not look like one.

    ``total_eff_low_init`` is (total_eff, low, init); ``total_eff_init`` is (total_eff, "", init).
    """
    match = _COLUMN.fullmatch(name)
    return Column(match[1], match[2] or "", match[3]) if match else None


_ABBREVIATED = re.compile(r"\b(?:mfu|hfu|mae|flop|rss|cpu|gpu)\b")


def plain_quantity(name: str, described: Mapping[str, str], kind: str = "") -> Quantity:
    """Meaning of a plain metric from its record's ``unit``, ``better`` and ``scope``; of a derived
    one there is a ``formula`` too."""
    label = _ABBREVIATED.sub(lambda word: word[0].upper(), name.replace("_", " "))
    return Quantity(
        name,
        label[:1].upper() + label[1:],
        described["unit"],
        described["better"],
        described["scope"],
        described.get("formula", "as reported by the run"),
        kind=kind,
    )


def quantities_of(
    summary: "pd.DataFrame",
    benchmark: str,
    declared: Mapping[str, str] | None = None,
    scaling: str = "none",
    main: str | None = None,
) -> dict[str, Quantity]:
    """Every quantity a run of ``benchmark`` may have: those of the epochs, then its plain ones.

    ``declared`` kinds and ``scaling`` as of ``kind_of``; ``main``: name of the main metric.
    """
    plain = summary.attrs.get("metrics", {}).get(benchmark, {})
    # Of samples, which have no ideal where the model grows.
    epochs = {
        name: replace(quantity, kind=INTENSIVE)
        if scaling == MODEL and quantity.scales
        else quantity
        for name, quantity in QUANTITIES.items()
        if name in EPOCH_METRICS
    }
    return epochs | {
        name: plain_quantity(
            name,
            described,
            kind_of(
                name, described["unit"], described["better"], declared or {}, scaling, name == main
            ),
        )
        for name, described in plain.items()
        if name not in epochs
    }


def derived_names(summary: "pd.DataFrame", benchmark: str) -> set[str]:
    """The metrics of a benchmark that a campaign states by formulas."""
    plain = summary.attrs.get("metrics", {}).get(benchmark, {})
    return {name for name, described in plain.items() if "formula" in described}


# Ends of the names that the scaling of a metric has.
SCALING_WORDS = ("ideal", "eff", "speedup")
_SCALED = re.compile(rf"(.+)_({'|'.join(SCALING_WORDS)})")


def units_of(
    columns: Iterable[str], quantities: Mapping[str, Quantity]
) -> dict[str, dict[str, str]]:
    """Meaning of every quantity column of a table: {column: {label, unit, better, scope}}.

    ``quantities`` are those of the table's benchmark (``quantities_of``).
    """
    result = {}
    for name in columns:
        parts = split_column(name)
        if parts is None:
            continue
        quantity = quantities.get(parts.metric) or QUANTITIES.get(parts.metric)
        scaled = _SCALED.fullmatch(parts.metric)
        if quantity is None and scaled and (base := quantities.get(scaled[1])):
            # Scaling columns of a plain metric mean what those of the total throughput mean.
            model = QUANTITIES[f"total_{scaled[2]}"]
            unit = base.unit if scaled[2] == "ideal" else model.unit
            label = f"{model.label}: {base.label}"
            better = base.better if scaled[2] == "ideal" else "higher"
            quantity = Quantity(parts.metric, label, unit, better, base.scope, model.formula)
        if quantity is not None:
            result[name] = quantity.meaning | ({"unit": "1"} if parts.stat == "cv" else {})
    return result
