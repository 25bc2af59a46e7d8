"""What Hugging Face's Trainer leaves: trainer_state.json, train_results.json, all_results.json.

All three state one time and rate for the whole training, start-up, evaluations and checkpoints
included (transformers, trainer.py: _inner_training_loop; trainer_utils.py: speed_metrics). Of
those in a folder the first named is read: it knows the steps, and its last entry repeats the rest.
Ranks are in none of them.

A training that went on from a checkpoint has one time for its last part only, while steps, rates
and ``train_loss`` (the losses of that part over all steps) are of the whole.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalesweep.compute.log_lines import PACKED
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Refusal,
    file_dates,
    shown,
)
from scalesweep.importers.json_file import (
    count_in,
    metric,
    number_in,
    plain_file_name,
    read_object,
)
from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.repeat_names import plain_name

BENCHMARK = "huggingface_trainer"
MADE = Made(
    "Trainings of Hugging Face's Trainer, by the results that it leaves.",
    {
        "training": parameter_entry(
            "string", "Name of its folder, without the number of a repeat.", None, True
        ),
        "per_device_batch_size": parameter_entry(
            "integer", "train_batch_size of trainer_state.json.", "samples", False
        ),
    },
    {
        "steps_per_second": "steps over train_runtime, start-up and evaluations included",
        "samples_per_second": "train_samples_per_second, of all ranks together",
        "tokens_per_second": "train_tokens_per_second, as the trainer counts tokens",
        "run_time": "train_runtime",
        "final_loss": "train_loss: the mean over the training",
    },
)
SIGN = re.compile(r'"train_runtime"\s*:')
STATE = "trainer_state.json"
_FILES = (STATE, "train_results.json", "all_results.json")
# Folders whose names say nothing of the training.
_INNER = re.compile(r"checkpoint-\d{1,9}|trainer_output|output|results?")
# Rates are printed with three decimals: a rate below this is rounded by more than one per cent.
_COARSE = 0.05
# Samples and time agree with a rate of samples within this.
_AGREES = 0.05
# Losses are logged with four decimals.
_HALF_DIGIT = 5e-5
# A sum of losses is that of the training within this.
_SUM_AGREES = 0.02


def has_name(file: Path) -> bool:
    """Whether a file is called as the trainer's are."""
    return plain_file_name(file) in _FILES


def is_part(file: Path) -> bool:
    """Whether another file of the same training beside this one is read for it."""
    name = plain_file_name(file)
    if name not in _FILES:
        return False
    better = _FILES[: _FILES.index(name)]
    return any(
        _holds_result(file.with_name(other + end)) for other in better for end in ("", *PACKED)
    )


def _holds_result(file: Path) -> bool:
    """Whether a file is there and is one of a training that ended."""
    if not file.is_file():
        return False
    try:
        return bool(_entries(read_object(file)))
    except (OSError, ImportRefusedError):
        return False


def read_file(file: Path, ranks: int | None = None) -> Iterator[ImportedRun | Refusal]:
    """The training of a result file; nothing where a better one is beside it.

    ``ranks``: one if None, and the run's variant then says that they are not stated.
    """
    if is_part(file):
        return
    try:
        yield _run(read_object(file), file, ranks)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), benchmark=BENCHMARK)


