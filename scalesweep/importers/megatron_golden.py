"""Golden values of Megatron-LM's functional tests: times, memory and losses by iteration.

A file is ``golden_values_ENVIRONMENT_PLATFORM.json`` beside the test's ``model_config.yaml``, whose
arguments are the parameters (NVIDIA/Megatron-LM, tests/functional_tests). Series are written in
several ways: ``{"values": {iteration: number}}``, with a list instead, without ``values``, or as
a bare number. How many GPUs ran a test is in neither file.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Refusal,
    file_dates,
    shown,
)
from scalesweep.importers.json_file import metric, plain_file_name, read_object
from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.write_campaign import Rules

BENCHMARK = "megatron_golden"
RULES = Rules(scaling="scaling", comparisons=(), prefix="megatron_golden_")
_COUNTS = {
    "tensor-model-parallel-size": ("tp", "Tensor-parallel ranks.", "ranks"),
    "pipeline-model-parallel-size": ("pp", "Pipeline stages.", "ranks"),
    "context-parallel-size": ("cp", "Ranks that share a sequence.", "ranks"),
    "expert-model-parallel-size": ("ep", "Ranks that share experts.", "ranks"),
    "micro-batch-size": ("micro_batch_size", "Samples of a micro-batch.", "samples"),
    "global-batch-size": ("global_batch_size", "Samples of an iteration.", "samples"),
    "seq-length": ("sequence_length", "Tokens of a sample.", "tokens"),
}
MADE = Made(
    "Functional tests of Megatron-LM, by their golden values.",
    {
        "case": parameter_entry("string", "The test's folder.", None, True),
        **{
            name: parameter_entry("integer", doc, unit, False)
            for name, doc, unit in _COUNTS.values()
        },
    },
    {
        "step_time": "median of iteration-time; the first iterations have the start-up in them",
        "peak_memory": "the largest mem-max-allocated-bytes, of one GPU",
        "final_loss": "lm loss of the last iteration",
    },
)
# Until September 2024 files held the mean of the times alone.
_MEANS = ("iteration_timing_avg", "train_step_timing_avg")
SIGN = re.compile(rf'"(?:iteration-time|{"|".join(_MEANS)})"\s*:')
CONFIG = "model_config.yaml"
_FILE = re.compile(r"golden_values(?:_(?P<platform>.{1,120}))?\.json")
_TIME, _MEMORY, _LOSS = "iteration-time", "mem-max-allocated-bytes", "lm loss"
_MOST_CONFIG = 1 << 20
# How a value is written that an iteration does not have.
_MISSING = ("nan", "inf", "-inf", "none", "")


def is_part(file: Path) -> bool:
    """Whether a file is the configuration that is read with golden values beside it."""
    return file.name == CONFIG and any(file.parent.glob("golden_values*.json*"))


def has_name(file: Path) -> bool:
    """Whether a file is called as golden values are."""
    return _FILE.fullmatch(plain_file_name(file)) is not None


def read_file(file: Path, ranks: int | None = None) -> Iterator[ImportedRun | Refusal]:
    """The run of golden values, or its refusal.

    ``ranks``: one if None, and the run's variant then says that they are not stated.
    """
    match = _FILE.fullmatch(plain_file_name(file))
    platform = match["platform"] if match else None
    try:
        yield _run(read_object(file), file, platform, ranks)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), benchmark=BENCHMARK)


def _run(
    content: Mapping[str, Any], file: Path, platform: str | None, ranks: int | None
) -> ImportedRun:
    series = {name: _series(content, name) for name in (_TIME, _MEMORY, _LOSS)}
    times = series[_TIME]
    if _TIME not in content and (mean := next((it for it in _MEANS if it in content), None)):
        raise ImportRefusedError(f"no {_TIME}, only their mean ({mean}), as until September 2024")
    if not times.size or times.min() <= 0:
        raise ImportRefusedError(f"{_TIME}: no times above 0")
    settings, unread = _settings(file.absolute().parent / CONFIG)
    metrics = {"step_time": metric(float(np.median(times)), "s", "lower")}
    if series[_MEMORY].size:
        metrics["peak_memory"] = metric(float(series[_MEMORY].max()), "bytes", "lower", "rank")
    if series[_LOSS].size:
        metrics["final_loss"] = metric(float(series[_LOSS][-1]), "1", "lower")
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    case = shown(file.absolute().parent.name)[:100]
    variant = {"platform": shown(platform)} if platform else {}
    return ImportedRun(
        benchmark=BENCHMARK,
        made=MADE,
        point={"ranks": ranks or 1, "case": case, **settings},
        variant=variant if ranks else {**variant, "ranks": "not stated"},
        file=file,
        source_digest=digest_of([case, platform, repr(sorted(content.items()))]),
        started=modified,
        ended=modified,
        samples={"iteration_times": times[:, None]},
        samples_per_epoch=0,
        metrics=metrics,
        notes={
            "importer": "Megatron-LM golden values",
            "iterations": int(times.size),
            "dates": file_dates("the file"),
            "assumed": {"ranks": "--ranks" if ranks else "one, as none are named (--ranks N)"},
            **({"configuration": unread} if unread else {}),
        },
    )


def _series(content: Mapping[str, Any], name: str) -> Floats:
    """The numbers of a series in the order of their iterations; those that are missing are left
    out."""
    said = content.get(name)
    if isinstance(said, dict) and "values" in said:
        said = said["values"]
    if isinstance(said, dict):
        values = [said[key] for key in sorted(said, key=lambda key: _iteration(key, name))]
    elif isinstance(said, list):
        values = said
    else:
        values = [] if said is None else [said]
    numbers = [_number(value, name) for value in values]
    return np.array([number for number in numbers if math.isfinite(number)], np.float64)


def _iteration(key: str, name: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 16):
        raise ImportRefusedError(f"{name}: {key[:20]!a} is no iteration")
    return int(key)


def _number(value: Any, name: str) -> float:
    if isinstance(value, str) and value.strip().lower() in _MISSING:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ImportRefusedError(f"{name}: {str(value)[:30]!a} is not a number")
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _settings(config: Path) -> tuple[dict[str, int], str]:
    """The parameters in a test's configuration, and why it was not read."""
    try:
        if not config.is_file() or config.stat().st_size > _MOST_CONFIG:
            return {}, f"no {CONFIG} beside it"
        content = load_yaml(config)
    except (UserError, OSError) as error:
        return {}, f"{CONFIG} is not read: {error}"[:200]
    arguments = content.get("MODEL_ARGS") if isinstance(content, dict) else None
    if not isinstance(arguments, dict):
        return {}, f"{CONFIG} has no MODEL_ARGS"
    settings = {}
    for key, (name, _, _) in _COUNTS.items():
        value = arguments.get(f"--{key}")
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53:
            settings[name] = value
    return settings, ""
