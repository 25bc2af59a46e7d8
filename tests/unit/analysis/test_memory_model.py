"""The memory model against published numbers and what must hold, and its constants from peaks."""

from dataclasses import replace

import numpy as np
import pytest

from scalesweep.analysis.memory_model import (
    DEFAULT_SPREAD,
    EMPTY_STAGE,
    FEW_PASSES,
    FITS,
    TOO_LARGE,
    UNCERTAIN,
    MemoryFit,
    MemoryLayout,
    fit_memory,
    in_flight,
    obstacle,
    pipeline_stages,
    rank_bytes,
)
from scalesweep.analysis.model_shape import ModelShape

GIB = 2**30
LLAMA_8B = ModelShape(
    layers=32, width=4096, sequence=8192, heads=32, kv_heads=8, ffn_width=14336, gated=True,
    vocabulary=128256, tied=False, micro_batch=1, accumulation=1, dtype="bfloat16",
)  # fmt: skip


def blocks_of(shape: ModelShape, layout: MemoryLayout) -> list[int]:
    return [stage.blocks for stage in pipeline_stages(shape, layout)]


@pytest.mark.parametrize(
    ("tp", "cp", "pp", "dp", "expected"),
    [
        (2, 1, 1, 2, 44.87260437011719),
        (1, 2, 1, 2, 67.30887222290039),
        (2, 1, 2, 32, 11.919273376464844),
        (2, 2, 1, 32, 23.137436628341675),
    ],
)
def test_states_of_llama_8b_as_megatron_counts_them(tp, cp, pp, dp, expected):
    """Megatron-LM's own test of theoretical_memory_usage.py, GiB of the stage with the most."""
    layout = MemoryLayout(tp=tp, cp=cp, pp=pp, shards=dp, zero=1)
    states = rank_bytes(LLAMA_8B, layout)[:, :3].sum(axis=1).max()
    assert states / GIB == pytest.approx(expected, rel=1e-5)  # without the last normalisation


@pytest.mark.parametrize(("zero", "expected"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.88)])
def test_states_of_the_zero_paper(zero, expected):
    """Figure 1 of arXiv 1910.02054: 7.5 billion weights, Adam, 64 ranks, 16-bit gradients; GB."""
    shape = ModelShape(
        layers=1000, width=256, sequence=1, parameters=7.5e9, vocabulary=1, tied=True,
        micro_batch=1, accumulation=1, dtype="bfloat16",
    )  # fmt: skip
    layout = MemoryLayout(shards=64, zero=zero, gradient_bytes=2)
    states = rank_bytes(shape, layout)[0, :3].sum() / 1e9
    # ZeRO-3 has two of the thousand blocks whole besides, 0.03 GB.
    assert states == pytest.approx(expected + (0.03 if zero == 3 else 0), rel=0.01)


def test_activations_of_gpt_as_korthikanti():
    """34 s b h of a block of GPT's shape without the 2 of dropout's masks, shared by the ranks of
    tensor parallelism but for 8 s b h where they do not share the sequence."""
    gpt = ModelShape(
        layers=4, width=512, sequence=128, heads=8, ffn_width=2048, vocabulary=1000, tied=True,
        micro_batch=2, accumulation=8, dtype="bfloat16",
    )  # fmt: skip
    unit = 128 * 2 * 512 * 4

    def activations(**keys):
        return rank_bytes(gpt, MemoryLayout(**keys))[0, 3]

    assert activations() == 32 * unit
    assert activations(tp=4) == 8 * unit
    assert activations(tp=4, sequence_parallel=False) == (8 + 24 / 4) * unit
    full = rank_bytes(replace(gpt, recompute="full"), MemoryLayout())[0, 3]
    assert full == 2 * unit + 32 * unit / 4  # the inputs of all blocks, and one whole block


def test_micro_batches_in_flight():
    one = MemoryLayout(pp=4, passes=8)
    assert [in_flight(one, stage) for stage in range(4)] == [4, 3, 2, 1]
    assert in_flight(replace(one, passes=2), 0) == 2
    assert in_flight(replace(one, schedule="gpipe"), 3) == 8
    # Korthikanti et al., 4.2.3: L (1 + (p - 1) / (p v)) layers on the first stage.
    interleaved = replace(one, schedule="interleaved", virtual_stages=2)
    assert in_flight(interleaved, 0) == pytest.approx(4 * (1 + 3 / (4 * 2)))
    assert in_flight(MemoryLayout(passes=8), 0) == 1


def test_logits_are_the_last_stage_s():
    parts = rank_bytes(LLAMA_8B, MemoryLayout(pp=2, tp=2, passes=4))
    assert parts[0, 4] == 0
    assert parts[1, 4] == 14 * 8192 * 128256 / 2
    whole = rank_bytes(LLAMA_8B, MemoryLayout(pp=2, tp=2, passes=4, split_vocabulary=False))
    assert whole[1, 4] == 2 * parts[1, 4]


def test_blocks_of_stages():
    assert blocks_of(LLAMA_8B, MemoryLayout(pp=3)) == [11, 11, 10]
    # 16 blocks of 67 million weights and a last layer of 268: as much as four blocks.
    small = ModelShape(
        layers=16, width=2048, sequence=4096, heads=32, ffn_width=8192, gated=True,
        vocabulary=131072, tied=True, micro_batch=1, dtype="bfloat16",
    )  # fmt: skip
    # Ten blocks are half of all and not beyond it.
    assert blocks_of(small, MemoryLayout(pp=2, stages="balanced")) == [11, 5]
    eight = MemoryLayout(pp=8, stages="balanced")
    assert blocks_of(small, eight) == [3, 3, 2, 3, 2, 3, 0, 0] and not obstacle(small, eight)
    # The last layer is on the last but one, the loss on the last.
    parts = rank_bytes(small, eight)
    assert not parts[5, 4] and parts[6, 4] > 0 and not parts[7].any()
    assert obstacle(small, MemoryLayout(pp=16, stages="balanced")) == EMPTY_STAGE
    # The last stage has the last layer.
    assert not obstacle(small, MemoryLayout(pp=17))
    assert obstacle(small, MemoryLayout(pp=18)) == EMPTY_STAGE


