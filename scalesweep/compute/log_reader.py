"""Readers of programs' logs, as declared in ``resources/readers/NAME.yaml`` and checked here.

The launcher gets a declaration as JSON in the order of a run: this module needs no YAML.
Patterns have short names for what programs print: ``<ms>`` is a number (``1,786``, ``1e-3``,
``11.5K``), ``<step:i>`` a whole number, ``<loss:w>`` a word; all else is as in ``re``.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from scalesweep.compute.job_spec import Meaning
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.record import STEP_TIMES

# What is longer is no line of progress: a search in it would take long.
LONGEST_LINE = 4000
_KINDS = {
    "": r"\d[\d,]{0,24}(?:\.\d{0,25})?(?:[eE][+-]?\d{1,3})?[KMGBTP]?",
    "i": r"\d[\d,]{0,24}",
    "w": r"[^\s,|]{1,80}",
}
_GROUP = re.compile(r"(?<!\?P)<(?P<name>[a-z_]+)(?::(?P<kind>[iw]))?>")
_NUMBER = re.compile(
    r"(?=[+-]?\.?\d)(?P<digits>[+-]?(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.(?P<decimals>\d*))?)"
    r"(?:[eEdD](?P<power>[+-]?\d{1,3}))?(?P<suffix>[KMGBTP]?)",
    re.ASCII,
)
_SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
_FLAGS = {"true": True, "false": False}
FACTS, MODEL, FIRST = "facts", "model", "first"
Fact = str | int | float | bool


# How the values of many lines become one: the mean of times; of rates that of their times; the
# mean; the largest; the last. ``elapsed`` is a clock: its differences are times of steps.
Way = Literal["seconds", "rate", "mean", "peak", "last", "elapsed"]
STEP_TIME, TOKENS, SAMPLES = "step_time", "tokens_per_second", "samples_per_second"


class Value(NamedTuple):
    """A value of a line: its metric, and what one printed unit of it is (``times``)."""

    metric: str
    unit: str
    better: str = "higher"
    scope: str = "total"  # rank: of the one that printed it, or of one device; total: of all
    way: Way = "mean"
    definition: str = ""
    times: float = 1.0

    @property
    def meaning(self) -> Meaning:
        """Unit, direction and scope, as a record has them."""
        return {"unit": self.unit, "better": self.better, "scope": self.scope}


# Metrics that many programs print; those that begin with a key that ends with _ as well.
KNOWN: Mapping[str, Value] = {
    value.metric: value
    for value in (
        Value(STEP_TIME, "s", "lower", way="seconds", definition="time of a step"),
        Value(TOKENS, "tokens/s", way="rate", definition="of all devices"),
        Value(f"{TOKENS}_per_device", "tokens/s", "higher", "rank", "rate", "of a device"),
        Value(SAMPLES, "samples/s", way="rate", definition="of all devices"),
        Value("images_per_second", "images/s", "higher", "rank", "rate", "of a rank"),
        Value("total_images_per_second", "images/s", way="last", definition="of all ranks"),
        Value("final_loss", "1", "lower", way="last", definition="loss of the last line"),
        Value("peak_memory_reserved", "bytes", "lower", "rank", "peak", "that PyTorch reserved"),
        Value("peak_memory_allocated", "bytes", "lower", "rank", "peak", "that PyTorch allocated"),
        Value("peak_rss", "bytes", "lower", "rank", "peak", "largest resident memory of a rank"),
        Value(STEP_TIMES, "s", "lower", "rank", "seconds", "time of a step of each rank"),
        Value("time_", "s", "lower", "rank", definition="part of a step, on the rank that prints"),
        *(
            Value(name, "FLOP/s", "higher", "rank", "rate", "by the program's own count")
            for name in ("flops_per_device_", "hardware_flops_per_device_", "model_flop_rate_")
        ),
    )
}
# What follows where a log prints, or states, what it is made of.
DERIVED = {name: KNOWN[name]._replace(way="mean") for name in (TOKENS, SAMPLES, STEP_TIME)}


class Pattern:
    """A pattern of a line; ``numbers`` are those of its groups that are numbers."""

    def __init__(self, text: str, where: str) -> None:
        """Raises UserError that begins with ``where`` if it is no regular expression."""
        self.numbers = {it["name"] for it in _GROUP.finditer(text) if it["kind"] != "w"}
        try:
            self._pattern = re.compile(
                _GROUP.sub(lambda it: f"(?P<{it['name']}>{_KINDS[it['kind'] or '']})", text)
            )
        except (re.error, OverflowError, RecursionError) as error:
            raise UserError(f"{where}: '{text}' is not a regular expression ({error})") from None
        self.groups = frozenset(self._pattern.groupindex)
        self.search, self.finditer = self._pattern.search, self._pattern.finditer
        self.match = self._pattern.match


def number_of(text: str) -> float:
    """The number that a text is, with a comma before thousands only; NaN for one that is none
    (``nan``, ``N/A``)."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return math.nan
    digits = match["digits"].replace(",", "") + f"e{match['power'] or 0}"
    return float(digits) * _SUFFIXES[match["suffix"]]


