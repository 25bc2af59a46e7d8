"""What logs state of the model: its parameters, its transformer, and whether its rate is normal."""

import re
from pathlib import Path
from typing import Any

import pytest

from scalesweep.commands import import_source, normal
from scalesweep.commands.interface import parser_of
from scalesweep.config.benchmark import load_benchmark
from scalesweep.core.plan_format import PLAN, read_plan
from scalesweep.experiment.load import load_results
from scalesweep.report.sections import fixed_parameters
from tests.fakes.import_tables import tables_only
from tests.fakes.imported_runs import import_runs
from tests.fakes.training_logs import LOGS, STAMP, Read, log_reader, megatron, titan, titan_steps


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a text into a log and read it."""
    return log_reader(tmp_path)


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


def point(read: Read, text: str) -> dict[str, Any]:
    """The point of the only run of a log."""
    (run,), refusals = read(text)
    assert refusals == []
    return dict(run.point)


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


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"num_experts": 8}, {"family": "mixture of experts", "model_parameters": None}),
        ({"multi_latent_attention": True}, {"model_parameters": None}),
        ({"qk_layernorm": True}, {"model_parameters": None}),
        ({"fp8": "hybrid"}, {"quantization": "float8"}),
        ({"kv_channels": 256}, {"ffn_width": None, "heads": 32}),
        ({"recompute_granularity": "full"}, {"recompute": "full"}),
    ],
)  # fmt: skip
def test_other_models_of_megatron(
    read: Read, change: dict[str, Any], expected: dict[str, Any]
) -> None:
    known = point(read, dump(**LLAMA_8B | change) + STEPS)
    assert {name: known.get(name) for name in expected} == expected


MODEL_ARGS = (
    f"{STAMP}Building llama3 8B with TransformerModelArgs(_enforced='...', dim=4096, n_layers=32, "
    "n_heads=32, n_kv_heads=8, vocab_size=128256, multiple_of=1024, ffn_dim_multiplier=1.3)\n"
)
JSON_ARGS = (
    f'{STAMP}Building qwen3 8B with {{\n  "dim": 4096,\n  "n_layers": 32,\n  "n_heads": 32,\n'
    '  "n_kv_heads": 8,\n  "vocab_size": 128256,\n  "enable_weight_tying": false\n}\n'
)
PRECISION = f'{STAMP}Running with args: {{"training": {{"mixed_precision_param": "bfloat16"}}}}\n'


def test_what_torchtitan_prints_of_the_model(read: Read) -> None:
    shape = {"layers": 32, "width": 4096, "heads": 32, "kv_heads": 8, "vocabulary": 128256}
    known = point(read, MODEL_ARGS + titan(9))
    assert {name: known[name] for name in shape} == shape
    assert known["device"] == "h100_sxm" and "precision" not in known
    known = point(read, JSON_ARGS + PRECISION + titan(9))
    assert {name: known[name] for name in shape} == shape
    assert (known["tied"], known["precision"]) == (False, "bfloat16")
    told = (
        f"{STAMP}Float8 tensorwise scaled training active\n{STAMP}Swapped to Float8Linear layers\n"
    )
    assert point(read, told + titan(9))["quantization"] == "float8"
    failed = f"{STAMP}Failed to swap to Float8Linear because float8 is not supported\n"
    assert "quantization" not in point(read, failed + titan(9))
    experts = f"{STAMP}Total parameter count: dense 8, sparse 9,840,640, active 28,098,816\n"
    assert point(read, experts + titan(9))["family"] == "mixture of experts"
    # A device that several data sheets are called is not one of them.
    assert "device" not in point(read, titan(9).replace("NVIDIA H100 80GB HBM3", "NVIDIA H100"))


MAXTEXT = {
    "num_decoder_layers": 32, "emb_dim": 4096, "num_query_heads": 32, "num_kv_heads": 8,
    "head_dim": 128, "mlp_dim": 14336, "mlp_activations": "['silu', 'linear']",
    "vocab_size": 128256, "logits_via_embedding": False, "num_experts": 1, "quantization": "",
    "trainable_position_size": -1, "remat_policy": "full", "attention_type": "global",
}  # fmt: skip


def test_what_maxtext_prints_of_the_model(read: Read) -> None:
    def head(**change: Any) -> str:
        lines = "".join(f"Config param {k}: {v}\n" for k, v in {**MAXTEXT, **change}.items())
        return f"{lines}number parameters: 8.030 billion\n{LOGS['MaxText'].text}"

    known = point(read, head())
    expected = {
        "model_parameters": 8_030_000_000, "layers": 32, "width": 4096, "heads": 32, "kv_heads": 8,
        "ffn_width": 14336, "gated": True, "vocabulary": 128256, "tied": False,
        "learned_positions": False, "recompute": "full",
    }  # fmt: skip
    assert known == point(read, LOGS["MaxText"].text) | expected
    assert point(read, head(quantization="QuantizationType.NONE")) == known
    for narrow in ("fp8", "QuantizationType.FP8"):
        assert point(read, head(quantization=narrow))["quantization"] == "float8"
    assert point(read, head(num_experts=8))["family"] == "mixture of experts"
    assert "ffn_width" not in point(read, head(attention_type="mla"))
    assert "ffn_width" not in point(read, head(head_dim=64))


def test_what_other_programs_print_of_the_model(read: Read) -> None:
    neox = "".join(
        f"  {name} {'.' * (32 - len(name))} {text}.........default\n"
        for name, text in {
            "num_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
            "no_weight_tying": False, "pos_emb": "rotary", "moe_num_experts": 1,
        }.items()
    )  # fmt: skip
    known = point(read, f"{neox} > total params: 162,322,944\n{LOGS['GPT-NeoX'].text}")
    assert (known["model_parameters"], known["layers"], known["width"]) == (162322944, 12, 768)
    assert (known["tied"], known["learned_positions"]) == (True, False) and "family" not in known
    for shown, dtype in (("fp16", "float16"), ("bfloat16", "bfloat16")):
        line = f"  precision ....................... {shown}....................updated"
        text = re.sub("  params_dtype .*", line, LOGS["GPT-NeoX"].text)
        assert point(read, text)["precision"] == dtype
    head = "01/02/2026 03:04:05 [INFO|DP=0|PP=0|TP=0]: "
    nanotron = (
        f"{head}model=ModelArgs(model_config=LlamaConfig(hidden_size=2048, intermediate_size=8192, "
        "num_hidden_layers=16, num_key_value_heads=8, tie_word_embeddings=True, "
        "vocab_size=49152), dtype=torch.bfloat16, make_vocab_size_divisible_by=1))\n"
        f"{head}Total number of parameters: 1.04G (1984.26MiB)\n"
    )
    known = point(read, nanotron + LOGS["nanotron"].text)
    assert (known["model_parameters"], known["width"], known["ffn_width"]) == (
        1_040_000_000, 2048, 8192
    )  # fmt: skip
    assert known["tied"] is True and known["precision"] == "bfloat16"
    chat = "GPU: NVIDIA H100 80GB HBM3 | Peak FLOPS (BF16): 9.89e+14\n"
    (run,), _ = read(chat + LOGS["nanochat"].text)
    assert run.point["device"] == "h100_sxm" and run.variant == {"GPU": "NVIDIA H100 80GB HBM3"}


def test_the_transformer_of_a_point(tmp_path: Path, read: Read) -> None:
    runs = read(dump(**LLAMA_8B) + STEPS)[0]
    (written,), refusals = import_runs(runs, tmp_path / "out" / "runs" / "imported")
    assert refusals == []
    benchmark = load_benchmark("megatron_lm", beside=tmp_path / "out")
    assert benchmark.transformer
    shape = benchmark.transformer.at(written.point, "b")
    assert shape is not None and shape.parameters == 8_030_261_248
    assert (shape.layers, shape.kv_heads, shape.ffn_width, shape.gated) == (32, 8, 14336, True)
    assert (shape.dtype, shape.device, shape.tied) == ("bfloat16", None, False)
    for change, expected in (
        ({"quantization": "float8"}, "float8"), ({"quantization": "int8"}, None),
        ({"precision": "float32"}, None), ({"precision": "bf16-mixed"}, "bfloat16"),
        ({"precision": None}, None),
    ):  # fmt: skip
        changed = benchmark.transformer.at({**written.point, **change}, "b")
        assert changed is not None and changed.dtype == expected, change
    # How many matrices have the width is not stated: nothing follows from it.
    unknown = benchmark.transformer.at({**written.point, "gated": None}, "b")
    assert unknown is not None and unknown.ffn_width is None
    assert benchmark.transformer.at({**written.point, "family": "mixture of experts"}, "b") is None
    assert benchmark.transformer.at({**written.point, "sequence_length": None}, "b") is None


def eight(count: int, tps: float) -> str:
    """A log of Llama 3 8B on eight GPUs, at the lengths of torchtitan's published tables."""
    text = titan(count, tps).replace("dp_replicate=2, dp_shard=2", "dp_replicate=1, dp_shard=8")
    text = text.replace("tp=2", "tp=1").replace("sequence length 100", "sequence length 8192")
    return text.replace("global batch size 8", "global batch size 16")


