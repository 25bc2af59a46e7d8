"""Stands in for horovodrun: starts a command once per rank and labels what the ranks print."""

import os
import subprocess
import sys

ranks, *command = sys.argv[1:]
for rank in range(int(ranks)):
    env = {**os.environ, "HOROVOD_RANK": str(rank), "HOROVOD_SIZE": ranks}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    for stream, text in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
        label = f"[{rank}]<{stream.name.strip('<>')}>:"
        for line in text.splitlines():
            print(f"{label}{line}", file=stream)
    if done.returncode:
        sys.exit(done.returncode)
