"""Estimate pi from random points: an example of a program to measure. Put yours in its place."""

import argparse
import math
import random
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--points", type=int, required=True)
points = parser.parse_args().points

draw = random.Random().random
begin = time.perf_counter()
inside = sum(draw() ** 2 + draw() ** 2 < 1 for _ in range(points))
seconds = time.perf_counter() - begin
print(f"points/s {points / seconds:.1f}")
print(f"error of pi {abs(4 * inside / points - math.pi):.2e}")
