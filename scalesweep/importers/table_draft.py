"""A draft of the map of a table: what names and values of its columns suggest."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from scalesweep.analysis.flop_conventions import UNSTATED, flop_metric, unnamed_convention
from scalesweep.config.formula import alias
from scalesweep.config.log_patterns import RESERVED
from scalesweep.config.reserved_names import OF_RUNS, OF_TABLES
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.importers.table_file import INDEX, Table, is_percentage

_OF = r"(?:(?:n|no|nr|num|number_of|total|count_of)_?)?"
_SCALES = (
    (_OF + r"(?:mpi_?)?ranks?", "ranks"),
    (_OF + r"proc(?:s|esses)?|n?p", "ranks"),
    (_OF + r"gpus?", "gpus"),
    (_OF + r"(?:devices?|accelerators?)", "devices"),
    (_OF + r"workers?", "workers"),
    (_OF + r"nodes?", "nodes"),
    (_OF + r"(?:cores?|cpus?|tasks?)", "cores"),
)
# Behind a rate or a figure of merit: what one of the ranks, or of what they run on, has of it.
_EACH = re.compile(
    r"(?:/|\bper[ _-]?|_per_)\s*(gpu|device|rank|accelerator|chip|node|core|worker)s?\b",
    re.IGNORECASE,
)
_PER_SECOND = re.compile(r"/\s*s(?:ec(?:ond)?s?)?(?![a-z])", re.IGNORECASE)
_MERIT = re.compile(
    r"fom|figure_of_merit|merit|performance|speed|flops?|t?flop|g?flops?", re.IGNORECASE
)
_UTILISATION = re.compile(r"[mh]fu", re.IGNORECASE)
_SHARE = re.compile(r"mfu|hfu|utili[sz]ation", re.IGNORECASE)
_ONE = frozenset(("gpu", "device", "accelerator", "chip", "node", "core", "worker"))
_TOKENS = re.compile(r"tok|\bT/s", re.IGNORECASE)
_UNITS = frozenset(("s", "ms", "us", "min", "h"))
_FAILED = re.compile(
    r"dnf|did not finish|fail(?:ed|ure)?|oom|out of memory|time[- _]?out|error|abort(?:ed)?"
    r"|cancel(?:l?ed)?|unfinished|incomplete|crash(?:ed)?|killed",
    re.IGNORECASE,
)
# Of these words those of runs that failed, with the cause that each names; the others were cut.
_CAUSES = (
    (re.compile(r"oom|out of memory", re.IGNORECASE), Cause.OUT_OF_MEMORY),
    (re.compile(r"time[- _]?out", re.IGNORECASE), Cause.TIMEOUT),
    (re.compile(r"fail(?:ed|ure)?|error|crash(?:ed)?", re.IGNORECASE), Cause.NOT_STATED),
    (re.compile(r"killed", re.IGNORECASE), Cause.KILLED),
)
_DONE = re.compile(r"ok|done|success(?:ful)?|pass(?:ed)?|finished|completed?|yes", re.IGNORECASE)
# Thousands and millions of what is counted: k samples/s, Mtokens/s.
_PREFIX = re.compile(r"(?<![A-Za-z])([kKM])[ _]?(?:samples?|im(?:a?ge?s?|g)|tok(?:en)?s?)(?![a-z])")
_TIMES = {"k": 1_000, "K": 1_000, "M": 1_000_000}
_PERCENT = re.compile(r"%|\bpercent\b|\bpct\b|\[pct\]", re.IGNORECASE)
_REMARK = re.compile(r"notes?|comments?|remarks?|description|link|url|source")
_CLOCK = re.compile(r"(?:\d{1,4}:)?\d{1,4}:\d{2}(?:\.\d+)?")
# A text that its writer meant as a number, though its marks leave open which.
_FIGURES = re.compile(r"[+-]?\d[\d., '\u00a0\u2009\u202f]*%?")
_POSITION = re.compile(r"epochs?|steps?|iterations?|iters?")
# What goes with any metric of a table in the name of its efficiency.
_GENERIC = frozenset(("parallel", "scaling", "weak", "strong", "relative", "total", "overall"))
_REPEAT = re.compile(r"repeat|repetition|rep|trial|run|run_id|seed")
_SAMPLES = re.compile(r"(?:n|num|total)?_?(?:samples|images)")
_STD = re.compile(r"std|stdev|stddev|sd|sigma")
_COUNT = re.compile(r"n|count|counts|n_runs|num_runs|runs|repeats|n_repeats|trials")
_EFFICIENCY = re.compile(r"eff|efficiency|efficiencies")
_COMPUTED = re.compile(r"ideal|speedups?|linear")
_RATE = re.compile(
    r"throughputs?|rates?|fps|(?:images?|samples?|img|tok(?:ens?)?)_(?:per_)?s(?:ec|econd)?(?:_[a-z]+)?"
)
_TIME = re.compile(r"times?|seconds?|secs?|elapsed|durations?|walltime|runtime|s")
_SETTING = re.compile(r"batch|threads?|epochs?|steps?|size|layers?|depth|width|workers?|per")
_PLAIN = {"dummy": "real", "synthetic": "real", "synth": "real"}


@dataclass
class _Guess:
    """What the columns of a table seem to be."""

    scale: str = ""
    ranks: str | None = None
    repeat: str | None = None
    unfinished: tuple[str, list[str]] | None = None  # column, and its words that say so
    samples: str | None = None
    parameters: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # numbers without a known name
    stds: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    efficiencies: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    clocks: list[str] = field(default_factory=list)  # times as h:mm:ss
    unread: dict[str, str] = field(default_factory=dict)  # numbers of unclear marks: the reason
    formulas: dict[str, str] = field(default_factory=dict)  # where a unit is a multiple

    def source(self, column: str, like: str = "") -> str | dict[str, str]:
        """Where a column's values are: it, or a formula of its unit or that of ``like``."""
        if column in self.formulas:
            return {"formula": self.formulas[column]}
        if like in self.formulas:
            return {"formula": self.formulas[like].replace(alias(like), alias(column))}
        return column

    @property
    def ordered(self) -> list[str]:
        """The metrics, rates first: the first is what the report is about."""
        return sorted(self.metrics, key=lambda name: not _rates(name))


