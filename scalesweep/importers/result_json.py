"""Results of JSON: what Hugging Face's Trainer leaves, and DLIO's summaries."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.log_lines import PACKED
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.result_files import (
    Result,
    count_in,
    named_by_folder,
    number_in,
    plain_file_name,
    read_object,
)

# One time and rate for the whole training, start-up, evaluations and checkpoints included. Of the
# trainer's files in a folder the first named is read: it knows the steps. None states the ranks.
HUGGING_FACE_SIGN = re.compile(r'"train_runtime"\s*:')
_FILES = ("trainer_state.json", "train_results.json", "all_results.json")
# Rates are printed with three decimals: a rate below this is rounded by more than one per cent.
_COARSE = 0.05
# Samples and time agree with a rate of samples, and a sum of losses with that of the training,
# within this; losses are logged with four decimals.
_AGREES, _SUM_AGREES, _HALF_DIGIT = 0.05, 0.02, 5e-5


def is_hugging_face(file: Path) -> bool:
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


def hugging_face(_lines: Any, file: Path) -> Iterator[Result]:
    """The training of a result file; nothing where a better one is beside it."""
    if is_part(file):
        return
    content = read_object(file)
    entries = _entries(content)
    seconds = number_in(entries[-1], "train_runtime", 0) if entries else None
    if seconds is None:
        raise ImportRefusedError("no train_runtime: the training had not ended")
    said = entries[-1]
    result = Result({"run_time": seconds}, {"training": named_by_folder(file)})
    result.notes = {
        key: value
        for key in ("epoch", "total_flos", "train_samples")
        if (value := number_in(said, key)) is not None
    }
    if (batch := count_in(content, "train_batch_size")) is not None:
        result.point["per_device_batch_size"] = batch
    if resumed := _resumed(entries, content):
        result.notes["resumed"] = resumed
        result.unfinished = (
            f"the training was resumed ({resumed}): its time is of the last part only"
        )
    else:
        result.values["final_loss"] = _loss_in(said, "train_loss")
        _add_rates(result, said, seconds)
    result.evidence = sorted((str(key), repr(said[key])) for key in said)
    yield result


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


def _add_rates(result: Result, said: Mapping[str, Any], seconds: float) -> None:
    """Steps, samples and tokens per second, where they are known."""
    steps, printed = count_in(said, "step"), number_in(said, "train_steps_per_second", 0)
    samples = number_in(said, "train_samples_per_second", 0)
    result.values["steps_per_second"] = printed if steps is None else steps / seconds
    result.values["tokens_per_second"] = number_in(said, "train_tokens_per_second", 0)
    coarse = ["steps_per_second"] if steps is None and (printed or 1) < _COARSE else []
    if samples is not None and (printed is not None or _is_of_samples(said, samples, seconds)):
        result.values["samples_per_second"] = samples
        coarse += ["samples_per_second"] if samples < _COARSE else []
    elif samples is not None:
        # transformers of before May 2021 divided steps by the time and called them samples.
        result.notes["samples_per_second"] = (
            f"{samples:g} in the file, without train_steps_per_second: an old version, which "
            "counted steps; left out"
        )
    if coarse:
        result.notes["rounded"] = (
            f"printed with three decimals, more than 1 % off: {', '.join(coarse)}"
        )


def _is_of_samples(said: Mapping[str, Any], rate: float, seconds: float) -> bool:
    """Whether a rate is that of the samples of all epochs."""
    samples, epochs = number_in(said, "train_samples", 0), number_in(said, "epoch", 0)
    if samples is None or epochs is None:
        return False
    return abs(samples * epochs / seconds / rate - 1) < _AGREES


# Summaries of DLIO, which MLPerf Storage runs. Rates are of all accelerators together; what is
# called MB is 2^20 bytes (dlio_benchmark, utils/statscounter.py). The bytes of a sample follow from
# both rates, and tell workloads apart, whose names are in no summary.
DLIO_SIGN = re.compile(r'"train_au_(?:mean_)?percentage"\s*:')
_RATE, _USE = "train_throughput{}_samples_per_second", "train_au{}_percentage"
# A stated mean is that of its list within this; far apart, one of both is wrong.
_SAME, _FAR = 1e-3, 0.1
_MEBI = 2**20
_MOST_EPOCHS = 100_000


def is_dlio(file: Path) -> bool:
    """Whether a file is called as DLIO's summaries are."""
    return plain_file_name(file).endswith("summary.json")