@pytest.mark.parametrize(("least", "passes"), [("one", 1), ("stages - 1", 3), ("stages", 4)])
def test_a_schedule_takes_so_many_micro_batches(least, passes):
    layout = MemoryLayout(pp=4, least_passes=least, passes=passes)
    assert not obstacle(LLAMA_8B, layout)
    assert obstacle(LLAMA_8B, replace(layout, passes=passes - 1)) == FEW_PASSES
    assert not obstacle(LLAMA_8B, MemoryLayout(least_passes=least))


def test_optimisers_and_types():
    single = replace(LLAMA_8B, dtype="float32", parameters=None)
    for optimizer, copies in (("sgd", 0), ("momentum", 1), ("adam", 2)):
        layout = MemoryLayout(optimizer=optimizer, passes=2, schedule="gpipe")
        weights, gradients, states = rank_bytes(single, layout)[0, :3]
        assert weights == gradients and states == copies * weights
    asked = MemoryLayout(weight_bytes=4, gradient_bytes=8, master_bytes=0, passes=2)
    own = rank_bytes(LLAMA_8B, asked)[0]
    assert list(own[:3] / own[0]) == [1, 2, 2]


def test_the_peak_is_in_the_backward_pass_or_in_the_update():
    """Of float32: weights, gradients and Adam's copy have 4 bytes each."""
    small = replace(LLAMA_8B, dtype="float32", sequence=16)
    large, few = (rank_bytes(shape, MemoryLayout())[0] for shape in (
        replace(small, sequence=8192), small))  # fmt: skip
    assert large[1] == 0 and large[3] > 0 and large[4] > 0
    assert list(few[1:] / few[0]) == [2, 2, 0, 0]
    assert list(rank_bytes(small, MemoryLayout(optimizer="sgd"))[0][1:] / few[0]) == [1, 0, 0, 0]
    for kept in ({"passes": 2}, {"shards": 2}):
        summed = rank_bytes(replace(small, sequence=8192), MemoryLayout(**kept))[0]
        assert summed[1] == summed[0] and list(summed[3:]) == list(large[3:])


def test_width_from_the_parameters():
    """8.03 billion parameters with grouped queries leave 14,336 columns for the wide layers."""
    stated = replace(LLAMA_8B, ffn_width=None, parameters=8.03e9)
    ours, theirs = (rank_bytes(shape, MemoryLayout())[0] for shape in (stated, LLAMA_8B))
    assert ours == pytest.approx(theirs, rel=1e-3)


TRUE = np.array([1.2, 1.4, 0.8, 8e8])


def made_points(count, stages=1, noise=0.03):
    """Parts of points, and their peaks by ``TRUE``: of the stage with the most."""
    generator = np.random.default_rng(0)
    points = []
    for _ in range(count):
        parts = generator.lognormal(np.log(4e9), 1, (stages, 5))
        terms = np.column_stack([parts[:, :3].sum(axis=1), parts[:, 3:], np.ones(stages)])
        peak = (terms @ TRUE).max() * generator.lognormal(0, noise)
        points.append((parts, float(peak)))
    return points


def test_outliers_move_little():
    points = made_points(80)
    odd = [(parts, 3 * peak if place % 10 == 0 else peak) for place, (parts, peak) in
           enumerate(points)]  # fmt: skip
    fit = fit_memory(odd)
    assert fit.values[:3] == pytest.approx(TRUE[:3], rel=0.1)
    assert fit.spread > 0.15  # but they count where a verdict is asked how sure it is


def test_few_points_stay_near_the_defaults():
    parts, _ = made_points(1)[0]
    needed = MemoryFit().needed(parts)
    fit = fit_memory([(parts, 1.5 * needed)])
    assert fit.spread == DEFAULT_SPREAD and 1.05 < fit.needed(parts) / needed < 1.5
    assert fit_memory([]) == MemoryFit()


def test_peaks_of_the_first_and_the_mean_rank():
    points = made_points(60, stages=4, noise=0)
    for of, rank in (("first", lambda s: s[0]), ("mean", np.mean)):
        peaks = []
        for parts, _ in points:
            terms = np.column_stack([parts[:, :3].sum(axis=1), parts[:, 3:], np.ones(4)])
            peaks.append((parts, float(rank(terms @ TRUE))))
        fit = fit_memory(peaks, of=of)
        assert fit.values[:3] == pytest.approx(TRUE[:3], rel=0.05)
        assert fit.needed(points[0][0], of) == pytest.approx(peaks[0][1], rel=0.05)
        assert fit.needed(points[0][0]) >= fit.needed(points[0][0], of)


def test_a_verdict_is_likely_from_nine_in_ten():
    """90 % of a normal distribution lie below 1.2816 standard deviations."""
    fit, parts = MemoryFit(1, 1, 1, 0, spread=0.1), np.array([[1e9, 0, 0, 0, 0]])
    at = [1.1e9 * np.exp(0.1 * deviations) for deviations in (-1.29, -1.27, 1.27, 1.29)]
    said = [fit.verdict(parts, device) for device in at]
    assert said == [TOO_LARGE, UNCERTAIN, UNCERTAIN, FITS]
