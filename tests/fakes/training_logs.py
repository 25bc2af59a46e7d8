"""Logs in the formats of today's training programs, with made-up numbers.

The formats are those of the programs' sources and of lines in their issues: pytorch/torchtitan
(issue 708, PR 3393), NVIDIA/Megatron-LM (issue 756), EleutherAI/gpt-neox (issue 1248),
deepspeedai/DeepSpeed (issues 1825, 2629, 3742), huggingface/nanotron (issue 390), karpathy/nanoGPT
(issues 178, 215), karpathy/nanochat (PR 147), AI-Hypercomputer/maxtext (guide on logs),
Lightning-AI/litgpt (issue 1607), aws-samples/awsome-distributed-training (FSDP),
foundation-model-stack/fms-fsdp (train_utils.py), PrimeIntellect-ai/prime-rl (PRs 20 and 999),
NVIDIA-BioNeMo/bionemo-recipes (PR 740).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.importers.detect_logs import read_source
from scalesweep.importers.imported_run import ImportedRun, Refusal

Read = Callable[..., tuple[list[ImportedRun], list[Refusal]]]

DATE = "2024-05-06 07:08:09,010 - root - INFO - "
NOW = "[2026-01-02 03:04:05,006] [INFO] "
STAMP = "[titan] 2026-01-02 03:04:05,006 - root - INFO - "


@dataclass(frozen=True)
class Log:
    """A log, the program that prints it, and what must come out; ``ranks`` of ``--ranks``."""

    program: str
    text: str
    ranks: int | None
    point: Mapping[str, Any]
    metrics: Mapping[str, float]
    of_rank: Sequence[str] = ()
    warm_up: int = 1


def titan_steps(count: int, first: int = 1, tps: float = 1000.0) -> str:
    """Lines of progress of torchtitan, the first of which is slow."""
    return "".join(
        f"{STAMP}step: {step:2}  loss: {12 - step / 10:8.4f}  grad_norm: 1.0000  memory: 10.00GiB"
        f"(12.65%)  tps: {round(tps / 10 if step == first else tps):,}  tflops: 50.00  mfu: 5.06%\n"
        for step in range(first, first + count)
    )


def titan(count: int, tps: float = 1000.0) -> str:
    """A log of torchtitan, its header too."""
    return (
        f"{STAMP}Building device mesh with parallelism: pp=1, dp_replicate=2, dp_shard=2, cp=1, "
        f"tp=2, ep=1, etp=1\n"
        f"{STAMP}CUDA capacity: NVIDIA H100 80GB HBM3 with 79.18GiB memory\n"
        f"{STAMP}Model llama3 8B size: 8,030,261,248 total parameters\n"
        f"{STAMP}Trainer is initialized with local batch size 2, global batch size 8, gradient "
        "accumulation steps 1, sequence length 100, total steps 10 (warmup 2)\n"
        f"{STAMP}Training starts at step 1\n"
    ) + titan_steps(count, tps=tps)


def old_titan() -> str:
    """A log of torchtitan as it was in 2024, with colours."""
    text = (
        f"{DATE}Building 2-D device mesh with ['dp', 'tp'], [4, 2]\n"
        f"{DATE}Training starts at step 1, with local batch size 1, "
        "global batch size 4, sequence length 100, total steps 1000 (warmup 200)\n"
    )
    for step in (1, 10, 20, 30, 40, 50):
        tps = 100 if step == 1 else 1250
        text += (
            f"{DATE}\x1b[31mstep: {step:2}  \x1b[32mloss:  1.5000  "
            f"\x1b[33mmemory: 20.00GiB(25.00%)  \x1b[34mwps: {tps:,}  \x1b[35mmfu: N/A\x1b[39m\n"
        )
    return text


def megatron(step: int, ms: float, batch: int = 64, more: str = "") -> str:
    """A line of Megatron-LM."""
    return (
        f" [2026-01-02 03:04:05] iteration {step:8}/     100 | consumed samples: {step * batch:12} "
        f"| elapsed time per iteration (ms): {ms:.1f} |{more} learning rate: 1.000E-05 | global "
        f"batch size: {batch:5} | lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 1.000 "
        "| number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def nanogpt(count: int, evaluations: Sequence[int] = (0,)) -> str:
    """A log of nanoGPT: an evaluation makes its iteration long."""
    text = "tokens per iteration will be: 491,520\nnumber of parameters: 123.59M\n"
    for step in range(count):
        ms = 100.0
        if step in evaluations:
            text += f"step {step}: train loss 3.0000, val loss 3.1000\n"
            ms = 5000.0
        mfu = -100.0 if step < 5 else 35.0
        text += f"iter {step}: loss 3.0000, time {ms:.2f}ms, mfu {mfu:.2f}%\n"
    return text


def _neox() -> str:
    arguments = {
        "world_size": "16........................updated", "train_batch_size": "32...updated",
        "train_micro_batch_size_per_gpu": "4....updated", "seq_length": "2048....default",
        "model_parallel_size": "2.......................default",
        "pipe_parallel_size": "0......................default",
        "params_dtype": "torch.float16............updated",
    }  # fmt: skip
    text = "-------------------- arguments --------------------\n" + "".join(
        f"  {name} {'.' * (32 - len(name))} {text}\n" for name, text in arguments.items()
    )
    for step in range(10, 70, 10):
        text += (
            f"{NOW}[timer.py:197:stop] 0/{step}, RunningAvgSamplesPerSec="
            "31.5, CurrSamplesPerSec=32.5, MemAllocated=2.0GB, MaxMemAllocated=3.0GB\n"
            f" samples/sec: 32.000 | iteration {step:8}/   10000 | elapsed time per iteration "
            f"(ms): {1500 if step == 10 else 1000}.0 | learning rate: 2.0E-06 | approx flops per "
            "GPU: 50.0TFLOPS | lm_loss: 1.100000E+01 | number of skipped iterations:   0 | "
            "number of nan iterations:   0 |\n"
            "time (ms) | forward: 300.00 | backward: 500.00 | backward-backward: 499.00 | "
            "backward-allreduce: 0.00 | optimizer: 150.00 | batch generator: 0.50\n"
        )
    return text


def _deepspeed() -> str:
    text = (
        f"{NOW}[logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.10.0, git-hash=unknown\n"
    )
    for step in range(10, 70, 10):
        text += (
            f"{NOW}[timer.py:215:stop] epoch=0/micro_step={step}/"
            f"global_step={step}, RunningAvgSamplesPerSec=7.5, CurrSamplesPerSec="
            f"{2 if step == 10 else 8}.0, MemAllocated=2.0GB, MaxMemAllocated=3.0GB\n"
            f"{NOW}[logging.py:96:log_dist] [Rank 0] rank=0 time (ms) | "
            "forward: 200.00 | backward: 500.00 | backward_inner: 400.00 | backward_allreduce: "
            "100.00 | step: 300.00\n"
        )
    return text


def _old_deepspeed() -> str:
    return "".join(
        f"[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/{step}, SamplesPerSec="
        f"{4 if step == 10 else 8}.5, MemAllocated=0.25GB, MaxMemAllocated=2.0GB\n"
        for step in range(10, 70, 10)
    )


def _nanotron() -> str:
    head = "01/02/2026 03:04:05 [INFO|DP=0|PP=0|TP=0]: "
    return (
        f"{head}Config(parallelism=ParallelismArgs(dp=4, pp=1, tp=2, pp_engine=None),\n"
        f"{head}       tokens=TokensArgs(sequence_length=1024, micro_batch_size=2,))\n"
    ) + "".join(
        f"{head}iteration: {step} / 100 | consumed_tokens: 1.5G | elapsed_time_per_iteration_ms: "
        f"{'11.5K' if step == 1 else '1.15K'} | tokens_per_sec: 22.8K | tokens_per_sec_per_gpu: "
        "2.85K | global_batch_size: 64 | lm_loss: 2.5 | lr: 1e-05 | model_tflops_per_gpu: 38.5 | "
        "hardware_tflops_per_gpu: 39.5 | grad_norm: 1.25\n"
        for step in range(1, 9)
    )


def _nanochat() -> str:
    return (
        "Tokens / micro-batch / rank: 32 x 2048 = 65,536\nTokens / micro-batch: 524,288\n"
        "Total batch size 524,288 => gradient accumulation steps: 1\n"
        "Parameter counts:\nwte                     : 41,943,040\n"
        "total                   : 560,988,160\n"
    ) + "".join(
        f"step {step:05}/21400 ({step / 214:.2f}%) | loss: 8.500000 | lrm: 1.00 | dt: "
        f"{5000 if step == 0 else 1000}.00ms | tok/sec: {104858 if step == 0 else 524288:,} | mfu: "
        "50.00 | total time: 0.00m\n"
        for step in range(8)
    )


def _maxtext() -> str:
    config = {
        "activations_in_float32": "False", "dcn_tensor_parallelism": "1", "dtype": "bfloat16",
        "global_batch_size_to_train_on": "64", "ici_tensor_parallelism": "4",
        "max_target_length": "2048", "model_name": "llama2-7b",
    }  # fmt: skip
    text = "".join(f"Config param {name}: {value}\n" for name, value in config.items())
    text += "Num_devices: 16, shape (1, 1, 4, 1, 1, 4, 1, 1)\n"
    # Step 0 compiles; step 1 is dispatched, and not waited for.
    for step, seconds in enumerate([44.0, 0.25, *[4.0] * 6]):
        text += (
            f"completed step: {step}, seconds: {seconds:.3f}, TFLOP/s/device: {400 / seconds:.3f}, "
            f"Tokens/s/device: {8192 / seconds:.3f}, total_weights: 131072, loss: 10.500\n"
        )
    return text


def _litgpt() -> str:
    text = "Total parameters: 1,034,512,384\n"
    for number in range(1, 33):
        ended = number % 4 == 0
        ms = 400.0 if number == 4 else 112.5 if ended else 90.0
        text += (
            f"Epoch 1 | iter {number} step {number // 4} | loss train: 2.500, val: n/a | iter "
            f"time: {ms:.2f} ms{' (step)' if ended else ''} remaining time: 0:01:54\n"
        )
    return text


def _fms() -> str:
    return (
        "--> running with these configs train_config(model_variant='7b', batch_size=2, "
        "seq_length=4096, sharding_strategy='hsdp', fsdp_activation_checkpointing=False)\n"
        "--> model has 6738.415616 Million params\n"
    ) + "".join(
        f"step: {step}\nloss: 2.5\nLR: 0.0001\ntokens seen: 1000\ngradient norm: 0.5\n"
        f"reserved memory: 4000000000\nallocated memory: 3000000000\ncurrent step time: "
        f"{9.0 if step == 100 else 2.0}\noverall step time: 2.5\ncurrent token per gpu per sec: "
        f"{1000 if step == 100 else 4500}\noverall token per gpu per sec: 4000\n"
        for step in range(100, 700, 100)
    )


def _prime(step: int) -> str:
    tokens = 10000.0 if step == 0 else 80000.0
    return (
        f"03:26:55 [INFO] [TRAIN] [Rank 0] step: {step}, loss: 9.5000, tokens_per_second: "
        f"{tokens:.2f}, mfu: 42.50\n"
    )


def _later_prime(step: int) -> str:
    return (
        f"02:40:52 SUCCESS Step {step} | Time: {5 if step == 0 else 0.5:.2f}s | Loss: 9.5000 | "
        f"Grad. Norm: 28.2 | LR: 1.00e-06 | Throughput: {'0' if step == 0 else '4000'} tokens/s | "
        f"MFU: {0 if step == 0 else 1.5:.1f}% | Peak Mem.: 5.0/23.7 GiB (21.1%) | Max Vio: 1.0000\n"
    )


def _nemo(step: int) -> str:
    return (
        f"Training epoch 0, iteration {step}/149 | lr: 3e-05 | consumed_samples: {4 * step + 4} | "
        f"global_batch_size: 4 | global_step: {step} | reduced_train_loss: 1.5 | train_step_timing "
        f"in s: {5.0 if step == 0 else 0.125} | val_loss: 4.106\n"
    )


_ENERGY = (
    " throughput per GPU (TFLOP/s/GPU): 137.5 | energy per GPU (J/iter/GPU): 60.5 | power per GPU"
    " (W/GPU): 605.0 |"
)
_ARGUMENTS = (
    "------------------------ arguments ------------------------\n"
    "  context_parallel_size ........................... 1\n"
    "  micro_batch_size ................................ 2\n"
    "  params_dtype .................................... torch.bfloat16\n"
    "  pipeline_model_parallel_size .................... 2\n"
    "  seq_length ...................................... 4096\n"
    "  tensor_model_parallel_size ...................... 4\n"
    "  world_size ...................................... 16\n"
    "-------------------- end of arguments ---------------------\n"
)
GIB = 2.0**30
LOGS = {
    "torchtitan": Log(
        "torchtitan", titan(9), None,
        {"ranks": 8, "tp": 2, "pp": 1, "cp": 1, "data_parallel": "hsdp", "model": "llama3 8B",
         "model_parameters": 8030261248, "micro_batch_size": 2, "sequence_length": 100,
         "batch_per_rank": 1, "device": "h100_sxm"},
        {"tokens_per_second_per_device": 1000, "tokens_per_second": 8000, "step_time": 0.1,
         "samples_per_second": 80, "model_flop_rate_torchtitan": 50e12, "mfu_torchtitan": 0.0506,
         "peak_memory_reserved": 10 * GIB, "final_loss": 11.1},
        ("tokens_per_second_per_device", "model_flop_rate_torchtitan", "mfu_torchtitan",
         "peak_memory_reserved"),
    ),
    "torchtitan of 2024": Log(
        "torchtitan", old_titan(), None,
        {"ranks": 8, "tp": 2, "pp": 1, "cp": 1, "data_parallel": "fsdp", "micro_batch_size": 1,
         "sequence_length": 100, "batch_per_rank": 0.5},
        {"tokens_per_second_per_device": 1250, "tokens_per_second": 10000, "step_time": 0.04,
         "samples_per_second": 100, "peak_memory_reserved": 20 * GIB, "final_loss": 1.5},
        ("tokens_per_second_per_device", "peak_memory_reserved"),
    ),
    "Megatron-LM": Log(
        "Megatron-LM",
        _ARGUMENTS
        + "".join(megatron(n, 900 if n == 10 else 100, more=_ENERGY) for n in range(10, 80, 10)),
        None,
        {"ranks": 16, "tp": 4, "pp": 2, "cp": 1, "micro_batch_size": 2, "sequence_length": 4096,
         "precision": "bfloat16", "batch_per_rank": 4},
        {"step_time": 0.1, "samples_per_second": 640, "tokens_per_second": 640 * 4096,
         "flops_per_device_megatron": 137.5e12, "energy_per_step_per_device": 60.5,
         "power_per_device": 605, "final_loss": 2.5},
        ("flops_per_device_megatron", "energy_per_step_per_device", "power_per_device"),
    ),
    "Megatron Bridge": Log(
        "Megatron-LM",
        "".join(
            megatron(n, 900.0 if n == 1 else 100.0)
            + "[Rank 0] (after 1 iterations) memory (MB) | allocated: 11.5 | max allocated: 12.5 | "
            "reserved: 12.0 | max reserved: 16.0\n"
            "[Rank 7] (after 1 iterations) memory (MB) | allocated: 1.5 | max allocated: 2.5 | "
            "reserved: 3.0 | max reserved: 4.0\n"
            "Step Time : 0.10s GPU utilization: 58.5MODEL_TFLOP/s/GPU\n"
            for n in range(1, 9)
        ),
        8,
        {"ranks": 8, "batch_per_rank": 8},
        {"step_time": 0.1, "samples_per_second": 640, "flops_per_device_megatron_bridge": 58.5e12,
         "peak_memory_allocated": 12.5 * 2**20, "peak_memory_reserved": 2**24, "final_loss": 2.5},
        ("flops_per_device_megatron_bridge", "peak_memory_allocated", "peak_memory_reserved"),
    ),
    "GPT-NeoX": Log(
        "GPT-NeoX", _neox(), None,
        {"ranks": 16, "tp": 2, "pp": 1, "micro_batch_size": 4, "sequence_length": 2048,
         "precision": "float16", "batch_per_rank": 2},
        {"samples_per_second": 32, "step_time": 1.0, "flops_per_device_gpt_neox": 50e12,
         "time_forward": 0.3, "time_update": 0.15, "time_input": 0.0005,
         "tokens_per_second": 32 * 2048, "final_loss": 11},
        ("flops_per_device_gpt_neox", "time_forward", "time_update", "time_input"),
    ),
    "DeepSpeed": Log(
        "DeepSpeed", _deepspeed(), 4, {"ranks": 4},
        {"samples_per_second": 8, "peak_memory_allocated": 3 * GIB, "time_forward": 0.2,
         "time_backward": 0.5, "time_backward_inner": 0.4, "time_backward_allreduce": 0.1,
         "time_update": 0.3},
        ("peak_memory_allocated", "time_forward", "time_backward", "time_backward_inner",
         "time_backward_allreduce", "time_update"),
    ),
    "DeepSpeed of 2022": Log(
        "DeepSpeed", _old_deepspeed(), 4, {"ranks": 4},
        {"samples_per_second": 8.5, "peak_memory_allocated": 2 * GIB}, ("peak_memory_allocated",),
    ),
    "nanotron": Log(
        "nanotron", _nanotron(), None,
        {"ranks": 8, "tp": 2, "pp": 1, "sequence_length": 1024, "micro_batch_size": 2,
         "batch_per_rank": 8},
        {"step_time": 1.15, "tokens_per_second": 22800, "tokens_per_second_per_device": 2850,
         "flops_per_device_nanotron": 38.5e12, "hardware_flops_per_device_nanotron": 39.5e12,
         "samples_per_second": 64 / 1.15, "final_loss": 2.5},
        ("tokens_per_second_per_device", "flops_per_device_nanotron",
         "hardware_flops_per_device_nanotron"),
    ),
    "nanoGPT": Log(
        "nanoGPT", nanogpt(9), 8,
        {"ranks": 8, "tokens_per_rank": 61440, "model_parameters": 123590000},
        {"step_time": 0.1, "tokens_per_second": 4915200, "nanogpt_mfu": 0.35, "final_loss": 3},
    ),
    "nanochat": Log(
        "nanochat", _nanochat(), None,
        {"ranks": 8, "micro_batch_size": 32, "sequence_length": 2048, "tokens_per_rank": 65536,
         "model_parameters": 560988160},
        {"step_time": 1.0, "tokens_per_second": 524288, "nanochat_mfu": 0.5, "final_loss": 8.5},
        ("nanochat_mfu",),
    ),
    "MaxText": Log(
        "MaxText", _maxtext(), None,
        {"ranks": 16, "tp": 4, "precision": "bfloat16", "sequence_length": 2048,
         "model": "llama2-7b", "batch_per_rank": 4},
        {"step_time": 4.0, "tokens_per_second_per_device": 2048, "tokens_per_second": 32768,
         "samples_per_second": 16, "flops_per_device_maxtext": 100e12, "final_loss": 10.5},
        ("tokens_per_second_per_device", "flops_per_device_maxtext"),
        warm_up=2,
    ),
    "litgpt": Log(
        "litgpt", _litgpt(), 4, {"ranks": 4, "model_parameters": 1034512384},
        {"micro_batch_time": 0.1125, "final_loss": 2.5},
    ),
    "AWS FSDP": Log(
        "AWS FSDP",
        "".join(
            f"2025-06-20 14:17:10 I [train.py:103] Batch {n} Loss: 7.25000, Speed: "
            f"{0.5 if n == 0 else 9.5:.2f} samples/sec, lr: 0.000010\n"
            for n in range(8)
        ),
        8, {"ranks": 8}, {"samples_per_second": 9.5, "final_loss": 7.25},
    ),
    "fms-fsdp": Log(
        "fms-fsdp", _fms(), 8,
        {"ranks": 8, "model": "7b", "micro_batch_size": 2, "sequence_length": 4096,
         "data_parallel": "hsdp", "model_parameters": 6738415616},
        {"step_time": 2.0, "tokens_per_second_per_device": 4500, "tokens_per_second": 36000,
         "peak_memory_reserved": 4e9, "final_loss": 2.5},
        ("tokens_per_second_per_device", "peak_memory_reserved"),
    ),
    "prime-rl": Log(
        "prime-rl", "".join(_prime(step) for step in range(8)), 8, {"ranks": 8},
        {"tokens_per_second": 80000, "prime_rl_mfu": 0.425, "final_loss": 9.5}, ("prime_rl_mfu",),
    ),
    "prime-rl, later": Log(
        "prime-rl", "".join(_later_prime(step) for step in range(8)), 8, {"ranks": 8},
        {"step_time": 0.5, "tokens_per_second": 4000, "prime_rl_mfu": 0.015,
         "peak_memory": 5 * GIB, "final_loss": 9.5},
        ("prime_rl_mfu", "peak_memory"),
    ),
    "modded-nanogpt": Log(
        "modded-nanogpt",
        "step:0/1750 train_time:0ms step_avg:nanms\n" + "".join(
            f"step:{n}/1750 train_time:{900 + 100 * n}ms step_avg:{900 / n + 100:.2f}ms\n"
            for n in range(1, 9)
        ) + "step:8/1750 val_loss:3.2790 train_time:1700ms step_avg:212.50ms\n",
        None, {"ranks": 1}, {"step_time": 0.1}, warm_up=2,
    ),
    "Horovod": Log(
        "Horovod's synthetic benchmark",
        "Model: ResNet50\nBatch size: 32\nNumber of GPUs: 4\nRunning warmup...\n"
        + "".join(f"Iter #{n}: 200.0 img/sec per GPU\n" for n in range(9))
        + "Img/sec per GPU: 200.0 +-0.0\nTotal img/sec on 4 GPU(s): 800.0 +-0.0\n",
        None, {"ranks": 4, "model": "ResNet50", "micro_batch_size": 32, "batch_per_rank": 32},
        {"images_per_second": 200, "total_images_per_second": 800}, ("images_per_second",),
        warm_up=0,
    ),
    "NeMo": Log(
        "NeMo", "".join(_nemo(step) for step in range(8)), 8,
        {"ranks": 8, "batch_per_rank": 0.5},
        {"step_time": 0.125, "samples_per_second": 32, "final_loss": 1.5},
    ),
}  # fmt: skip


def log_reader(folder: Path) -> Read:
    """What writes a text into a log of a folder, and reads it."""

    def read(text: str, ranks: int | None = None) -> tuple[list[ImportedRun], list[Refusal]]:
        (folder / "train.log").write_text(text)
        runs, refusals, _ = read_source(folder, ranks)
        return runs, refusals

    return read
