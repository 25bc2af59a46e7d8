"""MaxText (metric_logger.py): a line per step, per device. The first steps are not times: step 0
compiles, and steps behind it are dispatched without waiting; where the times become steady shows
from which on they are. The configuration that it prints gives the parameters.
"""

import re
from typing import Any

from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Facts, Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS, STEP_S, TOKENS_EACH, tflops

_NAMES = {
    "model_name": "model", "max_target_length": "sequence_length", "dtype": "precision",
    "global_batch_size_to_train_on": "global_batch_size", "num_slices": "slices",
    **{f"{net}_{axis}_parallelism": f"{net}_{axis}" for net in ("ici", "dcn")
       for axis in ("tensor", "pipeline", "expert", "context")},
}  # fmt: skip
_LAYOUT = {"tensor": "tp", "pipeline": "pp", "expert": "ep", "context": "cp"}


def _settle(facts: Facts) -> dict[str, Any]:
    """Layout: within a slice times over slices, where both are stated and fixed."""
    known: dict[str, Any] = {}
    for axis, name in _LAYOUT.items():
        sizes = [facts.get(f"{net}_{axis}", "") for net in ("ici", "dcn")]
        if all(size.isdigit() for size in sizes):
            known[name] = int(sizes[0]) * int(sizes[1])
    return known


MAXTEXT = Program(
    name="MaxText",
    benchmark="maxtext",
    summary="Training by MaxText, from its log.",
    marks=("completed step: ",),
    sign=re.compile(r"\bcompleted step: \d{1,9}, (?:steps/s: |seconds: )"),
    progress=line(
        r"\bcompleted step: <step:i>, seconds: <s>, TFLOP/s(?:/device)?: <tflops>",
        r"(?:, Tokens/s/device: <each>)?(?:, [\w/]+: [\d.]+)*, (?:main_model_)?loss: <loss:w>",
        r"(?=,|\s*$)",
    ),
    values={
        "s": STEP_S,
        "each": TOKENS_EACH,
        "tflops": tflops("maxtext"),
        "loss": FINAL_LOSS,
    },
    main="step_time",
    averages=False,
    stated=(
        Stated(
            "Config param ",
            re.compile(r"\bConfig param (?P<name>\w{1,60}): (?P<value>\S{1,60})\s*$"),
            _NAMES,
        ),
        Stated("Num_devices: ", re.compile(r"\bNum_devices: (?P<ranks>\d{1,7}), shape ")),
        Stated(
            "number parameters: ",
            re.compile(r"\bnumber parameters: (?P<parameters_printed>[\d.]+ billion)"),
        ),
    ),
    settle=_settle,
    begins=("Config param activations_in_float32: ",),
)
