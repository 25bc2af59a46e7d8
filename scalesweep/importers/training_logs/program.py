"""What a training program prints, as a declaration; ``registry.py`` lists those that are read."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.training_logs.model_facts import MODEL, TRANSFORMER
from scalesweep.importers.write_campaign import Comparison, Rules

# How the values of many lines become one: the mean of times; of rates that of their times; the
# mean; the largest; the last.
SECONDS, RATE, MEAN, PEAK, LAST = "seconds", "rate", "mean", "peak", "last"

# What is printed of a model, or follows: as of ``parameter_entry``, without null.
PARAMETERS: Mapping[str, tuple[str, str, str | None, bool]] = {
    "model": ("string", "The model, as the program names it.", None, True),
    "model_parameters": ("integer", "Parameters of the model.", "parameters", True),
    "sequence_length": ("integer", "Tokens of a sample.", "tokens", True),
    "batch_per_rank": ("number", "Samples of a step / ranks.", "samples", True),
    "tokens_per_rank": ("number", "Tokens of a step / ranks.", "tokens", True),
    "micro_batch_size": ("integer", "Samples of a forward pass of one replica.", "samples", False),
    "precision": ("string", "Number format of the computation.", None, False),
    "data_parallel": ("string", "How replicas share the model.", None, False),
    "tp": ("integer", "Ranks that share a layer (tensor parallel).", "ranks", False),
    "pp": ("integer", "Stages of a pipeline.", "ranks", False),
    "cp": ("integer", "Ranks that share a sequence (context parallel).", "ranks", False),
    "ep": ("integer", "Ranks that share experts (expert parallel).", "ranks", False),
    **MODEL,
}
# What is longer is no line of progress: a search in it would take long.
LONGEST_LINE = 4000
METHOD = ("data_parallel", "tp", "pp", "cp", "ep")

STEP_TIME, TOKENS, SAMPLES = "step_time", "tokens_per_second", "samples_per_second"
# Metrics that follow where a log prints, or states, what they are made of.
DERIVED: Mapping[str, tuple[str, str, str, str]] = {
    TOKENS: ("tokens/s", "higher", "total", "tokens of a step over its time, all ranks"),
    SAMPLES: ("samples/s", "higher", "total", "samples of a step over its time, all ranks"),
    STEP_TIME: ("s", "lower", "total", "time of a step, mean after the warm-up"),
}


class Printed(NamedTuple):
    """A value of a line: its metric, and what one printed unit of it is (``times``)."""

    metric: str
    unit: str
    scope: str  # rank: of the one that printed it, or of one device; total: of all together
    definition: str
    way: str = MEAN
    times: float = 1.0
    better: str = "higher"


class Stated(NamedTuple):
    """A line that states parameters: each named group of ``pattern`` is a fact of that name.

    ``mark`` is in every such line: it is found far sooner than the pattern. With groups ``name``
    and ``value``, ``names`` says which names are which facts.
    """

    mark: str
    pattern: re.Pattern[str]
    names: Mapping[str, str] = {}


Facts = Mapping[str, str]


def no_more(facts: Facts) -> Mapping[str, Any]:
    """Nothing follows from the facts of a log."""
    return {}


def within(steps: Sequence[int]) -> bool:
    """Whether the values of each line are of a single step, by the numbers of the steps."""
    return all(after - before == 1 for before, after in pairwise(steps))


def _has(text: str, marks: tuple[str, ...]) -> bool:
    """Whether one of the marks is in a text; a loop, as it is asked of every line."""
    for mark in marks:  # noqa: SIM110
        if mark in text:
            return True
    return False


@dataclass(frozen=True)
class Program:
    """A training program, by the lines that it prints.

    ``marks``, one of which is in every line of progress, are looked for before any pattern.
    ``sign`` begins a line of progress, and no line of another program; ``progress`` is its
    pattern, with the group ``step``; what ``more`` finds, mark and pattern, belongs to the step
    before it.
    ``values`` and ``settings`` are by group: metrics, and facts that may change while it trains.
    ``stated`` are lines with facts; ``settle`` makes parameters (and ``ranks``,
    ``global_batch_size``, ``tokens_per_step``, ``gpu``) of facts that are none by themselves.
    ``begins`` is text that only a new start prints. The lines of progress, ``spoiled_lines`` of
    them, behind a line with text of ``spoils`` hold more than steps (an evaluation). ``averages``:
    a line is the mean of the steps since the line before. ``also``: signs of programs that this one
    runs on, whose lines are not read beside its own.
    """

    name: str
    benchmark: str
    summary: str
    marks: tuple[str, ...]
    sign: re.Pattern[str]
    progress: re.Pattern[str]
    values: Mapping[str, Printed]
    main: str
    averages: bool
    settings: tuple[str, ...] = ()
    stated: tuple[Stated, ...] = ()
    settle: Callable[[Facts], Mapping[str, Any]] = no_more
    more: tuple[tuple[str, re.Pattern[str]], ...] = ()
    begins: tuple[str, ...] = ()
    spoils: tuple[str, ...] = ()
    spoiled_lines: int = 1
    also: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[str, str, str | None, bool]] = field(default_factory=dict)

    def prints(self, text: str) -> bool:
        """Whether a line is one of progress, or the begin of one."""
        return _has(text, self.marks) and self.sign.search(text) is not None

    def begins_with(self, text: str) -> bool:
        """Whether a line is one that only a new start prints."""
        return _has(text, self.begins)

    def is_spoiled_by(self, text: str) -> bool:
        """Whether the next line of progress holds more than steps."""
        return _has(text, self.spoils)

    @property
    def made(self) -> Made:
        """The benchmark of its runs."""
        own = {printed.metric: printed.definition for printed in self.values.values()}
        metrics = {name: entry[3] for name, entry in DERIVED.items()} | own
        parameters = {**PARAMETERS, **self.parameters}
        return Made(
            self.summary,
            {name: parameter_entry(*entry) for name, entry in parameters.items()},
            {self.main: metrics[self.main], **metrics},
            {"transformer": dict(TRANSFORMER)},
        )

    @property
    def rules(self) -> Rules:
        """How its runs become experiments."""
        return Rules(
            scaling="scaling",
            comparisons=(Comparison("layouts", METHOD, "How ranks share model and batch."),),
            prefix=f"{self.benchmark}_",
            per_rank=("batch_per_rank", "tokens_per_rank"),
            shared=("data_parallel",),
        )
