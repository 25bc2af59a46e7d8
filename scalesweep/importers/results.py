"""Small result files: histories of Keras's and rates of Lightning's CSVLogger, what Hugging Face's
Trainer leaves, DLIO's summaries.

``resources/imported/NAME.yaml`` declares each: ``files`` (names, the best first), ``sign`` (of a
line), ``needs`` (facts of a whole file), ``reads`` (parameters and metrics as expressions over
facts), ``refuse`` and ``unfinished`` (expressions, each with a reason). Facts are what a file of
JSON states, lists as their means and dates in seconds; of CSV the ``way`` of each column: its last
value, or its median.
"""

import contextlib
import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import PACKED, Line, open_packed
from scalesweep.compute.log_starts import value_of
from scalesweep.core.expressions import Expression, alias
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import finite
from scalesweep.core.visible import visible
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Refusal,
    declared_metrics,
)
from scalesweep.importers.made_benchmark import declared, made_of
from scalesweep.importers.write_campaign import plain_name

Lines = Callable[[], Iterable[Line]]
# Folders whose names say nothing of the training.
_INNER = re.compile(
    r"checkpoint-\d{1,9}|trainer_output|output|results?|version_\d{1,6}|lightning_logs|csv(?:_logs)?"
    r"|logs?"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*")
# A clock that grows by so many times more a batch in one place is not the training's: Lightning
# 2.2 adds a time up again with every evaluation (throughput_monitor.py, on_validation_end).
_JUMP = 20
_HALF_DIGIT, _SUM_AGREES = 5e-5, 0.02  # of losses, which are logged with four decimals


@dataclass
class _Result:
    """What a file, or a training in it, states: facts by name, arrays [row, 1]."""

    facts: dict[str, Any]
    samples: dict[str, Floats] = field(default_factory=dict)
    line: int | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of result file, by the name of its declaration."""

    name: str
    results: Callable[["Kind", Lines, Path], Iterator[_Result]]

    @cached_property
    def said(self) -> Mapping[str, Any]:
        """Its declaration."""
        return declared(self.name)

    @cached_property
    def sign(self) -> re.Pattern[str]:
        """What a line of such a file has."""
        return re.compile(self.said["sign"])

    def called(self, file: Path) -> bool:
        """Whether a file has the name of one of them: signs may stand in other files, too."""
        return any(fnmatch(_name(file), name) for name in self.said.get("files", ("*",)))

    def read(self, lines: Lines, file: Path, ranks: int | None) -> Iterator[ImportedRun | Refusal]:
        """The runs of a file, or why it has none; ``ranks`` of those that state none."""
        try:
            for result in self.results(self, lines, file):
                yield self._run(result, file, ranks)
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line, self.name)

    def _run(self, result: _Result, file: Path, ranks: int | None) -> ImportedRun:
        """The run of a result; of ``ranks``, or of one if neither they nor the file say it."""
        facts, reads = result.facts, self.said["reads"]
        if lacking := [name for name in self.said.get("needs", ()) if not finite(facts.get(name))]:
            raise ImportRefusedError(f"no {lacking[0]}: is it whole?", result.line)
        if reason := _first(self.said.get("refuse", ()), facts):
            raise ImportRefusedError(reason, result.line)
        stated = _value(reads.get("ranks", "null"), facts)
        if stated and abs(stated / max(round(stated), 1) - 1) > 0.02:
            raise ImportRefusedError(f"{stated:g} ranks, by {reads['ranks']}", result.line)
        count = facts["ranks"] = round(stated) if stated else ranks or 1
        unfinished = _first(self.said.get("unfinished", ()), facts)
        values = {name: _value(text, facts) for name, text in reads.items() if name != "ranks"}
        metrics = {n: it for n, it in values.items() if not (unfinished and n != "run_time")}
        made = made_of(self.said)
        point = {n: it for n, it in values.items() if n in made.parameters and it is not None}
        if values.get("ranks_per_node"):
            point["ranks_per_node"] = values["ranks_per_node"]
        times = [facts[it] for it in ("start", "end") if finite(facts.get(it))]
        dates = [datetime.fromtimestamp(it, UTC) for it in times]
        origin = "the file" if stated else "--ranks" if ranks else "one, as none are named"
        return ImportedRun(
            benchmark=self.name,
            made=made,
            point={"ranks": count, **point},
            variant={} if stated or ranks else {"ranks": "not stated"},
            file=file,
            line=result.line,
            source_digest=digest_of([self.name, repr(sorted(facts.items())), repr(result.samples)]),
            started=dates[0] if dates else None,
            ended=max(dates) if dates else None,
            samples=result.samples,
            metrics=declared_metrics(self.name, metrics),
            notes={"importer": self.said["program"], "assumed": {"ranks": origin}},
            unfinished=unfinished,
        )


def _value(text: str, facts: Mapping[str, Any]) -> Any:
    """The value of an expression; None where it needs what is not known."""
    return value_of(Expression(str(text), "declaration"), facts)


def _first(rules: Iterable[Mapping[str, str]], facts: Mapping[str, Any]) -> str:
    """The reason of the first rule that holds; empty if none does."""
    held = (rule["reason"] for rule in rules if _value(rule["when"], facts))
    return next(held, "").format_map(facts)


def _name(file: Path) -> str:
    """A file's name without the ending of gzip or xz."""
    return file.name.removesuffix(".gz").removesuffix(".xz")


def _folder(file: Path) -> str | None:
    """The nearest folder whose name says something of the training, without a repeat's number."""
    names = (folder.name for folder in file.absolute().parents)
    name = next((name for name in names if name and not _INNER.fullmatch(name)), "")
    return plain_name(visible(name))[:100] or None


def _json(kind: Kind, _lines: Lines, file: Path) -> Iterator[_Result]:
    """The training of a file of JSON; nothing if a better one is beside it."""
    if not is_part(file):
        yield _Result({"folder": _folder(file), **_facts(file)})


def is_part(file: Path) -> bool:
    """Whether another file of the same training beside this one is read for it."""
    for kind in KINDS:
        names = kind.said.get("files", ())
        for better in names[: names.index(_name(file))] if _name(file) in names else ():
            for path in (file.with_name(better + end) for end in ("", *PACKED)):
                try:
                    if kind.said["needs"][0] in _facts(path):
                        return True
                except (OSError, ImportRefusedError):
                    continue
    return False


def _facts(file: Path) -> dict[str, Any]:
    """What an object of JSON states, by plain names. Raises ImportRefusedError, OSError."""
    try:
        with open_packed(file) as unpacked:
            content = json.loads(unpacked.read())
    except (ValueError, RecursionError):
        raise ImportRefusedError("not JSON: cut or damaged?") from None
    if not isinstance(content, dict):
        raise ImportRefusedError(f"a {type(content).__name__} of JSON, not an object")
    facts: dict[str, Any] = {}
    inner = content.get("metric")  # of DLIO
    inner = inner if isinstance(inner, dict) else {}
    for name, value in {**content, **inner, **_ended(content)}.items():
        if isinstance(value, list) and value and all(map(finite, value)):
            facts[f"mean_{alias(name)}"] = float(np.mean(value))
        elif isinstance(value, str) and _DATE.fullmatch(value[:40]):
            with contextlib.suppress(ValueError):  # without a zone it is taken for UTC
                facts[alias(name)] = datetime.fromisoformat(f"{value}+00:00").timestamp()
        elif finite(value) or isinstance(value, str | None):
            facts[alias(name)] = value
    return facts


def _ended(content: Mapping[str, Any]) -> dict[str, Any]:
    """What the last training in ``log_history`` of trainer_state.json says when it has ended, with
    the number of earlier calls that did a part of the steps.

    Its entry has a time and no loss; with ``include_num_input_tokens_seen`` each logged loss has a
    time, too. ``train_loss`` is the sum of all losses since the call began over all steps
    (transformers, trainer.py: _inner_training_loop): the logged ones, each the mean of the steps
    since the one before, sum up to more where an earlier call did a part.
    """
    history = content.get("log_history")
    entries = [it for it in history if isinstance(it, dict)] if isinstance(history, list) else []
    ended = [it for it in entries if "train_runtime" in it and "loss" not in it]
    if not ended:
        return {}
    logged, before = 0.0, 0
    for entry in (it for it in entries if finite(it.get("loss")) and finite(it.get("step"))):
        logged += (entry["loss"] - _HALF_DIGIT) * (entry["step"] - before)
        before = entry["step"]
    last, steps = ended[-1], ended[0].get("step")
    earlier = len(ended) - 1
    if not earlier and finite(last.get("train_loss")) and finite(steps):
        earlier = logged > (abs(last["train_loss"]) + _HALF_DIGIT) * steps * (1 + _SUM_AGREES)
    return {**last, "earlier_calls": int(earlier)}


def _rows(lines: Lines, sign: re.Pattern[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells of each row behind a line that ``sign`` matches (an empty row), by the
    header's names; a cut last row is left out. Raises ImportRefusedError."""
    names: list[str] = []
    separator, broken = ",", ""
    for line in lines():
        text = line.text.strip("\r\n")
        if not text.strip():
            continue
        if broken:
            raise ImportRefusedError(broken, line.number - 1)
        headed = sign.match(text) is not None
        if headed:
            separator = next(mark for mark in ",;\t" if mark in text)
        elif not names:
            raise ImportRefusedError("not CSV with a header", line.number)
        fields = next(csv.reader([text], delimiter=separator))
        cells = [cell.strip().strip('"\ufeff') for cell in fields]
        names = cells if headed else names
        if len(cells) == len(names):
            yield line.number, {} if headed else dict(zip(names, cells, strict=True))
        else:
            broken = f"{len(cells)} fields, not {len(names)}: a cut line?"


def _cell(name: str, cell: str, line: int) -> float:
    """The number in a cell; NaN if it is empty or says so. Raises ImportRefusedError."""
    if cell.lower() in ("", "na", "none"):
        return math.nan
    try:
        return float(cell)
    except ValueError:
        raise ImportRefusedError(f"{name} {cell[:30]!a} is not a number", line) from None


def _keras(kind: Kind, lines: Lines, file: Path) -> Iterator[_Result]:
    """Each training of a history: it begins at epoch 0, also if it was appended."""
    name = re.sub(r"\.(?:csv|log|txt|tsv)$", "", _name(file))
    trainings: list[tuple[int, list[dict[str, float]]]] = []
    columns: Mapping[str, str] = kind.said["columns"]
    for line, cells in _rows(lines, kind.sign):
        if not cells:
            continue
        if cells["epoch"] == "0":
            trainings.append((line, []))
        if not trainings or cells["epoch"] != str(len(trainings[-1][1])):
            raise ImportRefusedError(f"epoch {cells['epoch'][:20]} is not the next", line)
        row = {columns[it]: _cell(it, cells[it], line) for it in cells if it in columns}
        trainings[-1][1].append(row)
    if not trainings:
        raise ImportRefusedError("a header without an epoch", 1)
    for line, rows in trainings:
        arrays = {name: np.array([[row[name]] for row in rows]) for name in rows[0]}
        samples = {name: array for name, array in arrays.items() if np.isfinite(array).any()}
        if not samples:
            raise ImportRefusedError("no loss and no accuracy in any epoch", line)
        last = {name: float(array[-1, 0]) for name, array in samples.items()}
        said = {"history": plain_name(visible(name))[:100] or None, "epochs_run": len(rows)}
        yield _Result({**said, **last}, samples, line)


def _lightning(kind: Kind, lines: Lines, file: Path) -> Iterator[_Result]:
    """The training of a metrics.csv. Rows are sparse; names are train/KEY and train/device/KEY,
    with any mark for the bar."""
    cells: dict[str, list[float]] = {}
    headers = 0
    for line, row in _rows(lines, kind.sign):
        headers += not row
        if headers > 1:
            raise ImportRefusedError("a second header: of several trainings?", line)
        for name, cell in row.items():
            if name.startswith("train") and cell:
                plain = alias(re.sub(r"^train\W", "", name))
                cells.setdefault(plain, []).append(_cell(name, cell, line))
    columns = {
        name: np.array([it for it in values if 0 < it < math.inf]) for name, values in cells.items()
    }
    facts: dict[str, Any] = {name: float(np.median(it)) for name, it in columns.items() if len(it)}
    rates = columns.get("device_batches_per_sec", np.array([]))
    facts |= {"folder": _folder(file), "windows": len(rates)}
    times, done = np.array(cells.get("time", [])), np.diff(cells.get("batches", []))
    if len(times) == len(done) + 1 > 1:
        each = np.diff(times)[done > 0] / done[done > 0]
        facts["last_time"] = float(times.max()) if max(each) <= _JUMP * np.median(each) else None
    yield _Result(facts, {"batch_rates": rates[:, None]})


KINDS = (
    Kind("huggingface_trainer", _json),
    Kind("dlio_training", _json),
    Kind("keras_history", _keras),
    Kind("lightning_trainer", _lightning),
)
