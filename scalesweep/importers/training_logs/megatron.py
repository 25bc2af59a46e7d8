"""Megatron-LM and Megatron Bridge (megatron/training/training.py): the last rank prints the mean
of the iterations since its last line. Megatron-DeepSpeed's lines have more between the same words;
Primus prints ``this/mean of all`` where others print one number.

Bridge prints ``Step Time : 14.26s GPU utilization: 58.2TFLOP/s/GPU`` besides: TFLOP/s, no share.
The time of evaluations and checkpoints is not in the iterations'.
"""

import re
from typing import Any

from scalesweep.importers.training_logs import values as v
from scalesweep.importers.training_logs.megatron_model import described, parameters_of, shape_of
from scalesweep.importers.training_logs.model_facts import count, stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import MEAN, Facts, Printed, Program, Stated

NAMES = {
    "world_size": "ranks", "micro_batch_size": "micro_batch_size", "seq_length": "sequence_length",
    "tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp", "expert_model_parallel_size": "ep", "params_dtype": "dtype",
    "num_layers": "layers", "hidden_size": "width", "num_attention_heads": "heads",
    "group_query_attention": "grouped", "num_query_groups": "query_groups",
    "num_key_value_heads": "kv_heads",  # Megatron-DeepSpeed
    "kv_channels": "head_width", "ffn_hidden_size": "ffn_width", "swiglu": "gated",
    "padded_vocab_size": "vocabulary", "untie_embeddings_and_output_weights": "untied",
    "position_embedding_type": "positions", "max_position_embeddings": "most_positions",
    "normalization": "norm", "add_bias_linear": "biases", "add_qkv_bias": "qkv_biases",
    "qk_layernorm": "qk_norm", "num_experts": "experts", "multi_latent_attention": "latent",
    "mtp_num_layers": "mtp", "recompute_granularity": "recomputed", "fp8": "fp8", "fp4": "fp4",
}  # fmt: skip
_ARGUMENT = re.compile(r"^[^.]{0,80}?\b(?P<name>\w{1,60}) \.{3,80} (?P<value>[\w.]{1,40})\s*$")


def precision(facts: Facts) -> dict[str, Any]:
    """The number format by ``params_dtype``."""
    dtype = facts.get("dtype", "").removeprefix("torch.")
    return {"precision": dtype} if dtype else {}


def _settle(facts: Facts) -> dict[str, Any]:
    """Number format and model by the dump of arguments."""
    known = precision(facts) | described(facts)
    shape = shape_of(facts)
    alone = facts.get("tp") == facts.get("pp") == "1" and "family" not in known
    printed = count(facts.get("rank_parameters")) if alone else None
    parameters = printed or (parameters_of(shape) if shape else None)
    return known | stated(
        model_parameters=None if "family" in known else parameters,
        # Formulas of FLOP take the heads to be as wide as a token.
        ffn_width=0 if shape and shape.head_width * shape.heads != shape.width else None,
    )


MEGATRON = Program(
    name="Megatron-LM",
    benchmark="megatron_lm",
    summary="Training by Megatron-LM or Megatron Bridge, from its log.",
    marks=("elapsed time per iteration",),
    sign=re.compile(r"(?:^|[\]:]) {0,8}iteration {1,12}\d{1,9}/ *\d{1,9} \| (?:consumed|elapsed)"),
    progress=line(
        r"\biteration +<step:i>/ *\d+ \|.{0,300}?elapsed time per iteration ",
        r"\((?:ms\): <ms>|s\): <s>)(?:/[\d.]+)? \|",
        r"(?:.{0,120}?throughput per GPU \(TFLOP/s/GPU\): <tflops>(?:/[\d.]+)? \|)?",
        r"(?: tokens per GPU \(tokens/s/GPU\): <each>(?:/[\d.]+)? \|)?",
        r"(?: energy per GPU \(J/iter/GPU\): <energy> \| power per GPU \(W/GPU\): <power> \|)?",
        r"(?:.{0,400}?global batch size: +<global_batch_size:i> \|)?(?=.{0,2000}\|\s*$)",
        r"(?:.{0,200}?lm loss: <loss:w> \|)?",
    ),
    more=(
        ("GPU utilization: ", line(r"GPU utilization: <bridge> ?(?:MODEL_)?TFLOP/s/GPU")),
        (
            " memory (MB) | ",
            line(r"\| max allocated: <allocated> \|.{0,60}? max reserved: <reserved>"),
        ),
    ),
    values={
        "ms": v.STEP_MS,
        "s": v.STEP_S,
        "tflops": v.tflops("megatron"),
        "each": v.TOKENS_EACH,
        "bridge": v.tflops("megatron_bridge", way=MEAN),
        "allocated": v.ALLOCATED._replace(times=v.MIB),
        "reserved": v.RESERVED._replace(times=v.MIB),
        "energy": Printed("energy_per_step_per_device", "J", "rank", "of a GPU", better="lower"),
        "power": Printed("power_per_device", "W", "rank", "mean power of a GPU", better="lower"),
        "loss": v.FINAL_LOSS,
    },
    main="samples_per_second",
    averages=True,
    settings=("global_batch_size",),
    stated=(
        Stated(" ...", _ARGUMENT, NAMES),
        Stated("(new size: ", line(r"padded vocab \(size: .{0,60}\(new size: <vocabulary:i>\)")),
        Stated("building ", re.compile(r"\bbuilding (?P<built>[A-Z]\w{0,20}) model\b")),
        Stated(
            " > number of parameters on ",
            line(
                r" > number of parameters on \(tensor, pipeline\) model parallel rank \(0, 0\): ",
                r"<rank_parameters:i>\s*$",
            ),
        ),
    ),
    settle=_settle,
    begins=("arguments -----", "using world size: "),
    also=("DeepSpeed",),
)
