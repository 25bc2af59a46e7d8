"""MaxText (metric_logger.py): a line per step, per device. The first steps are not times: step 0
compiles, and steps behind it are dispatched without waiting; where the times become steady shows
from which on they are. The configuration that it prints gives the parameters. Lines are printed a
step late, so the time of an evaluation is in the second line behind its result; in the first where
it is fine-tuned by preferences (DPO). Neither counts.
"""

import re
from typing import Any

from scalesweep.importers.training_logs.model_facts import count, mixture, stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Facts, Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS, STEP_S, TOKENS_EACH, tflops

_NAMES = {
    "model_name": "model", "max_target_length": "sequence_length", "dtype": "precision",
    "global_batch_size_to_train_on": "global_batch_size", "num_slices": "slices",
    "num_decoder_layers": "layers", "emb_dim": "width", "num_query_heads": "heads",
    "num_kv_heads": "kv_heads", "head_dim": "head_width", "mlp_dim": "ffn_width",
    "vocab_size": "vocabulary", "logits_via_embedding": "tied", "num_experts": "experts",
    "trainable_position_size": "positions", "quantization": "quantized",
    "remat_policy": "recomputed", "attention_type": "latent",
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
    return known | _model(facts)


def _model(facts: Facts) -> dict[str, Any]:
    """The model by the configuration, and the parameters that are counted."""
    # Versions of 2026 print the names of enumerations, QuantizationType.NONE for an empty value.
    quantized = facts.get("quantized", "").rpartition("QuantizationType.")[2].lower()
    quantized = "" if quantized == "none" else quantized
    positions = facts.get("positions")
    heads, wide = count(facts.get("heads")), count(facts.get("head_width"))
    other = facts.get("latent") == "mla" or (
        None not in (heads, wide) and heads * wide != count(facts.get("width"))  # type: ignore[operator]
    )
    activations = facts.get("activations")
    return stated(
        family=mixture(facts.get("experts")),
        model_parameters=count(facts.get("parameters_printed")),
        gated=None if activations is None else "," in activations,
        learned_positions=None if positions is None else bool(count(positions)),
        recompute="full" if facts.get("recomputed") == "full" else None,
        quantization=("float8" if "fp8" in quantized else quantized) or None,
        # Formulas of FLOP take the heads to be as wide as a token.
        ffn_width=0 if other else None,
    )


MAXTEXT = Program(
    name="MaxText",
    benchmark="maxtext",
    summary="Training by MaxText, from its log.",
    marks=("completed step: ",),
    # Lines while the batch still grows have no rates, and begin with [Rampup Batch Size Phase].
    sign=re.compile(r"(?<!Phase\], )\bcompleted step: \d{1,9}, (?:steps/s: |seconds: )"),
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
        Stated(
            "mlp_activations: ",
            re.compile(r"\bConfig param mlp_activations: (?P<activations>\[[^]]{1,60}\])\s*$"),
        ),
        Stated("Num_devices: ", re.compile(r"\bNum_devices: (?P<ranks>\d{1,7}), shape ")),
        Stated(
            "number parameters: ",
            re.compile(r"\bnumber parameters: (?P<parameters_printed>[\d.]+ billion)"),
        ),
    ),
    settle=_settle,
    spoils=("Completed eval after train step ", "eval metrics after step: "),
    spoiled_lines=2,
    begins=("Config param activations_in_float32: ",),
)
