"""Prints what keras-multi-gpu's benchmark would, with made-up rates, after a look at its flags."""

import argparse
import os

parser = argparse.ArgumentParser()
for flag in "amgpbe":
    parser.add_argument(f"-{flag}", required=True)
args = parser.parse_args()
gpus = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
assert len(gpus) == int(args.g) and args.m in ("kuza55", "avolkov1", "fchollet")
rate = 30 * len(gpus) ** (0.9 if args.m == "avolkov1" else 0.7)
print(f"Using TensorFlow backend.\narchitecture: {args.a}\nnumber of GPUs: {args.g}")
print(f"parameter server: {args.p}\nparallelization method: {args.m}\nepochs: {args.e}")
print(f"batch_size: {args.b}\nNumber of parameters: 25636712")
for epoch in range(1, int(args.e) + 1):
    print(f"Epoch {epoch}/{args.e}\n" + "\b" * 80 + "\r 992/1024 [=====>.] - ETA: 1s", end="")
    print(f" - loss: 7.0037Samples/sec: {rate - 5 / epoch:.2f}")
print(f"Samples/sec: {rate:.2f}")
