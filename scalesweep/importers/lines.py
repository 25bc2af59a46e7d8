"""Runs of programs from their logs, by the readers in ``resources/readers`` or a user's own.

What a log does not state of the model is unknown: no name of a model stands for its size.
"""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalesweep.analysis.device_peaks import DRIVER_NAMES
from scalesweep.compute.log_lines import Line, read_lines, without_srun_label
from scalesweep.compute.log_reader import LONGEST_LINE, Reader
from scalesweep.compute.log_starts import LogError, Start, facts_of, starts_of
from scalesweep.compute.log_steps import arrays_of, kept_lines, metrics_of, steps_of, unfinished
from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.log_patterns import shipped_readers
from scalesweep.core.files import digest_of
from scalesweep.core.paths import BENCHMARKS
from scalesweep.core.visible import visible
from scalesweep.importers.imported_run import GPU, ImportedRun, Refusal
from scalesweep.importers.made_benchmark import Made, declared, entries_of
from scalesweep.importers.write_campaign import Rules

_WORDS = 100  # characters of a text
# What is unknown where it is no number above 0, as of a model without it.
_MODEL = ("layers", "width", "heads", "kv_heads", "ffn_width", "vocabulary")
# What a point has beside its parameters, or other parameters follow from.
_COUNTS = ("ranks", "ranks_per_node", "global_batch_size", "tokens_per_step")


class Look:
    """Looks for lines of progress: whose they are, and whether ``srun --label`` labels them."""

    def __init__(self, readers: Iterable[Reader]) -> None:
        """Looks for lines of these readers."""
        self._marks = [(mark, reader) for reader in readers for mark in reader.marks]
        self.seen: dict[str, tuple[Reader, int]] = {}
        self._srun: dict[str, bool] = {}

    def take(self, line: Line) -> bool:
        """Look at a line; whether it is one of progress."""
        if len(line.text) > LONGEST_LINE:
            return False
        for mark, reader in self._marks:
            bare = without_srun_label(line.text) if mark in line.text else None
            if mark in line.text and reader.sign.search(bare or line.text):
                self.seen.setdefault(reader.program, (reader, line.number))
                labelled = line.rank is None and bare is not None
                self._srun[reader.program] = self._srun.get(reader.program, True) and labelled
                return True
        return False

    def reader(self) -> tuple[Reader, bool]:
        """The one reader of the lines, and whether srun labels all of them.

        Raises LogError for lines of two programs, neither of which runs on the other.
        """
        below = {name for reader, _ in self.seen.values() for name in reader.also}
        readers = [it for it in self.seen.values() if it[0].program not in below]
        if len(readers) > 1:
            (first, at), (second, other) = readers[:2]
            raise LogError(
                f"a line of {second.program} in a log of {first.program} (line {at}): a file is "
                "read as one program's; split it",
                other,
            )
        return readers[0][0], self._srun[readers[0][0].program]


def _is_shipped(reader: Reader) -> bool:
    return (BENCHMARKS / reader.benchmark).is_dir()


def rules_of(reader: Reader) -> Rules:
    """How the runs of a reader become experiments."""
    per_rank = () if _is_shipped(reader) else ("batch_per_rank", "tokens_per_rank")
    return Rules(per_rank=per_rank, along=reader.along)


RULES = {reader.benchmark: rules_of(reader) for reader in shipped_readers().values()}
PROGRAMS = ", ".join(reader.program for reader in shipped_readers().values())


def read_runs(look: Look, file: Path, ranks: int | None = None) -> Iterator[ImportedRun | Refusal]:
    """The runs of a log and the refusals in order; ``look`` has seen all lines of ``file``,
    ``ranks`` are those of a run whose log does not state them."""
    try:
        reader, srun = look.reader()
        for start in starts_of(read_lines(file, srun, collected=True), reader):
            try:
                yield _run(start, reader, file, ranks)
            except LogError as error:
                line = error.line or start.first_line
                yield Refusal(file, str(error), line, reader.benchmark)
    except LogError as error:
        yield Refusal(file, str(error), error.line)


