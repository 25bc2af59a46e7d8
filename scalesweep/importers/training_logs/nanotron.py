"""nanotron (src/nanotron/trainer.py): a line per iteration with three significant digits and K, M,
G behind them. How far rounding may move a value is kept in the record.

Since March 2025 the time has another name, and the line's ``global_batch_size`` is in tokens: three
digits of them are no batch. The line that says how training starts has it in samples.
"""

import math
import re
from typing import Any

from scalesweep.importers.training_logs import values as v
from scalesweep.importers.training_logs.model_facts import count, stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Facts, Program, Stated

_NAMES = {
    name: name for name in ("dp", "pp", "tp", "sequence_length", "micro_batch_size")
} | {
    "context_parallel_size": "cp", "num_hidden_layers": "layers", "hidden_size": "width",
    "num_attention_heads": "heads", "num_key_value_heads": "kv_heads",
    "intermediate_size": "ffn_width", "vocab_size": "vocabulary",
}  # fmt: skip


def _settle(facts: Facts) -> dict[str, Any]:
    """Ranks: those of data, pipeline and tensor parallelism (and context, where it has any)."""
    model = stated(
        global_batch_size=count(facts.get("global_batch_size") or facts.get("samples_at_start")),
        model_parameters=count(facts.get("counted_parameters")),
        precision=facts.get("precision_shown"),
    )
    if not {"dp", "pp", "tp"} <= set(facts):
        return model
    ranks = math.prod(int(facts.get(name, 1)) for name in ("dp", "pp", "tp", "cp"))
    return {"ranks": ranks, **model}


NANOTRON = Program(
    name="nanotron",
    benchmark="nanotron",
    summary="Training by nanotron, from its log.",
    marks=("iteration: ",),
    sign=re.compile(r"\biteration: \d{1,9} / \d{1,9} \| "),
    progress=line(
        r"\biteration: <step:i> / \d+ \|.{0,200}? (?:elapsed_time_per_iteration_ms: <ms> \| ",
        r"tokens_per_sec: <tokens> \| tokens_per_sec_per_gpu: <each> \| global_batch_size: ",
        r"<global_batch_size:i> \| lm_loss: <loss:w> \|.{0,200}?",
        r"model_tflops_per_gpu: <model> \| hardware_tflops_per_gpu: <hardware>(?= \|)",
        r"|time_per_iteration_ms: <later_ms> \| tokens_per_sec: <later_tokens> \| ",
        r"tokens_per_sec_per_gpu: <later_each> \| global_batch_size: [\d.]+[KMB]? \|",
        r"(?: grad_norm: \S+ \|)? lm_loss: <later_loss:w> \|.{0,200}?",
        r"model_tflops_per_gpu: <later_model>(?= \| eta: ))",
    ),
    values={
        **dict.fromkeys(("ms", "later_ms"), v.STEP_MS),
        **dict.fromkeys(("tokens", "later_tokens"), v.TOKENS),
        **dict.fromkeys(("each", "later_each"), v.TOKENS_EACH),
        **dict.fromkeys(("model", "later_model"), v.tflops("nanotron")),
        "hardware": v.tflops("nanotron", "hardware"),
        **dict.fromkeys(("loss", "later_loss"), v.FINAL_LOSS),
    },
    main="tokens_per_second",
    averages=False,
    settings=("global_batch_size",),
    stated=(
        Stated(
            "| grad_accum: ",
            line(
                r"\bmbs: <micro_batch_size:i> \| grad_accum: \d+ \|.{0,60}? global_batch_size: ",
                r"<samples_at_start:i> \|",
            ),
        ),
        Stated("=", re.compile(r"\b(?P<name>[a-z_]{2,30})=(?P<value>\d{1,9})(?=[,)])"), _NAMES),
        Stated(
            "tie_word_embeddings=",
            re.compile(r"\btie_word_embeddings=(?P<tied>True|False)(?=[,)])"),
        ),
        Stated("dtype=torch.", re.compile(r"\bdtype=torch\.(?P<precision_shown>\w{1,20})(?=[,)])")),
        Stated(
            "Total number of parameters: ",
            line(r"\bTotal number of parameters: <counted_parameters> \("),
        ),
    ),
    settle=_settle,
    # The next line holds the loading of other data: its time is no iteration's.
    spoils=("[Training Stage: ",),
)
