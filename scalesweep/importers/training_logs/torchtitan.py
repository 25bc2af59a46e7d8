"""torchtitan (torchtitan/components/metrics.py): tokens per second of each device.

``wps`` until 2024, ``tps`` since: tokens of a data-parallel group since the line before, over time
and the group's size. Each rank prints lines of its own, or one of them (LOG_RANK).
"""

import math
import re
from typing import Any

from scalesweep.importers.training_logs import values as v
from scalesweep.importers.training_logs.model_facts import MIXTURE, count, stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Facts, Printed, Program, Stated


def _settle(facts: Facts) -> dict[str, Any]:
    """Ranks and layout by the mesh, in either of the two ways it was printed; and the model."""
    model = stated(
        family=mixture_of(facts),
        precision=facts.get("precision_shown"),
        quantization=facts.get("quantized", "").lower() or None,
    )
    sizes = dict(re.findall(r"\b(pp|dp_\w+|cp|tp)=(\d{1,7})", facts.get("mesh", "")))
    if names := re.findall(r"\w+", facts.get("mesh_names", "")):
        sizes = dict(zip(names, re.findall(r"\d+", facts["mesh_sizes"]), strict=False))
    if not sizes or ("tp" not in sizes and "mesh" in facts):  # none, or cut before its last axes
        return model
    number = {name: int(size) for name, size in sizes.items()}
    shared, copies = number.get("dp_shard", number.get("dp", 1)), number.get("dp_replicate", 1)
    how = ("hsdp" if copies > 1 else "fsdp") if shared > 1 else ("ddp" if copies > 1 else None)
    layout = {name: number.get(name, 1) for name in ("tp", "pp", "cp")}
    return {"ranks": math.prod(number.values()), **layout, **model} | stated(data_parallel=how)


def mixture_of(facts: Facts) -> str | None:
    """The family of a model with parameters of experts; None of one without."""
    return MIXTURE if count(facts.get("sparse")) else None


_SHAPE = {
    "dim": "width", "n_layers": "layers", "n_heads": "heads", "n_kv_heads": "kv_heads",
    "vocab_size": "vocabulary", "enable_weight_tying": "tied",
}  # fmt: skip
_NAMES = "|".join(_SHAPE)

TORCHTITAN = Program(
    name="torchtitan",
    benchmark="torchtitan",
    summary="Training by torchtitan, from its log.",
    marks=("  loss: ",),
    sign=re.compile(r"\bstep: {1,8}\d{1,9}  loss: "),
    progress=line(
        r"\bstep: +<step:i>  loss: +<loss:w>(?:  grad_norm: +\S+)?  memory: +<memory>GiB",
        r"\(\S+%\)  (?:tps|wps): +<tps>(?:  tflops: +<tflops>)?  mfu: +(?:N/A|<mfu>%)\s*$",
    ),
    values={
        "tps": v.TOKENS_EACH,
        # By the convention of analysis/flop_conventions.py.
        "tflops": v.tflops("torchtitan")._replace(metric="model_flop_rate_torchtitan"),
        "mfu": Printed(
            "mfu_torchtitan", "1", "rank", "of the peak that torchtitan knows", times=0.01
        ),
        "memory": v.RESERVED._replace(times=v.GIB),
        "loss": v.FINAL_LOSS,
    },
    main="tokens_per_second",
    averages=True,
    stated=(
        Stated(
            "device mesh with parallelism: ",
            re.compile(r"Building device mesh with parallelism: (?P<mesh>[\w=, ]{1,200})"),
        ),
        Stated(
            "-D device mesh with ",
            line(r"-D device mesh with (?P<mesh_names>[^]]+\]), (?P<mesh_sizes>[^]]+\])"),
        ),
        Stated(
            " total parameters",
            line(r"\bModel (?P<model>\S+ \S+) size: <model_parameters:i> total parameters"),
        ),
        Stated(
            "Total parameter count: ",
            line(r"parameter count: dense [\d,]+, sparse <sparse:i>,"),
        ),
        # The model's arguments, in a line until 2025, as JSON since.
        Stated(
            "n_layers=", re.compile(rf"\b(?P<name>{_NAMES})=(?P<value>\w{{1,12}})(?=[,)])"), _SHAPE
        ),
        Stated(
            '": ',
            re.compile(rf'^ {{1,4}}"(?P<name>{_NAMES})": (?P<value>\w{{1,12}}),?\s*$'),
            _SHAPE,
        ),
        Stated(
            "mixed_precision_param",
            re.compile(r"""["']mixed_precision_param["']: ["'](?P<precision_shown>\w{1,20})["']"""),
        ),
        Stated(
            "Float8",
            re.compile(
                r"\b(?P<quantized>Float8)(?=Linear layers| (?:\w{1,20} ){0,3}training active)"
            ),
        ),
        Stated(
            " full activation checkpointing",
            re.compile(r"\bApplied (?P<recompute>full) activation checkpointing to"),
        ),
        Stated(
            "sequence length ",
            line(
                r"local batch size <micro_batch_size:i>, global batch size <global_batch_size:i>",
                r",(?: gradient accumulation steps \d+,)? sequence length <sequence_length:i>,",
            ),
        ),
        Stated(  # since August 2026
            " tokens per train step",
            line(
                r"\b<tokens_per_step:i> tokens per train step,.{0,120}? ",
                r"maximum context length <sequence_length:i>,",
            ),
        ),
        Stated(
            " capacity: ",
            re.compile(r"(?:CUDA|GPU) capacity: (?P<gpu>\S.{0,60}?)(?: \(\d\))? with \d"),
        ),
    ),
    settle=_settle,
    begins=("Starting job: ", "device mesh with "),
    spoils=("validate step: ",),
)