def draft_of(table: Table) -> str:
    """A map of the table as YAML with comments: whole, as far as the columns' names go.

    Raises UserError for a table without a row.
    """
    if not table.rows:
        raise UserError(f"{table.file}: holds no row that can be read")
    guess = _guess(table)
    content = _content(table, guess)
    parts = [
        f"# Draft of a map for {table.file.name}: check every line, then complete it.",
        "# Metrics: unit, better (higher or lower), scope (total: all ranks together, or rank).",
        "# A stated standard deviation and its count give an interval: std: COLUMN, count: COLUMN.",
        "# A formula works with columns: {formula: samples / time}; a constant is {value: 4}.",
    ]
    if guess.stds and not guess.counts:
        parts.append(
            f"# No column counts what {', '.join(guess.stds)} are of: with count: {{value: N}} "
            "beside std they give intervals."
        )
    for column in guess.clocks:
        parts.append(f"# {column}: 1:02:30 is no number: give the table a column of seconds.")
    parts += [f"# {column} is left out: {why}." for column, why in guess.unread.items()]
    if not content["metrics"]:
        parts.append("# No column seems to be a metric: name one under metrics.")
    if guess.ranks is None:
        parts.append("# No column seems to count ranks: name it, or state {value: N}.")
    text = yaml.safe_dump(content, sort_keys=False, width=100, allow_unicode=True)
    return "\n".join(parts) + "\n" + text


def _name_words(column: str) -> list[str]:
    return [word for word in alias(column).lower().split("_") if word]


def _is(pattern: "re.Pattern[str]", column: str) -> bool:
    """Whether the whole name, or one of its words, is what the pattern means."""
    name = alias(column).lower()
    return bool(pattern.fullmatch(name)) or any(
        pattern.fullmatch(word) for word in _name_words(column)
    )


def _of_each(column: str) -> bool:
    """Whether a metric is what one rank, device or node has: T/s/GPU, tok_s_gpu, FOM per node."""
    return _EACH.search(column) is not None or _name_words(column)[-1] in _ONE


def _counts(column: str) -> bool:
    """Whether a column's name is that of what a table may scale over."""
    return any(re.fullmatch(pattern, "_".join(_name_words(column))) for pattern, _ in _SCALES)


def _rates(column: str) -> bool:
    """Whether a column is of work per second, as its name or its unit says."""
    return _is(_RATE, column) or _PER_SECOND.search(column) is not None


def _times(column: str) -> bool:
    """Whether a column is a time: ``time_per_step`` and ``step_time``, not ``time_steps``."""
    words = _name_words(column)
    head = words[: words.index("per")] if "per" in words[1:] else words
    return _is(_TIME, column) and not (head and _SETTING.fullmatch(head[-1]))


def _unread(table: Table, column: str) -> str:
    """Why a column of what seems to be numbers cannot be read; empty for any other column."""
    why = ""
    for row in table.rows:
        cell = row.cells[column]
        try:
            table.number(cell)
        except ValueError as error:
            if not _FIGURES.fullmatch(str(cell).strip()):
                return ""
            why = why or str(error)
    return why


