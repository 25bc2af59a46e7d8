"""What logs state of the model: its parameters, its transformer, and whether its rate is normal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.benchmark import load_benchmark
from tests.fakes.imported_runs import Read, import_runs
from tests.fakes.training_logs import LOGS, STAMP, megatron, titan, titan_steps


def dump(**values: Any) -> str:
    """Megatron-LM's dump of arguments."""
    every = {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1} | values
    return "".join(f"  {name} {'.' * (48 - len(name))} {text}\n" for name, text in every.items())


GPT_345M = {
    "world_size": 8, "num_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
    "group_query_attention": False, "num_query_groups": 1, "kv_channels": 64,
    "ffn_hidden_size": 4096, "swiglu": False, "untie_embeddings_and_output_weights": False,
    "position_embedding_type": "learned_absolute", "max_position_embeddings": 1024,
    "normalization": "LayerNorm", "add_bias_linear": True, "add_qkv_bias": False,
    "qk_layernorm": False, "num_experts": None, "multi_latent_attention": False,
    "mtp_num_layers": None, "seq_length": 1024, "params_dtype": "torch.bfloat16", "fp8": None,
    "recompute_granularity": None, "padded_vocab_size": 50304,
}  # fmt: skip
LLAMA_8B = {
    **GPT_345M, "num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "group_query_attention": True, "num_query_groups": 8, "kv_channels": 128,
    "ffn_hidden_size": 14336, "swiglu": True, "untie_embeddings_and_output_weights": True,
    "position_embedding_type": "rope", "normalization": "RMSNorm", "add_bias_linear": False,
    "padded_vocab_size": 128256, "seq_length": 8192,
}  # fmt: skip
STEPS = "".join(megatron(n, 900 if n == 10 else 100) for n in range(10, 80, 10))


def point(read: Read, text: str) -> Mapping[str, Any]:
    """The point of the only run of a log."""
    ((run,), _) = read(text)
    return run.point


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [  # megatron prints the first itself (its README's 345M), Meta the other
        (GPT_345M, 354_871_296), (LLAMA_8B, 8_030_261_248),
        ({**LLAMA_8B, "group_query_attention": False, "ffn_hidden_size": 11008,
          "padded_vocab_size": 32000}, 6_738_415_616),
    ],
)  # fmt: skip
def test_the_parameters_of_megatron_follow_from_all_its_arguments(
    read: Read, arguments: dict[str, Any], parameters: int
) -> None:
    known = point(read, dump(**arguments) + STEPS)
    assert known["model_parameters"] == parameters
    assert known["precision"] == "bfloat16" and known["recompute"] == "none"
    assert known["kv_heads"] == (8 if arguments["group_query_attention"] else known["heads"])
    for name in ("kv_channels", "padded_vocab_size", "normalization", "swiglu", "add_bias_linear"):
        rest = {key: value for key, value in arguments.items() if key != name}
        assert "model_parameters" not in point(read, dump(**rest) + STEPS), name


MODEL_ARGS = (
    f"{STAMP}Building llama3 8B with TransformerModelArgs(_enforced='...', dim=4096, n_layers=32, "
    "n_heads=32, n_kv_heads=8, vocab_size=128256, multiple_of=1024, ffn_dim_multiplier=1.3)\n"
)
JSON_ARGS = (
    f'{STAMP}Building qwen3 8B with {{\n  "dim": 4096,\n  "n_layers": 32,\n  "n_heads": 32,\n'
    '  "n_kv_heads": 8,\n  "vocab_size": 128256,\n  "enable_weight_tying": false\n}\n'
)
PRECISION = f'{STAMP}Running with args: {{"training": {{"mixed_precision_param": "bfloat16"}}}}\n'


MAXTEXT = {
    "num_decoder_layers": 32, "emb_dim": 4096, "num_query_heads": 32, "num_kv_heads": 8,
    "head_dim": 128, "mlp_dim": 14336, "mlp_activations": "['silu', 'linear']",
    "vocab_size": 128256, "logits_via_embedding": False, "num_experts": 1, "quantization": "",
    "trainable_position_size": -1, "remat_policy": "full", "attention_type": "global",
}  # fmt: skip


def megatron_of(**change: Any) -> str:
    """A log of Megatron-LM's Llama, or what it is with other arguments."""
    return dump(**LLAMA_8B | change) + STEPS


def maxtext(**change: Any) -> str:
    """A log of MaxText, likewise."""
    lines = "".join(f"Config param {k}: {v}\n" for k, v in {**MAXTEXT, **change}.items())
    return f"{lines}number parameters: 8.030 billion\n{LOGS['MaxText'].text}"


