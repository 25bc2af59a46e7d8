"""Stands in for horovodrun: starts a command once per rank and labels what the ranks print.

With --plain in front no line has a label, as under a bare mpirun or srun.
"""

import os
import subprocess
import sys

words = sys.argv[1:]
labels = words[0] != "--plain"
ranks, *command = words if labels else words[1:]
for rank in range(int(ranks)):
    env = {**os.environ, "HOROVOD_RANK": str(rank), "HOROVOD_SIZE": ranks}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    for stream, text in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
        label = f"[{rank}]<{stream.name.strip('<>')}>:" if labels else ""
        for line in text.splitlines():
            print(f"{label}{line}", file=stream)
    if done.returncode:
        sys.exit(done.returncode)