def without(text: str, words: str) -> str:
    """A log without the lines that have ``words``."""
    return "".join(line for line in text.splitlines(True) if words not in line)


def test_an_imported_log_is_placed_beside_published_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tables_only(monkeypatch)
    logs = tmp_path / "logs"
    logs.mkdir()
    # pytorch/torchtitan, benchmarks/llama3_h100_202412: 6,667 with compile.
    usual = eight(9, 6667.0).replace("tflops: 50", "tflops: 300")
    (logs / "usual.log").write_text(PRECISION + usual)
    smaller = usual.replace("8,030,261,248", "6,738,415,616").replace("length 8192", "length 2048")
    (logs / "smaller.log").write_text(PRECISION + smaller.replace("tps: 6,667", "tps: 9,800"))
    (logs / "sizeless.log").write_text(PRECISION + without(usual, " total parameters"))
    (logs / "lengthless.log").write_text(PRECISION + without(usual, "sequence length"))
    (logs / "dtypeless.log").write_text(usual.replace("tps: 6,667", "tps: 5,762"))
    import_source.run(parser_of("import").read([str(logs), "--results", "mine"]))
    capsys.readouterr()

    def said(*options: str) -> list[str]:
        normal.run(parser_of("normal").read(["mine", *options]))
        return [it.split(" tokens/s", 1)[-1] for it in capsys.readouterr().out.splitlines()[:-1]]

    lines = said()
    judged = " of a rank; 3 comparable published rates: 8,612 to 10,643; within"
    beside = " of a rank; 1 comparable published rate: 6,667; not judged: 3 are needed."
    unknown = [
        "not judged: 1 point: its number of parameters is not stated (transformer.parameters)",
        "not judged: 1 point: it declares no transformer, or states too little of it",
    ]
    dtype = "not judged: 1 point: the type of its numbers is not stated (transformer.dtype, or "
    assert sorted(lines) == sorted(
        [beside, f"{judged} what is published.", *unknown, f"{dtype}--dtype)"]
    )
    assert sorted(said("--dtype", "bfloat16")) == sorted(
        [beside, beside, f"{judged} what is published.", *unknown]
    )
    # The report names what is known of the model beside what was set, and counts the rest.
    entry = read_plan(Path("mine") / PLAN)["experiments"][0]
    groups = fixed_parameters(load_results(entry, Path("mine/tables")))
    named, rest = ({it["name"] for it in groups[name]} for name in ("set", "defaults"))
    assert "device" in named and {"family", "gated", "layers"} <= rest