def _numbers(table: Table, column: str) -> list[float] | None:
    """The numbers of a column; None if a cell is none."""
    numbers = []
    for row in table.rows:
        try:
            number = table.number(row.cells[column])
        except ValueError:
            return None
        if number is not None:
            numbers.append(float(number))
    return numbers


def _guess(table: Table) -> _Guess:
    """What each column of a table is: first the number of ranks, then parameters, metrics and
    words."""
    guess = _Guess()
    numbers = {name: _numbers(table, name) for name in table.columns}
    whole = {
        name
        for name, values in numbers.items()
        if values and all(value.is_integer() for value in values)
    }
    for pattern, scale in _SCALES:
        for name in table.columns:
            counts = name in whole and min(numbers[name] or [0]) >= 1
            if (
                guess.ranks is None
                and counts
                and re.fullmatch(pattern, "_".join(_name_words(name)))
            ):
                guess.ranks, guess.scale = name, scale
    for name in table.columns:
        words = sorted({str(row.cells[name]).strip() for row in table.rows if row.cells[name]})
        if why := _unread(table, name):
            guess.unread[name] = why
            guess.ignore.append(name)
        elif guess.unfinished is None and (failed := _failed(words)):
            guess.unfinished = name, failed
        elif name != guess.ranks:
            _place(guess, name, numbers[name], name in whole)
    _take_units(guess, table)
    _leave_texts(guess, table)
    return guess


def _take_units(guess: _Guess, table: Table) -> None:
    """Note what a heading says its numbers are multiples of."""
    for name in table.columns:
        if prefix := _PREFIX.search(name):
            guess.formulas[name] = f"{alias(name)} * {_TIMES[prefix[1]]}"
        elif _in_percent(table, name) and not any(is_percentage(r.cells[name]) for r in table.rows):
            guess.formulas[name] = f"{alias(name)} / 100"


def _leave_texts(guess: _Guess, table: Table) -> None:
    """Take remarks and clocks out of the parameters."""
    for name in [parameter for parameter in guess.parameters if _numbers(table, parameter) is None]:
        texts = [str(row.cells[name]).strip() for row in table.rows if row.cells[name]]
        if all(_CLOCK.fullmatch(text) for text in texts):
            guess.clocks.append(name)
        if name in guess.clocks or _REMARK.fullmatch(_name_words(name)[-1]):
            guess.parameters.remove(name)
            guess.ignore.append(name)


def _failed(words: Sequence[str]) -> list[str]:
    """Of a column's words those of runs that did not finish; none where it says anything else."""
    failed = [word for word in words if _FAILED.fullmatch(word)]
    return failed if all(_DONE.fullmatch(word) for word in words if word not in failed) else []


def _cause(word: str) -> str:
    """The cause of failure that a word names; empty of a run that was cut."""
    return next((cause.value for pattern, cause in _CAUSES if pattern.fullmatch(word)), "")


def _ends(column: str, words: Sequence[str]) -> dict[str, Any]:
    """What a map says of a column's words of runs that failed, or were cut."""
    causes = {word: cause for word in words if (cause := _cause(word))}
    cut = [word for word in words if word not in causes]
    of = (("failed", causes), ("unfinished", cut))
    return {key: {"column": column, "values": values} for key, values in of if values}


