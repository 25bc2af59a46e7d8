"""How far each pipeline of input_pipeline goes ahead of its consumer: ``taking_ahead.py FOLDER``.

Prints as JSON, by pipeline, the bytes read after the first batch was taken and some time had passed
over the bytes of a batch in files.
"""

import json
import sys
import time
from pathlib import Path

from harness.epochs import bytes_read
from input_pipeline import pipelines

SHAPE, BATCH = [32, 32, 32, 4], 2
PARAMS = {
    "sample_shape": SHAPE, "batch_size": BATCH, "samples_per_file": 4, "compression": "none",
    "parallel_calls": 2, "buffer_batches": 4, "shuffle_samples": 1, "map_passes": 1,
}  # fmt: skip

folder = Path(sys.argv[1])
files = sorted(map(str, (folder / "train").iterdir()))
of_batch = BATCH * Path(files[0]).stat().st_size / PARAMS["samples_per_file"]
found = {}
for name in pipelines.TECHNIQUES.keys() - {"processes"}:  # which read in other processes
    share = pipelines.Share(0, 1, "before_shuffle")
    iterator = iter(pipelines.make(files, PARAMS | {"pipeline": name}, share))
    before = bytes_read()
    next(iterator)
    time.sleep(0.15)
    found[name] = (bytes_read() - before) / of_batch
    del iterator
print(json.dumps(found))
