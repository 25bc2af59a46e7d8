"""Prints what tf_cnn_benchmarks would, with made-up numbers, after a look at its flags."""

import argparse
import os

FLAGS = (
    *("model", "data_name", "batch_size", "num_gpus", "device", "data_format"),
    *("variable_update", "local_parameter_device", "optimizer", "num_warmup_batches"),
    *("num_batches", "display_every"),
)
parser = argparse.ArgumentParser()
for flag in FLAGS:
    parser.add_argument(f"--{flag}", required=True)
for flag in ("horovod_device", "data_dir", "all_reduce_spec", "num_inter_threads"):
    parser.add_argument(f"--{flag}")
args = parser.parse_args()
ranks, rank = int(os.environ.get("HOROVOD_SIZE", "1")), int(os.environ.get("HOROVOD_RANK", "0"))
assert (args.horovod_device == "cpu") == (args.variable_update == "horovod")
rate = 100.0 * int(args.num_gpus) + rank
print(f"TensorFlow:  2.18\nModel:       {args.model}\nNum batches: {args.num_batches}\n==========")
print("Generating training model\nRunning warm up\nDone warm up\nStep\tImg/sec\ttotal_loss")
for step in (1, 10, int(args.num_batches)):
    loss = f"{7.9 - step / 100:.3f}"
    print(f"{step}\timages/sec: {rate + step:.1f} +/- 0.7 (jitter = 1.{rank})\t{loss}")
print("-" * 64 + f"\ntotal images/sec: {(rate + 30) * ranks:.2f}\n" + "-" * 64)