def rounding_of(text: str) -> float:
    """By how much the number behind a printed text may differ from it: half of its last digit."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return 0.0
    power = int(match["power"] or 0) - len(match["decimals"] or "")
    return float(0.5 * 10.0**power * _SUFFIXES[match["suffix"]])


def fact_of(text: str, number: bool) -> Fact | None:
    """A printed fact: a whole number, a flag, a word; of a group of numbers also 11.5K.

    None for a number that is none."""
    whole = text.replace(",", "")
    if whole.isascii() and whole.isdigit():
        return int(whole[:18])
    if number:
        value = number_of(text)
        return value if math.isfinite(value) else None
    return _FLAGS.get(text.lower(), text)


class Stated(NamedTuple):
    """Lines that state facts: each named group of ``pattern`` is a fact of that name.

    With groups ``name`` and ``value``, ``names`` says which names are which facts. Of ``model``
    lines that contradict each other leave the fact unknown, of ``first`` the first line counts:
    neither is a sign of a second run. A line with ``ignore`` is a command, whose flags stand behind
    the mark: others than these and those of ``names`` are facts ``--name``, which set runs apart.
    """

    mark: str
    pattern: Pattern
    names: Mapping[str, str]
    key: str  # of the declaration: facts, model, first
    tally: str  # the fact that is the number of matches; empty for others
    ignore: Pattern | None

    def facts(self, text: str) -> Iterator[tuple[str, str]]:
        """Name and text of each fact in a line."""
        if self.tally:
            yield self.tally, str(len(list(self.pattern.finditer(text))))
            return
        for match in self.pattern.finditer(text, text.find(self.mark) if self.ignore else 0):
            groups = match.groupdict()
            if name := groups.get("name"):
                apart = self.ignore is not None and not self.ignore.match(name)
                if fact := self.names.get(name, f"--{name}" if apart else ""):
                    yield fact, groups["value"] or "True"
            else:
                yield from ((name, it) for name, it in groups.items() if it is not None)


@dataclass(frozen=True)
class Reader:
    """How the log of a program is read (docs/guide/training_logs.md has the keys).

    ``marks``, one of which is in every line of progress, are looked for before any pattern; with
    ``sign`` they begin a line of progress, also a cut one. ``more`` belongs to the line of progress
    before it. ``settings`` are facts that may change in a training, ``variant`` facts that set runs
    apart without being parameters. Without ``steady`` lines are of all steps so far, of which the
    last counts; a start without a value of the group ``ends``, or a fact of ``needs``, was cut.
    """

    benchmark: str
    program: str
    summary: str
    marks: tuple[str, ...]
    sign: Pattern
    progress: tuple[Pattern, ...]
    values: Mapping[str, Value]
    main: str
    averages: bool = False
    settings: tuple[str, ...] = ()
    stated: tuple[Stated, ...] = ()
    more: tuple[tuple[str, Pattern], ...] = ()
    derive: Mapping[str, Expression] = field(default_factory=dict)
    refuse: tuple[tuple[Expression, str], ...] = ()
    begins: tuple[str, ...] = ()
    spoils: tuple[str, ...] = ()
    spoiled_lines: int = 1
    also: tuple[str, ...] = ()
    ranks: int | None = None
    variant: tuple[str, ...] = ()
    steady: bool = True
    ends: str = ""
    needs: tuple[str, ...] = ()
    along: tuple[str, ...] = ("data_parallel",)  # of how ranks share work: one rank has none of it
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)  # as JSON, for the launcher

    def prints(self, text: str) -> bool:
        """Whether a line is one of progress, or the begin of one."""
        return has(text, self.marks) and self.sign.search(text) is not None

    @property
    def metrics(self) -> dict[str, Value]:
        """What a run may have by name, the main one first."""
        own = {value.metric: value for value in self.values.values()}
        every = {**DERIVED, **own}
        return {self.main: every[self.main], **every}


def has(text: str, marks: tuple[str, ...]) -> bool:
    """Whether one of the marks is in a text; a loop, as it is asked of every line."""
    for mark in marks:  # noqa: SIM110
        if mark in text:
            return True
    return False


def _texts(given: Any, _where: str = "") -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def _expressions(given: Any, where: str) -> Mapping[str, Expression]:
    return {name: Expression(str(text), f"{where}.{name}") for name, text in given.items()}


def _values(given: Any, where: str) -> Mapping[str, Value]:
    return {group: _value(value, f"{where}.{group}") for group, value in given.items()}


def _value(given: Any, where: str) -> Value:
    """A value by the name of its metric alone, or with what is not as usual for it."""
    own = {"metric": given} if isinstance(given, str) else given
    _check_keys(own, Value._fields, where, "metric")
    name = own["metric"]
    usual = KNOWN.get(name) or next(
        (it for key, it in KNOWN.items() if key.endswith("_") and name.startswith(key)), None
    )
    if usual is None and (lacking := [k for k in ("unit", "better", "scope") if k not in own]):
        raise UserError(f"{where}: {name} is no usual metric: {', '.join(lacking)} must be stated")
    value = (usual or Value(name, ""))._replace(**own)
    words = {"way": get_args(Way), "better": ("higher", "lower"), "scope": ("rank", "total")}
    for key, allowed in words.items():
        if getattr(value, key) not in allowed:
            raise UserError(f"{where}.{key}: {choices(getattr(value, key), allowed)}")
    return value._replace(times=float(value.times), definition=value.definition or "as printed")


def _stated(given: Any, where: str) -> tuple[Stated, ...]:
    stated = []
    for number, it in enumerate(given):
        at = f"{where}[{number}]"
        _check_keys(it, ("mark", "pattern", "names", "count", "ignore"), at, "pattern")
        names = it.get("names", {})
        names = names if isinstance(names, Mapping) else {name: name for name in names}
        ignore = Pattern(rf"(?:{it['ignore']})\Z", at) if "ignore" in it else None
        key, tally, pattern = where.rpartition(" ")[2], it.get("count", ""), it["pattern"]
        stated.append(Stated(it.get("mark", ""), Pattern(pattern, at), names, key, tally, ignore))
    return tuple(stated)


def _check_keys(content: Any, allowed: Sequence[str], where: str, *needed: str) -> None:
    if not isinstance(content, Mapping):
        raise UserError(f"{where}: a mapping is needed; keys: {', '.join(allowed)}")
    if unknown := [key for key in content if key not in allowed]:
        raise UserError(f"{where}: unknown key '{unknown[0]}'; {choices(unknown[0], allowed)}")
    if lacking := [key for key in needed if key not in content]:
        raise UserError(f"{where}: {lacking[0]} is missing")


# Key of a declaration -> what makes its value of what is written, and where that is.
_KEYS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("program", "summary"), lambda given, _: str(given)),
    **dict.fromkeys(("marks", "settings", "begins", "spoils", "also", "variant"), _texts),
    **dict.fromkeys(("needs", "along"), _texts),
    "sign": Pattern,
    **dict.fromkeys(("main", "averages", "spoiled_lines", "ranks"), lambda given, _: given),
    **dict.fromkeys(("steady", "ends", "parameters"), lambda given, _: given),
    **dict.fromkeys((FACTS, MODEL, FIRST), _stated),
    "progress": lambda given, at: tuple(Pattern(text, at) for text in _texts(given)),
    "values": _values,
    "more": lambda given, at: tuple((it["mark"], Pattern(it["pattern"], at)) for it in given),
    "derive": _expressions,
    "refuse": lambda given, at: tuple((Expression(it["when"], at), it["reason"]) for it in given),
}


def reader_of(content: Any, benchmark: str, where: str) -> Reader:
    """The reader of a declaration; raises UserError that begins with ``where`` and names a key."""
    _check_keys(content, list(_KEYS), where, "marks", "progress", "values", "main")
    begin = "|".join(map(re.escape, _texts(content["marks"])))
    usual = {"program": benchmark, "summary": f"Runs of {benchmark}, from its log.", "sign": begin}
    made = {
        key: _KEYS[key](given, f"{where}: {key}") for key, given in {**usual, **content}.items()
    }
    stated = [it for key in (FACTS, MODEL, FIRST) for it in made.pop(key, ())]
    reader = Reader(benchmark=benchmark, stated=tuple(stated), declared=content, **made)
    patterns = [*reader.progress, *dict(reader.more).values(), *(it.pattern for it in stated)]
    groups = set().union(*(pattern.groups for pattern in patterns))
    for name in (*reader.values, *reader.settings):
        if name not in groups:
            raise UserError(f"{where}: values: no pattern has a group <{name}>")
    metrics = {*DERIVED, *(value.metric for value in reader.values.values())}
    if reader.main not in metrics:
        raise UserError(f"{where}: main: {choices(reader.main, sorted(metrics))}")
    return reader
