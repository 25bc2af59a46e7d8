"""GPT-NeoX on DeepSpeed (megatron/logging.py): samples per second of all ranks, mean of the
iterations since the last line. Its configuration gives batch, sequence and layout; the ranks
are those that train, not those for which the launcher computed the batch (global_num_gpus).
"""

import re
from typing import Any

from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.training_logs import values as v
from scalesweep.importers.training_logs.megatron import precision
from scalesweep.importers.training_logs.model_facts import count, flag, mixture, stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Facts, Program, Stated

_ARGUMENT = re.compile(
    r"^[^.]{0,80}?\b(?P<name>\w{1,60}) \.{1,80} (?!None\.)(?P<value>[\w.]{1,40}?)\.{3,80}"
    r"(?:default|updated)"
)
_NAMES = {
    "world_size": "ranks", "global_num_gpus": "planned",
    "model_parallel_size": "tp", "pipe_parallel_size": "pp",
    "train_batch_size": "global_batch_size", "train_micro_batch_size_per_gpu": "micro_batch_size",
    "params_dtype": "dtype", "precision": "precision_shown",
    "seq_length": "sequence_length", "num_layers": "layers",
    "hidden_size": "width", "num_attention_heads": "heads", "no_weight_tying": "untied",
    "pos_emb": "positions", "moe_num_experts": "experts",
}  # fmt: skip
_FORMATS = {"fp16": "float16", "fp32": "float32", "bfloat16": "bfloat16"}
_LEARNED = {"learned": True, "rotary": False, "none": False}


def _settle(facts: Facts) -> dict[str, Any]:
    """Number format, stages and model by the configuration.

    Raises ImportRefusedError where other ranks train than the batch was computed for: the printed
    samples per second are of a batch that no step had.
    """
    ranks, planned = facts.get("ranks"), facts.get("planned")
    if None not in (ranks, planned) and ranks != planned:
        raise ImportRefusedError(
            f"{ranks} ranks train, and the batch is of {planned} GPUs (global_num_gpus): the "
            "samples per second are of a batch that no step had"
        )
    untied = flag(facts.get("untied"))
    shown = stated(precision=_FORMATS.get(facts.get("precision_shown", "")))
    return (precision(facts) or shown) | stated(
        pp=1 if facts.get("pp") == "0" else None,
        family=mixture(facts.get("experts")),
        model_parameters=count(facts.get("counted_parameters")),
        tied=None if untied is None else not untied,
        learned_positions=_LEARNED.get(facts.get("positions", "")),
    )


GPT_NEOX = Program(
    name="GPT-NeoX",
    benchmark="gpt_neox",
    summary="Training by GPT-NeoX, from its log.",
    marks=("samples/sec: ",),
    sign=re.compile(r"\bsamples/sec: [\d.]+ \| iteration "),
    progress=line(
        r"samples/sec: <rate> \| iteration +<step:i>/ *\d+ \| elapsed time per iteration ",
        r"\(ms\): <ms> \|.{0,200}?approx flops per GPU: <flops> ?FLOPS \|(?=.{0,2000}\|\s*$)",
        r"(?:.{0,200}?lm_loss: <loss:w> \|)?",
    ),
    more=(
        (
            "| batch generator: ",
            line(
                r"\| forward: <forward> \|.{0,200}\| optimizer: <update> ",
                r"\| batch generator: <input>",
            ),
        ),
    ),
    values={
        "forward": v.part("forward", "GPT-NeoX"),
        "update": v.part("update", "GPT-NeoX"),
        "input": v.part("input", "GPT-NeoX"),
        "rate": v.SAMPLES,
        "ms": v.STEP_MS,
        "flops": v.tflops("gpt_neox")._replace(times=1.0),
        "loss": v.FINAL_LOSS,
    },
    main="samples_per_second",
    averages=True,
    stated=(
        Stated("..", _ARGUMENT, _NAMES),
        Stated("using world size: ", line(r"\busing world size: <ranks:i> and model-parallel ")),
        Stated("(new size: ", line(r"padded vocab \(size: .{0,60}\(new size: <vocabulary:i>\)")),
        Stated(" total params: ", line(r"> total params: <counted_parameters:i>\s*$")),
    ),
    settle=_settle,
    begins=("arguments -----",),
    also=("DeepSpeed",),
)
