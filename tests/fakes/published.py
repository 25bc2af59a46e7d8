"""Published measurements in the form of their sources (all of them: tests/published)."""

import csv
import pickle
from pathlib import Path

RATE = {"images_per_second": {"unit": "images/s", "better": "higher", "scope": "total"}}

# keras-multi-gpu, "PIX vs. PHB": AlexNet on pairs of seven GeForce GTX 1070 and 1080.
PAIRS = """PS,variable_update,NCCL,p01,p45,p05
gpu,parameter_server,FALSE,1863.78,1830.2,1572.61
cpu,parameter_server,FALSE,1240.73,1233.27,1225.74
gpu,replicated,FALSE,1196.69,,1210.87
gpu,replicated,TRUE,1428.81,,1175.59
gpu,independent,FALSE,2751.71,,2643.55
"""
# By mode: the ratios that the source prints.
PAIR_RATIOS = {
    ("gpu", "parameter_server", False): 1.17, ("cpu", "parameter_server", False): 1.01,
    ("gpu", "replicated", False): 0.99, ("gpu", "replicated", True): 1.22,
    ("gpu", "independent", False): 1.04,
}  # fmt: skip
PAIRS_MAP = {
    "name": "pairs",
    "parameters": {
        "ranks": {"value": 2}, "ps": {"column": "PS"},
        "variable_update": {"column": "variable_update"}, "nccl": {"column": "NCCL"},
    },
    "metrics": RATE,
    "side_by_side": {
        "parameter": "link",
        "values": {
            "PHB": {"images_per_second": "p05"}, "PIX": {"images_per_second": ["p01", "p45"]},
        },
    },
}  # fmt: skip

# Piz Daint, 2 ranks: cosmoflow-benchmark, notebooks/DataBenchmark.ipynb at b93a54a.
LOCAL = [
    [156.45093, 150.45677], [6.238575, 6.2450433], [6.3284893, 6.362862],
    [7.4706745, 7.60186], [6.2428102, 6.2542],
]  # fmt: skip
TOTAL = [
    [156.47194, 156.51492], [6.2702446, 6.271353], [6.382362, 6.3806553],
    [7.6232605, 7.6234684], [6.2680063, 6.268879],
]  # fmt: skip


def write_result(
    folder: Path, ranks: int, local: list[list[float]], total: list[list[float]],
    threads: tuple[int, int] = (2, 12),
) -> None:  # fmt: skip
    """A results folder of cosmoflow-benchmark's data benchmark: times of each epoch and rank."""
    folder.mkdir(parents=True)
    config = {
        "data": {"n_train": 256, "n_valid": 64, "batch_size": 4, "n_epochs": 5, "shard": False},
        "device": {"inter_threads": threads[0], "intra_threads": threads[1]},
        "n_ranks": ranks,
    }
    (folder / "config.pkl").write_bytes(pickle.dumps(config))
    with (folder / "data_benchmark_history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "local_times", "global_times"])
        for epoch, times in enumerate(zip(local, total, strict=True)):
            cells = ["[" + "\n ".join(map(str, ranks_times)) + "]" for ranks_times in times]
            writer.writerow([epoch, *cells])
