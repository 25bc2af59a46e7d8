"""The shipped small campaigns as one, with one repeat and fewer or shorter points.

One call of Snakemake runs all of them for several modules of tests.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from tests.conftest import Project, make_project
from tests.fakes.torch_python import TORCH
from tests.scheduling import SMALL_CAMPAIGNS_MINUTES
from tests.workflow.warm_site import start_warm

CAMPAIGNS = Path(__file__).resolve().parents[2] / "config" / "campaigns"
RESULTS = "results"

Kept = dict[str, dict[str, Any]]
_SHORT = {"repeats": 2, "seconds_per_repeat": 0.01}
_FEW_STEPS = {"warmup_batches": 1, "batches": 4}
_FEW_SAMPLES = {"samples_per_rank": 32}
# Where any network will do: this one is built and traced in a fraction of ResNet-20's time.
_ANY_NETWORK = {**_FEW_STEPS, "model": "alexnet"}

# By campaign and experiment: what is measured of its axes and linked values, and how much of it.
# Over processes: on TensorFlow's servers and under Horovod. That every mode trains is tested where
# they are (test_cnn_updates).
SHORTER: dict[str, Kept] = {
    "cosmoflow_io": {
        "io_weak_scaling": {
            "axes": {"ranks": [1, 2]}, "fixed": {"epochs": 3, **_FEW_SAMPLES}, "repeats": 2,
        },
    },
    "input_bound": {
        "reading": {"axes": {"ranks": [1]}, "fixed": _FEW_SAMPLES, "scaling": "none"},
        "training": {"axes": {"ranks": [1]}, "fixed": _FEW_SAMPLES, "scaling": "none"},
    },
    "thread_pools": {
        "thread_pools": {
            "axes": {"inter_threads": [0, 1], "intra_threads": [0, 2]}, "fixed": {"epochs": 3},
        },
    },
    "ceilings": {
        "compute": {
            "axes": {"dtype": ["float32"]}, "fixed": _SHORT,
            "linked": [{"operation": "matmul", "sizes": [64, 128, 256]}],
        },
        "convolutions": {
            "linked": [{"height": 128, "width": 128, "sizes": [16]}], "fixed": _SHORT,
        },
        "copies": {"fixed": {"sizes": [4, 65536, 1048576], "repeats": 2}},
        "memory": {"fixed": {"repeats": 2}},
        "network": {
            "fixed": {"sizes": [4, 4096, 262144, 4194304], "seconds_per_repeat": 0.005},
        },
        "links": {},
        "files": {"fixed": {"readers": [1, 2], "repeats": 2}},
    },
    "input_pipeline": {
        "files": {"axes": {"cache": ["warm"]}, "fixed": {"readers": [1, 2], "file_mib": 32}},
        "techniques": {
            "axes": {"pipeline": ["serial", "prefetch"]},
            "fixed": {"epochs": 3, "step_gflop": 1, **_FEW_SAMPLES},
        },
        "python": {
            "axes": {"pipeline": ["serial", "generator", "py_function", "processes"]},
            "fixed": {"epochs": 2, **_FEW_SAMPLES},
        },
        "shard": {
            "axes": {"shard": ["before_shuffle", "after_shuffle"]},
            "fixed": {"epochs": 3, **_FEW_SAMPLES},
        },
    },
    "roofline": {
        "compute": {"linked": [{"operation": "matmul", "sizes": [64, 128, 256]}], "fixed": _SHORT},
        "memory": {"fixed": {"repeats": 2}},
        "alexnet": {"axes": {"batch_size": [16, 4]}, "fixed": {"rounds": 1, "least_ms": 1}},
        "lstm": {
            "axes": {"batch_size": [2]}, "fixed": {"rounds": 1, "least_ms": 1, "sequence_steps": 4},
        },
    },
    "cosmoflow_training": {
        "weak_scaling": {
            "fixed": {"epochs": 2, "samples_per_rank": 64, "validation_samples_per_rank": 16},
            "exclude": ["ranks == 2 and input == 'dummy'"],
        },
        "time_to_target": {"fixed": {"target_mae": 0.1, "epochs": 16}},
    },
    "nt3": {
        "epochs_shared": {"fixed": {"filters": [16, 16]}},
        "batches_and_rates": {
            "axes": {"batch_size": [20, 40], "learning_rate": [0.01]},
            "fixed": {"filters": [16, 16], "total_epochs": 2, "target_accuracy": None},
        },
        "loading": {
            "linked": [
                {"data_format": "csv", "csv_reader": "pandas"},
                {"data_format": "parquet", "csv_reader": "pandas"},
            ],
            "fixed": {"features": 4000},
        },
    },
    "cnn_layout": {"cifar10": {"axes": {"model": ["alexnet"]}, "fixed": _FEW_STEPS}},
    "cnn_variable_update": {
        "processes": {
            "axes": {"variable_update": ["collective_all_reduce", "horovod"]},
            "fixed": _ANY_NETWORK,
        },
        "all_reduce": {
            "axes": {"all_reduce": ["hierarchical_copy", "nccl"]}, "fixed": _ANY_NETWORK,
        },
    },
    "cnn_gpus": {
        "each_gpu": {"axes": {"env.CUDA_VISIBLE_DEVICES": ["0", "1"]}, "fixed": _ANY_NETWORK},
        "pairs": {"axes": {"variable_update": ["independent"]}, "fixed": _ANY_NETWORK},
    },
    "cnn_input": {
        "cifar10": {
            "axes": {"devices_per_rank": [1], "input": ["synthetic", "pipeline"]},
            "fixed": _FEW_STEPS, "scaling": "none",
        },
    },
    "cnn_grid": {
        "grid": {
            "axes": {
                "inter_threads": [2], "batch_size": [8],
                "variable_update": ["replicated", "horovod"],
            },
            "metrics": {
                "images_per_thread": {
                    "formula": "total_images_per_second / (devices * intra_threads)",
                    "unit": "images/s", "scope": "rank",
                },
            },
            "main_metric": "images_per_thread",
        },
    },
    "cifar10_convergence": {"ranks": {}},
    "cifar10_scaling": {
        "horovod": {
            "axes": {"model": ["alexnet", "resnet20"]},
            "fixed": {"warmup_batches": 2, "batches": 12},  # steps to see a warm-up
        },
    },
}  # fmt: skip

if TORCH.exists():
    SHORTER["frameworks"] = {
        "resnet20": {"axes": {"ranks": [2]}, "fixed": _FEW_STEPS, "scaling": "none"}
    }
    SHORTER["torch_scaling"] = {
        "weak_scaling": {"axes": {"data_parallel": ["fsdp2"]}, "fixed": _FEW_STEPS},
        "layouts": {
            "linked": [{"tp": 2, "pp": 1}, {"tp": 1, "pp": 2}],
            "fixed": {**_FEW_STEPS, "data_parallel": "ddp", "batch_size": 16},
        },
    }

# Experiments of the same that are profiled, with what is less than above.
PROFILED: dict[tuple[str, str], Kept] = {
    ("nt3", "cprofile"): {"epochs_shared": {"fixed": {"total_epochs": 2, "target_accuracy": None}}},
    ("cnn_layout", "tensorflow"): {"cifar10": {"axes": {"data_format": ["NHWC"]}}},
    ("cnn_variable_update", "horovod_timeline"): {
        "processes": {
            "axes": {"ranks": [2], "variable_update": ["horovod"]}, "scaling": "none",
        },
    },
}  # fmt: skip


def merged() -> dict[str, Any]:
    """The campaign of all of them; names of experiments begin with their campaign's."""
    experiments = {
        f"{campaign}_{name}": _shorter(campaign, name, less)
        for campaign, kept in SHORTER.items()
        for name, less in kept.items()
    }
    for (campaign, profile), kept in PROFILED.items():
        for name, less in kept.items():
            experiment = _shorter(campaign, name, SHORTER[campaign][name], less)
            experiments[f"{profile}_{campaign}_{name}"] = experiment | {"profile": profile}
    head = {"campaign": "small_campaigns", "site": "local", "results": RESULTS}
    return head | {"experiments": experiments}


def _shorter(campaign: str, name: str, *changes: dict[str, Any]) -> dict[str, Any]:
    """An experiment of a small campaign with one repeat and less to measure."""
    content = yaml.safe_load((CAMPAIGNS / f"{campaign}_small.yaml").read_text())
    experiment: dict[str, Any] = content["experiments"][name] | {"repeats": 1}
    for less in changes:
        for part, values in less.items():
            inside = part in experiment and isinstance(values, dict)
            experiment[part] = experiment[part] | values if inside else values
    return experiment


def run_small_campaigns(folder: Path) -> Project:
    """Run them in a project of their own."""
    project = start_warm(make_project(folder / "project"))
    project.write("c.yaml", yaml.safe_dump(merged(), sort_keys=False))
    done = project.snakemake("--configfile", "c.yaml", minutes=SMALL_CAMPAIGNS_MINUTES)
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def table(project: Project, experiment: str, name: str) -> pd.DataFrame:
    """A table of an experiment, named as in `merged`."""
    return pd.read_parquet(project.path / RESULTS / "tables" / experiment / f"{name}.parquet")