SHAPE = {"layers": 32, "width": 4096, "heads": 32, "kv_heads": 8, "vocabulary": 128256}
FLOAT8 = f"{STAMP}Float8 tensorwise scaled training active\n{STAMP}Swapped to Float8Linear layers\n"
FAILED = f"{STAMP}Failed to swap to Float8Linear because float8 is not supported\n"
SPARSE = f"{STAMP}Total parameter count: dense 8, sparse 9,840,640, active 28,098,816\n"
MESH = f"{STAMP}Building {{}}-D device mesh with [{{}}], [{{}}]\n{titan_steps(9)}"
HEAD = "01/02/2026 03:04:05 [INFO|DP=0|PP=0|TP=0]: "
NANOTRON = (
    f"{HEAD}model=ModelArgs(model_config=LlamaConfig(hidden_size=2048, intermediate_size=8192, "
    "num_hidden_layers=16, num_key_value_heads=8, tie_word_embeddings=True, "
    "vocab_size=49152), dtype=torch.bfloat16, make_vocab_size_divisible_by=1))\n"
    f"{HEAD}Total number of parameters: 1.04G (1984.26MiB)\n{LOGS['nanotron'].text}"
)
NANOCHAT = f"GPU: NVIDIA H100 80GB HBM3 | Peak FLOPS (BF16): 9.89e+14\n{LOGS['nanochat'].text}"
EXPERTS = {"family": "mixture of experts"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (megatron_of(num_experts=8), {**EXPERTS, "model_parameters": None}),
        (megatron_of(multi_latent_attention=True), {"model_parameters": None}),
        (megatron_of(qk_layernorm=True), {"model_parameters": None}),
        (megatron_of(fp8="hybrid"), {"quantization": "float8"}),
        (megatron_of(kv_channels=256), {"ffn_width": None, "heads": 32}),
        (megatron_of(recompute_granularity="full"), {"recompute": "full"}),
        (MODEL_ARGS + titan(9), {**SHAPE, "device": "h100_sxm", "precision": None}),
        (JSON_ARGS + PRECISION + titan(9), {**SHAPE, "tied": False, "precision": "bfloat16"}),
        (FLOAT8 + titan(9), {"quantization": "float8"}),
        (FAILED + titan(9), {"quantization": None}),
        (SPARSE + titan(9), EXPERTS),
        (MESH.format("1", "'dp_shard'", "8"), {"ranks": 8, "tp": 1, "data_parallel": "fsdp"}),
        (MESH.format("3", "'pp', 'dp', 'tp'", "2, 4, 16"), {"ranks": 128, "pp": 2, "tp": 16}),
        (maxtext(), {
            **SHAPE, "model_parameters": 8_030_000_000, "ffn_width": 14336, "gated": True,
            "tied": False, "learned_positions": False, "recompute": "full", "quantization": None,
            "family": None,
        }),
        (maxtext(quantization="QuantizationType.NONE"), {"quantization": None}),
        (maxtext(quantization="fp8"), {"quantization": "float8"}),
        (maxtext(quantization="QuantizationType.FP8"), {"quantization": "float8"}),
        (maxtext(num_experts=8), EXPERTS),
        (maxtext(attention_type="mla"), {"ffn_width": None}),
        (maxtext(head_dim=64), {"ffn_width": None}),
        (NANOTRON, {"model_parameters": 1_040_000_000, "width": 2048, "ffn_width": 8192,
                    "tied": True, "precision": "bfloat16"}),
        (NANOCHAT, {"device": "h100_sxm"}),
    ],
)  # fmt: skip
def test_what_a_log_prints_of_the_model(read: Read, text: str, expected: dict[str, Any]) -> None:
    known = point(read, text)
    assert {name: known.get(name) for name in expected} == expected


def test_the_transformer_of_a_point(tmp_path: Path, read: Read) -> None:
    runs = read(dump(**LLAMA_8B) + STEPS)[0]
    ((written,), _) = import_runs(runs, tmp_path / "out" / "runs" / "imported")
    benchmark = load_benchmark("megatron_lm", beside=tmp_path / "out")
    mesh, transformer = benchmark.mesh, benchmark.transformer
    stated = {"ranks": 16, "tp": 2, "pp": None, "cp": 2}
    assert mesh.at(stated) == {"dp": 4, "tp": 2, "pp": 1, "cp": 2}
    assert mesh.at({**stated, "tp": None}) is mesh.fault({**stated, "tp": None}) is None
    shape = transformer.at(written.point, "b")
    assert shape.parameters == 8_030_261_248
    assert (shape.layers, shape.kv_heads, shape.ffn_width, shape.gated) == (32, 8, 14336, True)
    assert (shape.dtype, shape.device, shape.tied) == ("bfloat16", None, False)
    # How many matrices have the width is not stated: nothing follows from it.
    assert transformer.at({**written.point, "gated": None}, "b").ffn_width is None
    assert transformer.at({**written.point, **EXPERTS}, "b") is None
