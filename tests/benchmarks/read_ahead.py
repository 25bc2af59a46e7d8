"""Helper of test_data_loading: time epochs with a right and with a wrong pipeline.

``read_ahead.py FOLDER`` prints JSON: for each pipeline, the bytes read while epochs were timed, and
between them. The wrong one repeats for ever behind one iterator, so that it reads ahead.
"""

import json
import sys
import time
from pathlib import Path

from harness import import_without

import_without("pandas", "scipy", "PIL")

import tensorflow as tf

from cosmoflow_data import pipeline
from harness.epochs import time_epochs

folder = Path(sys.argv[1])
files = tf.constant(sorted(str(path) for path in folder.glob("train/*.tfrecord")))
options = pipeline.Options((32, 32, 32, 4), 4, "none", 2, 0, 8, "none", True)
BATCHES = len(files) // 4


def barrier(ok):
    time.sleep(0.1)  # another rank is slower: time in which a wrong pipeline reads ahead
    return ok


right = pipeline.make_drain(options)
endless = iter(pipeline.batches(files, options).repeat().prefetch(8))


def take_epoch(_):
    for _ in range(BATCHES):
        x, _ = next(endless)
        tf.reduce_sum(x)
    return True


report = {"bytes": sum(Path(name.decode()).stat().st_size for name in files.numpy())}
for name, work in (("right", lambda _: right(files).samples > 0), ("wrong", take_epoch)):
    times = time_epochs(4, lambda _: None, work, barrier)
    report[name] = {"inside": times.read_inside, "between": times.read_between}
print(json.dumps(report))