def _entries(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What ended trainings say: of a state the entries of its history that have a time.

    With ``include_num_input_tokens_seen`` each logged loss has one too: that since the begin.
    """
    history = content.get("log_history")
    entries = history if isinstance(history, list) else [content]
    return [
        entry
        for entry in entries
        if isinstance(entry, dict) and "train_runtime" in entry and "loss" not in entry
    ]


def _run(content: Mapping[str, Any], file: Path, ranks: int | None) -> ImportedRun:
    entries = _entries(content)
    if not entries:
        raise ImportRefusedError("no train_runtime: the training had not ended")
    said = entries[-1]
    seconds = number_in(said, "train_runtime", 0)
    if seconds is None:
        raise ImportRefusedError("no train_runtime: the training had not ended")
    notes: dict[str, Any] = {
        "importer": "Hugging Face Trainer",
        "times": "one time for the whole training: start-up, evaluations, checkpoints included",
        "dates": file_dates("the file"),
        "assumed": {"ranks": "--ranks" if ranks else "one, as none are named (--ranks N)"},
    }
    for key in ("epoch", "total_flos", "train_samples"):
        if (value := number_in(said, key)) is not None:
            notes[key] = value
    metrics = {"run_time": metric(seconds, "s", "lower")}
    resumed = _resumed(entries, content)
    if resumed:
        notes["resumed"] = resumed
    else:
        if (loss := _loss_in(said, "train_loss")) is not None:
            metrics["final_loss"] = metric(loss, "1", "lower")
        metrics |= _rates(said, seconds, notes)
    point: dict[str, Any] = {"ranks": ranks or 1, "training": _name(file)}
    if (batch := count_in(content, "train_batch_size")) is not None:
        point["per_device_batch_size"] = batch
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return ImportedRun(
        benchmark=BENCHMARK,
        made=MADE,
        point=point,
        variant={} if ranks else {"ranks": "not stated"},
        file=file,
        source_digest=digest_of([sorted((str(key), repr(said[key])) for key in said)]),
        started=modified,
        ended=modified,
        samples={},
        samples_per_epoch=0,
        metrics=metrics,
        notes=notes,
        unfinished=f"the training was resumed ({resumed}): its time is of the last part only"
        if resumed
        else "",
    )


def _resumed(entries: list[Mapping[str, Any]], content: Mapping[str, Any]) -> str:
    """How a state shows that an earlier call did a part of the steps; empty where nothing does.

    ``train_loss`` is the sum of all losses since the call began over all steps (transformers,
    trainer.py: _inner_training_loop): the logged ones, each the mean of the steps since the one
    before, must not sum up to more.
    """
    if len(entries) > 1:
        return f"{len(entries) - 1} earlier calls"
    steps, loss = count_in(entries[0], "step"), _loss_in(entries[0], "train_loss")
    history = content.get("log_history")
    if steps is None or loss is None or not isinstance(history, list):
        return ""
    logged, before = 0.0, 0
    for entry in history:
        if not isinstance(entry, dict) or "loss" not in entry:
            continue
        step, mean = count_in(entry, "step"), _loss_in(entry, "loss")
        if step is None or mean is None or step <= before:
            return ""
        logged += (mean - _HALF_DIGIT) * (step - before)
        before = step
    if logged <= 0 or logged <= (abs(loss) + _HALF_DIGIT) * steps * (1 + _SUM_AGREES):
        return ""
    return f"train_loss is {loss:.4g}, the mean of the logged losses {logged / before:.4g}"


def _loss_in(entry: Mapping[str, Any], key: str) -> float | None:
    """A loss; None where it is not there, or no finite number as of a training that diverged."""
    value = entry.get(key)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return number_in(entry, key)


def _rates(
    said: Mapping[str, Any], seconds: float, notes: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Steps, samples and tokens per second, where they are known."""
    rates: dict[str, dict[str, Any]] = {}
    steps, printed = count_in(said, "step"), number_in(said, "train_steps_per_second", 0)
    coarse: list[str] = []
    if steps is not None:
        rates["steps_per_second"] = metric(steps / seconds, "steps/s", "higher")
    elif printed is not None:
        rates["steps_per_second"] = metric(printed, "steps/s", "higher")
        coarse += ["steps_per_second"] if printed < _COARSE else []
    samples = number_in(said, "train_samples_per_second", 0)
    if samples is not None and (printed is not None or _is_of_samples(said, samples, seconds)):
        rates["samples_per_second"] = metric(samples, "samples/s", "higher")
        coarse += ["samples_per_second"] if samples < _COARSE else []
    elif samples is not None:
        # transformers of before May 2021 divided steps by the time and called them samples.
        notes["samples_per_second"] = (
            f"{samples:g} in the file, without train_steps_per_second: an old version, which "
            "counted steps; left out"
        )
    if (tokens := number_in(said, "train_tokens_per_second", 0)) is not None:
        rates["tokens_per_second"] = metric(tokens, "tokens/s", "higher")
    if coarse:
        notes["rounded"] = f"printed with three decimals, more than 1 % off: {', '.join(coarse)}"
    return rates


def _is_of_samples(said: Mapping[str, Any], rate: float, seconds: float) -> bool:
    """Whether a rate is that of the samples of all epochs."""
    samples, epochs = number_in(said, "train_samples", 0), number_in(said, "epoch", 0)
    if samples is None or epochs is None:
        return False
    return abs(samples * epochs / seconds / rate - 1) < _AGREES


def _name(file: Path) -> str | None:
    """The nearest folder whose name says something of the training."""
    for folder in file.absolute().parents:
        if folder.name and not _INNER.fullmatch(folder.name):
            return plain_name(shown(folder.name))[:100] or None
    return None