def test_numbers_that_contradict_each_other_are_refused(read: Read) -> None:
    """``6.998`` is 6,998 with the commas and points of another language."""
    head = eight(0, 1.0)
    lines = titan_steps(9, tps=6998.0).replace(
        "tflops: 50.00  mfu: 5.06%", "tflops: 350.00  mfu: 35.40%"
    )
    (run,), refusals = read(head + lines)
    assert refusals == [] and run.metrics["tokens_per_second_per_device"]["value"] == 6998
    wrong = lines.replace("tps: 6,998", "tps: 6.998").replace("tps: 700", "tps: 0.7")
    runs, (refusal,) = read(head + wrong)
    assert runs == [] and "was a number printed with other commas and points?" in refusal.reason
    # Without TFLOP/s the share of the device's peak says it too.
    runs, (refusal,) = read(head + wrong.replace("tflops: 350.00  ", ""))
    assert runs == [] and refusal.reason.startswith("mfu_torchtitan of 0.354 is ")
    # Megatron-LM prints no tokens/s, but the time of a step: 8,192 x 64 / 8 tokens in 0.1 s.
    for tflops, refused in ((32000.0, False), (600000.0, True)):
        more = f" throughput per GPU (TFLOP/s/GPU): {tflops} |"
        steps = "".join(megatron(n, 900 if n == 10 else 100, more=more) for n in range(10, 80, 10))
        assert bool(read(dump(**LLAMA_8B) + steps)[1]) is refused
    # Of a long sample attention is most of it.
    long = head.replace("sequence length 8192", "sequence length 262144")
    slow = lines.replace("tps: 6,998", "tps: 548").replace("tps: 700", "tps: 55")
    assert read(long + slow)[1] == []