def _run(start: Start, reader: Reader, file: Path, ranks: int | None) -> ImportedRun:
    """The run of one start, of ``ranks`` where the log states no number. Raises LogError."""
    steps = steps_of(reader, start)
    texts = {**start.texts(), **steps.settings}
    kinds = _kinds(reader)
    facts = facts_of(reader, texts, steps.numbers, start.first_line)
    known = _known_of(facts, kinds, start.first_line)
    stated = "ranks" in known
    known = {"ranks": ranks or reader.ranks, **known}
    if known["ranks"] is None:
        raise LogError(
            f"{reader.program} does not state the number of GPUs here: --ranks N", start.first_line
        )
    if len(steps.streams) > known["ranks"]:
        raise LogError(
            f"{len(steps.streams)} ranks print lines of each step, of {known['ranks']} in all",
            start.first_line,
        )
    _check_layout(known, start.first_line)
    kept, warm = kept_lines(steps)
    metrics = metrics_of(steps, kept, {**facts, **known})
    evidence = [
        reader.program, sorted(texts.items()),
        [[[row.step, sorted(row.texts.items())] for row in rows] for rows in steps.streams],
    ]  # fmt: skip
    began: datetime | None = None
    with contextlib.suppress(ValueError):
        began = datetime.fromisoformat(texts.get("began", "")).replace(tzinfo=UTC)
    dates = "of a line of the log, which names no time zone: taken for UTC"
    variant = {name: visible(str(facts[name])) for name in reader.variant if name in facts}
    variant |= {name: visible(text)[:_WORDS] for name, text in texts.items() if name[:2] == "--"}
    variant |= {GPU: known["gpu"]} if "gpu" in known else {}
    first = steps.numbers[0]
    return ImportedRun(
        benchmark=reader.benchmark,
        made=made_of(reader),
        point=_point_of(known, kinds),
        file=file,
        line=start.first_line,
        source_digest=digest_of([repr(part) for part in evidence]),
        started=began,
        ended=began,
        variant=variant if stated or ranks else {**variant, "ranks": "not stated"},
        samples=arrays_of(steps, kept, warm["lines"]),
        metrics=metrics,
        notes={
            "importer": f"{reader.program} log",
            "lines": [start.first_line, start.last_line],
            **({"dates": dates} if began else {}),
            "facts": {name: visible(text)[:_WORDS] for name, text in texts.items()},
            "printers": len(steps.streams),
            "ranks_from": "the log" if stated else "--ranks" if ranks else "assumed",
            "warm_up": warm,
            **({"first_step": first} if first > 1 else {}),
            **({"cut_lines": start.broken} if start.broken else {}),
        },
        command=tuple(texts.get("command", "").split()),
        unfinished=unfinished(warm),
    )


def _kinds(reader: Reader) -> Mapping[str, str]:
    """The types of the parameters of a reader's runs."""
    if _is_shipped(reader):
        parameters = load_benchmark(reader.benchmark).parameters
        return {name: it.types[0] for name, it in parameters.items()}
    return {name: it["type"] for name, it in _parameters(reader).items()}


def _parameters(reader: Reader) -> Mapping[str, Any]:
    return {**declared("trainings")["parameters"], **reader.parameters}


def made_of(reader: Reader) -> Made | None:
    """The benchmark of a reader's runs; None for one that is shipped."""
    if _is_shipped(reader):
        return None
    return Made(
        reader.summary,
        entries_of(_parameters(reader)),
        {name: value.definition for name, value in reader.metrics.items()},
        {key: dict(declared("trainings")[key]) for key in ("mesh", "transformer")},
    )


def _known_of(facts: Mapping[str, Any], kinds: Mapping[str, str], line: int) -> dict[str, Any]:
    """Parameters of the facts, by their ``kinds``. Raises LogError for a number that cannot be."""
    known: dict[str, Any] = {}
    for name, value in facts.items():
        kind = "integer" if name in _COUNTS else kinds.get(name)
        if kind == "string" or name == "gpu":
            known[name] = visible(str(value))[:_WORDS]
        elif kind == "boolean" and isinstance(value, bool):
            known[name] = value
        elif kind in ("integer", "number") and type(value) in (int, float):
            if not 0 < value < 1e18 and name not in _MODEL:
                raise LogError(f"{name} is {value}", line)
            if 0 < value < 1e18:
                known[name] = round(value) if kind == "integer" else value
    if device := DRIVER_NAMES.get(str(known.get("gpu"))):
        known["device"] = device
    return known


def _point_of(known: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of the run: what is of all ranks together, by rank."""
    point = {n: it for n, it in known.items() if n in kinds or n in ("ranks", "ranks_per_node")}
    totals = {"batch_per_rank": "global_batch_size", "tokens_per_rank": "tokens_per_step"}
    for name, total in totals.items():
        if known.get(total) and name in kinds:
            each = known[total] / known["ranks"]
            point[name] = int(each) if each == int(each) else each
    return point


def _check_layout(known: Mapping[str, Any], line: int) -> None:
    """Raises LogError where the ranks cannot share the model as the log says."""
    axes = [name for name in ("tp", "pp", "cp") if known.get(name)]
    size = math.prod(known[name] for name in axes)
    if known["ranks"] % size:
        raise LogError(f"{known['ranks']} ranks, no multiple of {' x '.join(axes)} = {size}", line)
