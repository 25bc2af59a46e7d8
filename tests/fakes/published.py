"""Published measurements of the five studies, as their sources print them."""

import csv
import pickle
from pathlib import Path

# cosmoflow-benchmark, notebooks/DataBenchmark.ipynb at b93a54a: total throughput in samples/s.
COSMOFLOW = """ranks;first;first_eff;later;later_eff
1;2.129583;;49.321757;1.000000
2;4.089629;;97.100322;0.984356
4;8.247748;;190.202862;0.964092
8;15.489692;;383.164267;0.971083
16;32.478418;;759.542714;0.962484
32;63.230212;;1517.827747;0.961687
64;119.462853;;3058.711587;0.968992
128;268.960747;;5537.397193;0.877116
256;581.584792;;11046.338560;0.874863
512;1559.880803;;18971.588413;0.751269
"""
# The row of 1,024 ranks is left out: the notebook worked it out from three of them.
COSMOFLOW_MAP = {
    "name": "daint_io",
    "parameters": {"ranks": {"column": "ranks"}},
    "scaling": "weak",
    "metrics": {"loading_rate": {"unit": "samples/s", "better": "higher", "scope": "total"}},
    "side_by_side": {
        "parameter": "epochs",
        "values": {
            "first": {"loading_rate": "first"},
            "later": {"loading_rate": {"column": "later", "efficiency": "later_eff"}},
        },
    },
    "ignore": ["first_eff"],
}

# rossumai/keras-multi-gpu at 07776a8, raw logs of tf_cnn_benchmarks on 2 Tesla M60, CIFAR-10: total
# images/s with NCHW and NHWC on one GPU, with NCHW on two and variables on the CPU; the efficiency
# that its page of measurements prints.
CIFAR10 = """model,gpus,NHWC,NCHW,printed
alexnet,1,2993.15,5165.54,
alexnet,2,,6063.88,0.5870
resnet20,1,2209.69,3250.52,
resnet20,2,,4917.74,0.7565
resnet32,1,1401.60,2055.00,
resnet32,2,,4107.16,0.9993
resnet44,1,1028.72,1454.70,
resnet44,2,,3004.75,1.0328
resnet56,1,815.10,1196.54,
resnet56,2,,2388.91,0.9983
resnet110,1,427.63,647.37,
resnet110,2,,1243.41,0.9604
densenet40_k12,1,371.66,537.41,
densenet40_k12,2,,1074.18,0.9994
densenet100_k12,1,68.57,101.79,
densenet100_k12,2,,201.33,0.9889
"""
RATE = {"images_per_second": {"unit": "images/s", "better": "higher", "scope": "total"}}
CIFAR10_MAP = {
    "name": "cifar10_m60",
    "parameters": {"ranks": {"column": "gpus"}, "model": {"column": "model", "workload": True}},
    "scale": "gpus",
    "scaling": "weak",
    "metrics": RATE,
    "side_by_side": {
        "parameter": "data_format",
        "values": {
            "NHWC": {"images_per_second": "NHWC"},
            "NCHW": {"images_per_second": {"column": "NCHW", "efficiency": "printed"}},
        },
    },
}

# The same, AlexNet on each of six GPUs of 7gforce; GHz as TensorFlow 1 prints memoryClockRate.
CLOCKS = """gpu,images,ghz
0,1561.745,1.7715
1,1321.96,1.6830
2,1543.53,1.6830
3,1476.505,1.6830
4,1567.65,1.7715
5,1567.77,1.7715
"""
CLOCKS_MAP = {
    "name": "memory_clock",
    "parameters": {
        "ranks": {"value": 1}, "gpu": {"column": "gpu", "type": "string"},
        "memory_clock": {"column": "ghz", "unit": "GHz"},
    },
    "metrics": {"images_per_second": {"column": "images", **RATE["images_per_second"]}},
}  # fmt: skip

