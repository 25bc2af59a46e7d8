"""Stands in for a reinforcement-learning code: rank 0 learns from what the other ranks play.

Times are worked out, not slept: every actor plays a batch in --play-ms and hands it over, the
learner takes --learn-ms for each, one after the other, and an actor starts its next batch when its
last one was taken. Each rank prints its role and how long it was busy, and knows nothing of
scalesweep.
"""

import argparse
import heapq
import os

parser = argparse.ArgumentParser()
for name, default in (("--play-ms", 40.0), ("--learn-ms", 15.0)):
    parser.add_argument(name, type=float, default=default)
parser.add_argument("--batches", type=int, default=100)
args = parser.parse_args()
rank = int(os.environ.get("HOROVOD_RANK", "0"))
actors = int(os.environ.get("HOROVOD_SIZE", "2")) - 1

ready = [(args.play_ms, actor) for actor in range(1, actors + 1)]  # when a batch is played
played = dict.fromkeys(range(1, actors + 1), 1)
now = 0.0
for _ in range(args.batches):
    finished, actor = heapq.heappop(ready)
    taken = max(now, finished)
    now = taken + args.learn_ms
    heapq.heappush(ready, (taken + args.play_ms, actor))
    played[actor] += 1

wall = now / 1000
busy = args.batches * args.learn_ms / 1000 if rank == 0 else played[rank] * args.play_ms / 1000
busy = min(busy, wall)
role = "learner" if rank == 0 else "actor"
print(f"role={role} busy={busy:.3f} s wall={wall:.3f} s share={busy / wall:.4f}")
if rank == 0:
    print(f"learned {args.batches} batches: {args.batches / wall:.3f} batches/s")
