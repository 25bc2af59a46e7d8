"""FLOP of a token by each convention, against published and counted ones, and names of metrics."""

import math
from dataclasses import replace

import pytest

from scalesweep.analysis.device_peaks import DEVICES, device_peak, mixed_peak
from scalesweep.analysis.flop_conventions import (
    CONVENTIONS,
    flop_metric,
    mixed_conventions,
    token_flops,
    unnamed_convention,
)
from scalesweep.analysis.model_shape import DTYPES, ModelShape

GPT2 = ModelShape(
    layers=12, width=768, sequence=1024, parameters=163_037_184, heads=12, ffn_width=3072,
    vocabulary=50_257, tied=False, learned_positions=True,
)  # fmt: skip
# Llama 3 8B (arXiv 2407.21783, table 3), with 8,030,261,248 parameters.
LLAMA = ModelShape(
    layers=32, width=4096, sequence=8192, parameters=8_030_261_248, heads=32, kv_heads=8,
    ffn_width=14_336, gated=True, vocabulary=128_256, tied=False, learned_positions=False,
)  # fmt: skip


def test_products_are_those_that_pytorch_counts() -> None:
    """torch.utils.flop_counter over both passes of torch_training's transformer (PyTorch 2.9)."""
    assert token_flops(GPT2)["megatron_full"].model == 854_438_400


def test_conventions_differ_as_their_definitions_say() -> None:
    flops = {name: flop.model for name, flop in token_flops(GPT2).items()}
    attention = 12 * 12 * 768 * 1024
    assert flops["palm"] == 6 * 163_037_184 + attention
    assert flops["parameters_only"] == flops["palm"] - attention
    assert flops["nanogpt"] == flops["palm"] - 6 * 1024 * 768
    assert flops["torchtitan"] == flops["nanogpt"] - 6 * 50_257 * 768
    assert flops["megatron"] == flops["megatron_full"] - attention / 2
    # With norms and biases, which are no products, torchtitan counts a little more.
    assert flops["torchtitan"] == pytest.approx(flops["megatron_full"], rel=1e-3)
    tied = replace(GPT2, tied=True, parameters=124_439_808)
    assert token_flops(tied)["torchtitan"].model == flops["torchtitan"]


def test_llama_with_grouped_queries_and_gates() -> None:
    flops = token_flops(LLAMA)
    block = 4096 * 4096 * (2 + 2 / 4) + 3 * 4096 * 14_336
    matrices = 32 * block + 4096 * 128_256
    assert flops["megatron"].model == 6 * matrices + 6 * 32 * 4096 * 8192
    # All that is left out are the table of tokens and the norms.
    assert flops["torchtitan"].model == 6 * (8_030_261_248 - 4096 * 128_256) + 12 * 32 * 4096 * 8192
    assert flops["palm"].model / flops["megatron"].model == pytest.approx(1.186, abs=0.001)
    far = token_flops(replace(LLAMA, sequence=131_072))
    assert far["palm"].model / far["megatron"].model == pytest.approx(1.717, abs=0.001)


def test_what_a_source_does_not_state_gives_no_number() -> None:
    bare = ModelShape(layers=12, width=768, sequence=1024)
    assert token_flops(bare) == {}
    assert set(token_flops(replace(bare, parameters=1e8))) == {"parameters_only", "palm"}
    assert "megatron" in token_flops(replace(bare, ffn_width=3072, vocabulary=50_257))
    assert "torchtitan" not in token_flops(replace(GPT2, tied=None))
    assert "nanogpt" not in token_flops(replace(GPT2, learned_positions=None))


def test_recomputation_adds_a_forward_pass() -> None:
    """8 N + 16 L d T with checkpointing: mosaicml/llm-foundry, scripts/train/benchmarking."""
    flop = token_flops(GPT2)["palm"]
    assert flop.hardware("full") == pytest.approx(8 * 163_037_184 + 16 * 12 * 768 * 1024)
    assert flop.hardware("none") == flop.model
    # One more forward pass of attention's two products, each 2 s h for a token in a layer.
    assert flop.hardware("selective") == flop.model + 12 * 2 * (2 * 1024 * 768)
    # The last layer is no part of a block and is not computed again.
    exact = token_flops(GPT2)["megatron"]
    assert exact.hardware("full") == (exact.model - exact.rest) * 4 / 3 + 6 * 768 * 50_257


def test_a_convention_is_part_of_a_metrics_name_and_two_are_not_put_together() -> None:
    palm, maxtext = flop_metric("mfu_llm_foundry"), flop_metric("model_flop_rate_maxtext")
    assert palm and palm.convention is CONVENTIONS["palm"] and palm.stem == "mfu"
    assert maxtext and maxtext.convention is CONVENTIONS["megatron"]
    assert flop_metric("throughput") is None and flop_metric("mfutures") is None
    assert unnamed_convention("mfu_unstated") is None and unnamed_convention("tokens") is None
    fault = unnamed_convention("mfu_pct")
    assert fault and "mfu_palm" in fault and "_unstated" in fault
    assert unnamed_convention("hfu") and unnamed_convention("model_flop_rate")
    assert mixed_conventions(["mfu_palm", "hfu_llm_foundry", "tokens_per_second"]) is None
    fault = mixed_conventions(["mfu_palm", "tokens", "mfu_megatron"])
    assert fault and fault.startswith("mfu_palm and mfu_megatron count FLOP by two conventions")
    assert mixed_conventions(["mfu", "mfu_palm"])
    # Programs whose count is not known here count by one of their own.
    assert mixed_conventions(["flops_per_device_gpt_neox", "flops_per_device_megatron"])


def test_peaks_are_dense_and_of_float8_only_with_its_share() -> None:
    peaks = DEVICES["h100_sxm"].flops
    # Half of the FLOP at twice the rate: three quarters of the time.
    for share, peak in ((1.0, 1979e12), (0.0, 989.5e12), (0.5, 989.5e12 / 0.75)):
        assert mixed_peak(peaks, "float8", share) == pytest.approx(peak)
    assert mixed_peak(peaks, "float8", None) is None
    assert mixed_peak(DEVICES["v100_sxm2"].flops, "bfloat16", None) is None
    assert mixed_peak(DEVICES["a100_40gb"].flops, "float8", 1.0) is None
    for name, device in DEVICES.items():
        assert set(device.flops) <= set(DTYPES) and device.source, name
        assert device.flops["float32"] < device.flops["float16"], name
        assert device.flops.get("float8", math.inf) > device.flops["float16"], name
    assert device_peak(replace(GPT2, device="h100_sxm")) is None
    assert device_peak(replace(GPT2, device="h100_sxm", dtype="tf32")) == 494.5e12
