"""DeepSpeed (deepspeed/utils/timer.py): three generations of one line, samples per second of all
ranks, and what wall_clock_breakdown prints beside it.
"""

import re

from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Program, Stated
from scalesweep.importers.training_logs.values import ALLOCATED, GIB, SAMPLES, part

_PARTS = ("forward", "backward", "backward_inner", "backward_allreduce", "update")
_NAMED = {
    "update": "step", "forward": "forward|fwd", "backward": "backward|bwd",
    "backward_inner": "backward_inner|bwd_inner",
    "backward_allreduce": "backward_allreduce|bwd_allreduce",
}  # fmt: skip
_ARGUMENTS = {
    "train_batch_size": "global_batch_size", "world_size": "ranks",
    "train_micro_batch_size_per_gpu": "micro_batch_size",
}  # fmt: skip
_ARGUMENT = re.compile(rf"\b(?P<name>{'|'.join(_ARGUMENTS)}) \.{{3,60}} (?P<value>\d{{1,9}})\s*$")

DEEPSPEED = Program(
    name="DeepSpeed",
    benchmark="deepspeed",
    summary="Training by DeepSpeed, from the lines of its timers.",
    marks=("SamplesPerSec=",),
    sign=re.compile(r"(?:\d{1,9}/\d{1,9}|global_step=\d{1,9}), (?:RunningAvg)?SamplesPerSec="),
    progress=line(
        r"(?:\b\d+/|\bglobal_step=)<step:i>, (?:SamplesPerSec=<rate>|RunningAvgSamplesPerSec=",
        r"[\d.]+, CurrSamplesPerSec=<current>), MemAllocated=[\d.]+GB, ",
        r"MaxMemAllocated=<memory>GB\s*$",
    ),
    more=(
        (
            "time (ms) | ",
            line(
                r"\btime \(ms\) \| ",
                r" \| ".join(f"(?:{_NAMED.get(it, it)}): <{it}>" for it in _PARTS),
                r"\s*$",
            ),
        ),
    ),
    values={
        "rate": SAMPLES,
        "current": SAMPLES,
        "memory": ALLOCATED._replace(times=GIB),
        **{name: part(name, "wall_clock_breakdown") for name in _PARTS},
    },
    main="samples_per_second",
    averages=True,
    stated=(
        Stated("world size:", re.compile(r"\bworld size:\s{1,80}(?P<ranks>\d{1,7})\s*$")),
        Stated("world_size=", re.compile(r"\bworld_size=(?P<ranks>\d{1,7}), ")),
        Stated(" ...", _ARGUMENT, _ARGUMENTS),
    ),
    begins=("DeepSpeed info: version=",),
)
