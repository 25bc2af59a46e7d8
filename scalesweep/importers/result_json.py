"""Results of JSON: what Hugging Face's Trainer leaves, and DLIO's summaries."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.compute.log_lines import PACKED, open_packed
from scalesweep.core.formatting import finite
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.result_files import Kind, Lines, Result, file_name, folder_name

_Said = Mapping[str, Any]


def _object_in(file: Path) -> dict[str, Any]:
    """The object of JSON in a file. Raises ImportRefusedError, OSError if it cannot be read."""
    try:
        with open_packed(file) as unpacked:
            content = json.loads(unpacked.read())
    except (ValueError, RecursionError):
        raise ImportRefusedError("not JSON: cut or damaged?") from None
    if not isinstance(content, dict):
        raise ImportRefusedError(f"a {type(content).__name__} of JSON, not an object")
    return content


def _number(content: _Said, key: str, least: float = -math.inf) -> float | None:
    """A number above ``least``; None if the key is not there or null. Raises ImportRefusedError."""
    value = content.get(key)
    if value is None:
        return None
    if not finite(value):
        raise ImportRefusedError(f"{key} {str(value)[:30]!a} is not a number")
    if value <= least:
        raise ImportRefusedError(f"{key} {value:g} is not above {least:g}")
    return float(value)


def _count(content: _Said, key: str) -> int | None:
    """A whole number above 0; None if the key is not there, null, 0 or -1 (no limit)."""
    value = _number(content, key)
    if value is None or value in (-1, 0):
        return None
    if value != int(value) or not 0 < value < 2**53:
        raise ImportRefusedError(f"{key} {value:g} is not a whole number")
    return int(value)


# What Hugging Face's Trainer leaves: one time and rate for the whole training, start-up,
# evaluations and checkpoints included. Of its files in a folder the first named is read: it knows
# the steps. None states the ranks.
_HUGGING_FACE = re.compile(r'"train_runtime"\s*:')
_FILES = ("trainer_state.json", "train_results.json", "all_results.json")
# Rates are printed with three decimals: a rate below this is rounded by more than one per cent.
_COARSE = 0.05
# Samples and time agree with a rate of samples, and a sum of losses with that of the training,
# within this; losses are logged with four decimals.
_AGREES, _SUM_AGREES, _HALF_DIGIT = 0.05, 0.02, 5e-5


def is_part(file: Path) -> bool:
    """Whether another file of the same training beside this one is read for it."""
    name = file_name(file)
    better = _FILES[: _FILES.index(name)] if name in _FILES else ()
    return any(
        _holds_result(file.with_name(other + end)) for other in better for end in ("", *PACKED)
    )


def _holds_result(file: Path) -> bool:
    try:
        return file.is_file() and bool(_ended(_object_in(file)))
    except (OSError, ImportRefusedError):
        return False


def _ended(content: _Said) -> list[_Said]:
    """What ended trainings say: of a state the entries of its history that have a time and no loss
    (with ``include_num_input_tokens_seen`` each logged loss has a time, too)."""
    history = content.get("log_history")
    entries = history if isinstance(history, list) else [content]
    ended = [it for it in entries if isinstance(it, dict) and "train_runtime" in it]
    return [entry for entry in ended if "loss" not in entry]


def _hugging_face(_lines: Lines, file: Path) -> Iterator[Result]:
    """The training of a result file; nothing if a better one is beside it."""
    if is_part(file):
        return
    content = _object_in(file)
    entries = _ended(content)
    seconds = _number(entries[-1], "train_runtime", 0) if entries else None
    if seconds is None:
        raise ImportRefusedError("no train_runtime: the training had not ended")
    said = entries[-1]
    result = Result({"run_time": seconds}, {"training": folder_name(file)})
    numbers = {key: _number(said, key) for key in ("epoch", "total_flos", "train_samples")}
    result.notes = {key: value for key, value in numbers.items() if value is not None}
    if (batch := _count(content, "train_batch_size")) is not None:
        result.point["per_device_batch_size"] = batch
    if resumed := _resumed(entries, content):
        result.notes["resumed"] = resumed
        result.unfinished = (
            f"the training was resumed ({resumed}): its time is of the last part only"
        )
    else:
        result.values["final_loss"] = _loss(said, "train_loss")
        _add_rates(result, said, seconds)
    result.evidence = sorted((str(key), repr(said[key])) for key in said)
    yield result


def _resumed(entries: list[_Said], content: _Said) -> str:
    """How a state shows that an earlier call did a part of the steps; empty if nothing does.

    ``train_loss`` is the sum of all losses since the call began over all steps (transformers,
    trainer.py: _inner_training_loop): the logged ones, each the mean of the steps since the one
    before, must not sum up to more.
    """
    if len(entries) > 1:
        return f"{len(entries) - 1} earlier calls"
    steps, loss = _count(entries[0], "step"), _loss(entries[0], "train_loss")
    history = content.get("log_history")
    if steps is None or loss is None or not isinstance(history, list):
        return ""
    logged, before = 0.0, 0
    for entry in (it for it in history if isinstance(it, dict) and "loss" in it):
        step, mean = _count(entry, "step"), _loss(entry, "loss")
        if step is None or mean is None or step <= before:
            return ""
        logged += (mean - _HALF_DIGIT) * (step - before)
        before = step
    if logged <= 0 or logged <= (abs(loss) + _HALF_DIGIT) * steps * (1 + _SUM_AGREES):
        return ""
    return f"train_loss is {loss:.4g}, the mean of the logged losses {logged / before:.4g}"


def _loss(entry: _Said, key: str) -> float | None:
    """A loss; None if it is not there, or no finite number as of a training that diverged."""
    value = entry.get(key)
    diverged = isinstance(value, float) and not math.isfinite(value)
    return None if diverged else _number(entry, key)


def _add_rates(result: Result, said: _Said, seconds: float) -> None:
    """Steps, samples and tokens per second, as far as they are known."""
    steps, printed = _count(said, "step"), _number(said, "train_steps_per_second", 0)
    rate = _number(said, "train_samples_per_second", 0)
    result.values["steps_per_second"] = printed if steps is None else steps / seconds
    result.values["tokens_per_second"] = _number(said, "train_tokens_per_second", 0)
    coarse = ["steps_per_second"] if steps is None and (printed or 1) < _COARSE else []
    samples, epochs = _number(said, "train_samples", 0), _number(said, "epoch", 0)
    agrees = samples and epochs and rate and abs(samples * epochs / seconds / rate - 1) < _AGREES
    if rate is not None and (printed is not None or agrees):
        result.values["samples_per_second"] = rate
        coarse += ["samples_per_second"] if rate < _COARSE else []
    elif rate is not None:
        # transformers of before May 2021 divided steps by the time and called them samples.
        result.notes["samples_per_second"] = (
            f"{rate:g} in the file, without train_steps_per_second: an old version, which "
            "counted steps; left out"
        )
    if coarse:
        names = ", ".join(coarse)
        result.notes["rounded"] = f"printed with three decimals, more than 1 % off: {names}"


# Summaries of DLIO, which MLPerf Storage runs. Rates are of all accelerators together; what is
# called MB is 2^20 bytes (dlio_benchmark, utils/statscounter.py). The bytes of a sample follow from
# both rates, and tell workloads apart, whose names are in no summary.
_DLIO = re.compile(r'"train_au_(?:mean_)?percentage"\s*:')
_RATE, _USE = "train_throughput{}_samples_per_second", "train_au{}_percentage"
# A stated mean is that of its list within this; far apart, one of both is wrong.
_SAME, _FAR = 1e-3, 0.1
_MEBI = 2**20


def _dlio(_lines: Lines, file: Path) -> Iterator[Result]:
    """The run of a summary."""
    content = _object_in(file)
    said = content.get("metric")
    if not isinstance(said, dict):
        raise ImportRefusedError("no object 'metric'")
    ranks, hosts = _count(content, "num_accelerators"), _count(content, "num_hosts")
    if ranks is None:
        raise ImportRefusedError("no num_accelerators")
    begin, end = (_date(content, key) for key in ("start", "end"))
    result = Result({}, {"ranks": ranks}, span=(begin, end))
    result.notes["expectation"] = str(said.get("train_au_meet_expectation"))[:40]
    rate, use = _mean(result, said, _RATE, "throughput"), _mean(result, said, _USE, "utilisation")
    if rate is None:
        raise ImportRefusedError(f"neither {_RATE.format('_mean')} nor {_RATE.format('')}")
    mebibytes = _number(said, "train_io_mean_MB_per_second", 0)
    result.values = {
        "throughput": rate, "utilisation": use,
        "read_rate": mebibytes and mebibytes * _MEBI,
        "run_time": (end - begin).total_seconds() if end > begin else None,
    }  # fmt: skip
    if hosts is not None and ranks % hosts == 0:
        result.point["ranks_per_node"] = ranks // hosts
    if mebibytes is not None:
        result.point["sample_bytes"] = round(mebibytes * _MEBI / rate)
    for name, key in (
        ("data_files", "num_files_train"),
        ("samples_per_file", "num_samples_per_file"),
    ):
        if (count := _count(content, key)) is not None:
            result.point[name] = count
    result.evidence = [content.get("start"), content.get("hostname"), said]
    yield result


def _mean(result: Result, said: _Said, key: str, name: str) -> float | None:
    """The stated mean, else that of the epochs, which are kept; notes say where they differ.

    Raises ImportRefusedError if they are far apart: one of both is wrong.
    """
    stated, listed = _number(said, key.format("_mean"), 0), said.get(key.format(""))
    if listed is None:
        return stated
    if (
        not isinstance(listed, list)
        or not all(finite(it) and it > 0 for it in listed)
        or not listed
    ):
        raise ImportRefusedError(f"{key.format('')} is no list of numbers above 0")
    result.samples[f"{name}_by_epoch"] = np.array(listed, np.float64)[:, None]
    own = float(np.mean(listed))
    if stated is not None and abs(own / stated - 1) > _SAME:
        apart = f"{stated:g} in the file; the mean of its epochs is {own:g}"
        if abs(own / stated - 1) > _FAR:
            raise ImportRefusedError(f"{key.format('_mean')} is {apart}")
        result.notes[key.format("_mean")] = apart
    return own if stated is None else stated


def _date(content: _Said, key: str) -> datetime:
    try:
        return datetime.fromisoformat(str(content.get(key))[:40]).replace(tzinfo=UTC)
    except ValueError:
        raise ImportRefusedError(f"{key} {str(content.get(key))[:30]!a} is no date") from None


# The names of the files are known besides: their signs may stand in tables and reports too.
KINDS = (
    Kind("huggingface_trainer", _HUGGING_FACE, _hugging_face, lambda it: file_name(it) in _FILES),
    Kind("dlio_training", _DLIO, _dlio, lambda it: file_name(it).endswith("summary.json")),
)