def _place(guess: _Guess, name: str, values: list[float] | None, whole: bool) -> None:
    """Put a column where its name and its values belong."""
    if name == INDEX or name.startswith("Unnamed:") or values == []:
        guess.ignore.append(name)
    elif values is None:
        guess.parameters.append(name)
    elif whole and _REPEAT.fullmatch(alias(name).lower()) and guess.repeat is None:
        guess.repeat = name
    elif _is(_STD, name):
        guess.stds.append(name)
    elif whole and _COUNT.fullmatch(alias(name).lower()):
        guess.counts.append(name)
    elif _is(_EFFICIENCY, name):
        guess.efficiencies.append(name)
    elif _is(_COMPUTED, name):
        guess.ignore.append(name)
    elif (whole and _counts(name)) or _POSITION.fullmatch(_name_words(name)[-1]):
        guess.parameters.append(name)  # a count of nodes beside that of cores; an epoch's number
    elif _rates(name) or _times(name) or _is(_MERIT, name) or _is(_SHARE, name):
        guess.metrics.append(name)
    elif _SAMPLES.fullmatch(alias(name).lower()) and guess.samples is None and whole:
        guess.samples = name
    elif whole and (_is(_SETTING, name) or len(set(values)) <= max(1, len(values) // 4)):
        guess.parameters.append(name)
    else:
        guess.others.append(name)


def _content(table: Table, guess: _Guess) -> dict[str, Any]:
    """The map that a guess gives, as the keys of its YAML file; columns of no use are under
    ``ignore``."""
    content: dict[str, Any] = {
        "name": _name(table.file.stem, "published") + "_table",
        "summary": f"Published table {table.file.name}.",
    }
    ignore = list(guess.ignore)
    parameters: dict[str, Any] = {"ranks": {"column": guess.ranks} if guess.ranks else {"value": 1}}
    for column in guess.parameters:
        parameters[_fresh(_name(column, "parameter"), parameters)] = {"column": column}
    if guess.samples:
        per_rank = _per_rank(table, guess)
        if per_rank is not None and guess.ranks:
            text = f"{alias(guess.samples)} / {alias(guess.ranks)}"
            parameters["samples_per_rank"] = {"formula": text, "unit": "samples"}
            content["work"] = {"scope": "rank", "samples": "samples_per_rank"}
            content["scaling"] = "weak"
        elif len(set(_numbers(table, guess.samples) or [])) == 1:
            parameters["total_samples"] = {"column": guess.samples, "unit": "samples"}
            content["work"] = {"scope": "total", "samples": "total_samples"}
            content["scaling"] = "strong"
        else:
            ignore.append(guess.samples)
    content["parameters"] = parameters
    if guess.scale not in ("", "ranks") and guess.scale not in parameters:
        content["scale"] = guess.scale
    families = _families(guess)
    if families:
        ignore += _add_families(content, guess, families)
    elif not guess.metrics and len(guess.others) > 1:
        _add_wide(content, guess)
    else:
        ignore += _add_metrics(content, guess)
    if guess.repeat:
        content["repeat"] = guess.repeat
    if guess.unfinished:
        column, words = guess.unfinished
        content |= _ends(column, words)
    if ignore:
        content["ignore"] = list(dict.fromkeys(ignore))
    return content


def _in_percent(table: Table, column: str) -> bool:
    """Whether a column's numbers are percentages: by its name, or as a share of more than all."""
    if _PERCENT.search(column):
        return True
    return _is(_UTILISATION, column) and any(n > 1 for n in _numbers(table, column) or [])


def _name(text: str, otherwise: str) -> str:
    """A plain word made of any text."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    word = word if word[:1].isalpha() else f"{otherwise}_{word}".strip("_")
    reserved = word in {*OF_RUNS, *OF_TABLES, *RESERVED, "ranks_per_node"}
    return f"published_{word}" if reserved else word


def _fresh(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _per_rank(table: Table, guess: _Guess) -> float | None:
    """Samples of a rank, where they are the same in every row."""
    if guess.ranks is None or guess.samples is None:
        return None
    each = set()
    for row in table.rows:
        samples, ranks = (table.number(row.cells[name]) for name in (guess.samples, guess.ranks))
        if samples is not None and ranks:
            each.add(samples / ranks)
    return each.pop() if len(each) == 1 else None


def _meaning(column: str) -> dict[str, Any]:
    """Unit, direction and scope that a metric's name suggests."""
    local = any(word in ("local", "rank") for word in _name_words(column)) or _of_each(column)
    scope = "rank" if local else "total"
    if _is(_SHARE, column) or _is(_EFFICIENCY, column):
        return {"unit": "1", "better": "higher", "scope": scope, "kind": "intensive"}
    if _rates(column):
        unit = "images/s" if "im" in alias(column).lower()[:2] else "samples/s"
        unit = "tokens/s" if _TOKENS.search(column) else unit
        return {"unit": unit, "better": "higher", "scope": scope}
    if _times(column):
        words = _name_words(column)
        unit = next((word for word in ("ms", "us", "min", "h") if word in words), "s")
        return {"unit": unit, "better": "lower", "scope": scope}
    return {"unit": "1", "better": "higher", "scope": scope}


def _families(guess: _Guess) -> dict[str, dict[str, str]]:
    """Metrics that are there several times: {stem: {suffix: column}}; empty if none is."""
    stems: dict[str, dict[str, str]] = {}
    for column in guess.ordered:
        stem, _, suffix = column.rpartition("_")
        if stem and not _of_each(column):
            stems.setdefault(stem, {})[suffix] = column
    for column in guess.metrics:
        if column in stems:
            stems[column] = {"": column, **stems[column]}
    return {stem: variants for stem, variants in stems.items() if len(variants) > 1}


def _add_families(
    content: dict[str, Any], guess: _Guess, families: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Add the metrics that stand side by side; returns the columns that are left."""
    suffixes = list(dict.fromkeys(suffix for it in families.values() for suffix in it))
    plain = next((_PLAIN[suffix] for suffix in suffixes if suffix in _PLAIN), "plain")
    metrics: dict[str, Any] = {}
    values: dict[str, Any] = {}
    used: set[str] = set()
    for stem, variants in families.items():
        name = _fresh(_metric_name(stem), {**metrics, **content["parameters"]})
        metrics[name] = _meaning(stem)
        for suffix, column in variants.items():
            spec, more = _with_companions(column, guess, suffix)
            values.setdefault(suffix or plain, {})[name] = spec
            used |= {column, *more}
    content["metrics"] = metrics
    parameter = _fresh("variant", content["parameters"])
    content["side_by_side"] = {"parameter": parameter, "values": values}
    columns = [*guess.metrics, *guess.others, *guess.stds, *guess.counts, *guess.efficiencies]
    return [column for column in columns if column not in used]


def _metric_name(stem: str) -> str:
    words = [word for word in _name_words(stem) if word not in ("mean", "avg", "average")]
    name = _name("_".join(words), "metric")
    # Which FLOP a table counts it rarely says in the heading.
    unnamed = flop_metric(name) if unnamed_convention(name) else None
    return f"{unnamed.stem}_{UNSTATED}" if unnamed else name


def _with_companions(column: str, guess: _Guess, suffix: str) -> tuple[Any, list[str]]:
    """A metric's column with those of its deviation, count and printed efficiency."""
    source = guess.source(column)
    spec: dict[str, Any] = source if isinstance(source, dict) else {"column": source}
    spec, used, words = dict(spec), [], _name_words(column)
    for other in guess.stds:
        rest = [
            word for word in _name_words(other) if not _STD.fullmatch(word) and word not in _UNITS
        ]
        plain = [word for word in words if word not in ("mean", "avg", "average")]
        alone = not rest and len(guess.metrics) == 1
        if alone or rest in (words, plain, [word for word in plain if word not in _UNITS]):
            spec["std"] = guess.source(other, column)
            used = [other]
    if "std" in spec and guess.counts:
        spec["count"] = guess.counts[0]
        used.append(guess.counts[0])
    for other in guess.efficiencies:
        rest = [word for word in _name_words(other) if not _EFFICIENCY.fullmatch(word)]
        others = set(rest)
        alone = len(guess.metrics) == 1 and others <= _GENERIC and "efficiency" not in spec
        if alone or (
            _is(_RATE, column) and rest in ([suffix] if suffix else [], [*_stem(words, suffix)])
        ):
            spec["efficiency"] = guess.source(other)
            used.append(other)
    return (spec if len(spec) > 1 or "formula" in spec else column), used


def _stem(words: Sequence[str], suffix: str) -> list[str]:
    """What tells a metric from others of its kind: ``local`` of local_throughput_mean_init."""
    return [
        word
        for word in words
        if not (_RATE.fullmatch(word) or _TIME.fullmatch(word) or word in ("mean", "avg"))
    ]


def _add_wide(content: dict[str, Any], guess: _Guess) -> None:
    """Add columns of one metric: their headings are the values of a parameter."""
    parameter = _fresh("variant", content["parameters"])
    metric = _fresh("published_value", content["parameters"])
    content["metrics"] = {metric: {"unit": "1", "better": "higher", "scope": "total"}}
    content["side_by_side"] = {
        "parameter": parameter,
        "workload": True,
        "values": {column: {metric: column} for column in guess.others},
    }


def _add_metrics(content: dict[str, Any], guess: _Guess) -> list[str]:
    """Add a metric for each column; returns the columns that are left."""
    metrics: dict[str, Any] = {}
    used: set[str] = set()
    for column in guess.ordered or guess.others:
        spec, more = _with_companions(column, guess, "")
        spec = spec if isinstance(spec, dict) else {"column": spec}
        name = _fresh(_metric_name(column), {**metrics, **content["parameters"]})
        metrics[name] = {**spec, **_meaning(column)}
        used |= {column, *more}
    # A printed efficiency that belongs to no metric of the table is one itself.
    for column in [name for name in guess.efficiencies if name not in used]:
        name = _fresh(_metric_name(column), {**metrics, **content["parameters"]})
        source = guess.source(column)
        spec = source if isinstance(source, dict) else {"column": source}
        metrics[name] = {**spec, **_meaning(column)}
        used.add(column)
    content["metrics"] = metrics
    columns = [*guess.metrics, *guess.others, *guess.stds, *guess.counts, *guess.efficiencies]
    return [column for column in columns if column not in used]