def dlio(_lines: Any, file: Path) -> Iterator[Result]:
    """The run of a summary."""
    content = read_object(file)
    said = content.get("metric")
    if not isinstance(said, dict):
        raise ImportRefusedError("no object 'metric'")
    ranks, hosts = count_in(content, "num_accelerators"), count_in(content, "num_hosts")
    if ranks is None:
        raise ImportRefusedError("no num_accelerators")
    begin, end = (_date(content, key) for key in ("start", "end"))
    result = Result({}, {"ranks": ranks}, span=(begin, end))
    result.notes["expectation"] = str(said.get("train_au_meet_expectation"))[:40]
    rate, use = (_mean(result, said, key) for key in (_RATE, _USE))
    if rate is None:
        raise ImportRefusedError(f"neither {_RATE.format('_mean')} nor {_RATE.format('')}")
    mebibytes = number_in(said, "train_io_mean_MB_per_second", 0)
    result.values = {
        "throughput": rate, "utilisation": use,
        "read_rate": mebibytes and mebibytes * _MEBI,
        "run_time": (end - begin).total_seconds() if end > begin else None,
    }  # fmt: skip
    if hosts is not None and ranks % hosts == 0:
        result.point["ranks_per_node"] = ranks // hosts
    if mebibytes is not None:
        result.point["sample_bytes"] = round(mebibytes * _MEBI / rate)
    for name, key in (("data_files", "num_files_train"), ("samples_per_file", _PER_FILE)):
        if (count := count_in(content, key)) is not None:
            result.point[name] = count
    result.samples = {
        f"{name}_by_epoch": values[:, None]
        for name, key in (("throughput", _RATE), ("utilisation", _USE))
        if (values := _by_epoch(said, key.format(""))).size
    }
    result.evidence = [content.get("start"), content.get("hostname"), said]
    yield result


_PER_FILE = "num_samples_per_file"


def _by_epoch(said: Mapping[str, Any], key: str) -> Floats:
    values = said.get(key)
    if values is None:
        return np.array([], np.float64)
    if not isinstance(values, list) or len(values) > _MOST_EPOCHS:
        raise ImportRefusedError(f"{key} is no list of numbers")
    numbers = [number_in({key: value}, key, 0) for value in values]
    if None in numbers:
        raise ImportRefusedError(f"{key} holds an epoch without a number")
    return np.array(numbers, np.float64)


def _mean(result: Result, said: Mapping[str, Any], name: str) -> float | None:
    """The stated mean, else that of the epochs; where they differ, notes say so.

    Raises ImportRefusedError where they are far apart: one of both is wrong.
    """
    key, values = name.format("_mean"), _by_epoch(said, name.format(""))
    stated = number_in(said, key, 0)
    own = float(values.mean()) if values.size else None
    if stated is not None and own is not None and abs(own / stated - 1) > _SAME:
        apart = f"{stated:g} in the file; the mean of its epochs is {own:g}"
        if abs(own / stated - 1) > _FAR:
            raise ImportRefusedError(f"{key} is {apart}")
        result.notes[key] = apart
    return own if stated is None else stated


def _date(content: Mapping[str, Any], key: str) -> datetime:
    try:
        return datetime.fromisoformat(str(content.get(key))[:40]).replace(tzinfo=UTC)
    except ValueError:
        raise ImportRefusedError(f"{key} {str(content.get(key))[:30]!a} is no date") from None