# TensorFlow's performance benchmarks page (tensorflow/docs, r1), 2017: images/s.
TENSORFLOW = """platform,data,batch_per_gpu,gpus,inception3,resnet50,resnet152,alexnet,vgg16
dgx1_p100,synth,64,1,142,219,91.8,2987,154
dgx1_p100,synth,64,2,284,422,181,5658,295
dgx1_p100,synth,64,4,569,852,356,10509,584
dgx1_p100,synth,64,8,1131,1734,716,17822,1081
dgx1_p100,real,64,1,142,218,91.4,2890,154
dgx1_p100,real,64,2,278,425,179,4448,284
dgx1_p100,real,64,4,551,853,359,7105,534
dgx1_p100,real,64,8,1079,1630,708,,898
dgx1_p100,synth,32,1,128,195,82.7,,144
dgx1_p100,synth,32,2,259,368,160,,281
dgx1_p100,synth,32,4,520,768,317,,549
dgx1_p100,synth,32,8,995,1485,632,,820
dgx1_p100,real,32,1,130,193,82.4,,144
dgx1_p100,real,32,2,257,369,159,,253
dgx1_p100,real,32,4,507,760,317,,457
dgx1_p100,real,32,8,966,1410,609,,690
gce_k80,synth,64,1,30.5,51.9,20.0,656,35.4
gce_k80,synth,64,2,57.8,99.0,38.2,1209,64.8
gce_k80,synth,64,4,116,195,75.8,2328,120
gce_k80,synth,64,8,227,387,148,4640,234
gce_k80,real,64,1,30.6,51.2,20.0,639,34.2
gce_k80,real,64,2,58.4,98.8,38.3,1136,62.9
gce_k80,real,64,4,115,194,75.4,2067,118
gce_k80,real,64,8,225,381,148,4056,230
gce_k80,synth,32,1,29.3,49.5,,,
gce_k80,synth,32,2,55.0,95.4,,,
gce_k80,synth,32,4,109,183,,,
gce_k80,synth,32,8,216,362,,,
gce_k80,real,32,1,29.5,49.3,,,
gce_k80,real,32,2,55.4,95.3,,,
gce_k80,real,32,4,110,186,,,
gce_k80,real,32,8,216,359,,,
ec2_k80,synth,64,1,30.8,51.5,19.7,684,36.3
ec2_k80,synth,64,2,58.7,98.0,37.6,1244,69.4
ec2_k80,synth,64,4,117,195,74.9,2479,141
ec2_k80,synth,64,8,230,384,149,4853,260
ec2_k80,real,64,1,30.5,51.3,19.7,674,36.3
ec2_k80,real,64,2,59.0,94.9,38.2,1227,67.5
ec2_k80,real,64,4,118,188,75.2,2201,136
ec2_k80,real,64,8,228,373,149,,242
ec2_k80,synth,32,1,29.9,49.0,,,
ec2_k80,synth,32,2,57.5,94.1,,,
ec2_k80,synth,32,4,114,184,,,
ec2_k80,synth,32,8,216,355,,,
ec2_k80,real,32,1,30.0,49.1,,,
ec2_k80,real,32,2,57.5,95.1,,,
ec2_k80,real,32,4,113,185,,,
ec2_k80,real,32,8,212,353,,,
ec2_k80_distributed,synth,64,1,29.7,52.4,19.4,,
ec2_k80_distributed,synth,64,8,229,378,146,,
ec2_k80_distributed,synth,64,16,459,751,291,,
ec2_k80_distributed,synth,64,32,902,1388,565,,
ec2_k80_distributed,synth,64,64,1783,2744,981,,
ec2_k80_distributed,synth,32,1,29.2,48.4,,,
ec2_k80_distributed,synth,32,8,219,333,,,
ec2_k80_distributed,synth,32,16,427,667,,,
ec2_k80_distributed,synth,32,32,820,1180,,,
ec2_k80_distributed,synth,32,64,1608,2315,,,
"""
TENSORFLOW_MAP = {
    "name": "tensorflow_2017",
    "parameters": {
        "ranks": {"column": "gpus"}, "platform": {"column": "platform"},
        "data": {"column": "data"}, "batch_per_gpu": {"column": "batch_per_gpu"},
    },
    "scale": "gpus",
    "scaling": "weak",
    "metrics": RATE,
    "side_by_side": {
        "parameter": "model", "workload": True,
        "values": {
            model: {"images_per_second": model}
            for model in ("inception3", "resnet50", "resnet152", "alexnet", "vgg16")
        },
    },
}  # fmt: skip

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

TABLES = {
    "cosmoflow": (COSMOFLOW, COSMOFLOW_MAP),
    "cifar10": (CIFAR10, CIFAR10_MAP),
    "clocks": (CLOCKS, CLOCKS_MAP),
    "pairs": (PAIRS, PAIRS_MAP),
    "tensorflow": (TENSORFLOW, TENSORFLOW_MAP),
}

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
