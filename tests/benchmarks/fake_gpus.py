"""Helper of test_cnn_training: which GPUs a rank takes, told of GPUs that are not there.

``fake_gpus.py CASE...`` prints a JSON list, for each case (JSON: gpus, local_rank, local_size,
params) what `cluster.take_devices` and `cluster.unsupported` return and which GPUs become visible.
"""

import json
import sys

from harness import import_without

import_without("pandas", "scipy", "PIL")

from cnn_training import cluster
from tests.benchmarks.cnn_programs import DEFAULTS

found = []
for case in map(json.loads, sys.argv[1:]):
    visible = []

    def physical(kind, case=case):
        return [f"GPU {number}" for number in range(case["gpus"])] if kind == "GPU" else ["CPU"]

    cluster.hvd.local_rank = lambda case=case: case["local_rank"]
    cluster.hvd.local_size = lambda case=case: case["local_size"]
    cluster.tf.config.list_physical_devices = physical
    cluster.tf.config.set_visible_devices = lambda gpus, _, visible=visible: visible.extend(gpus)
    cluster.tf.config.experimental.set_memory_growth = lambda *_: None
    params = DEFAULTS | case["params"]
    kind, numbers, problem = cluster.take_devices(params)
    found.append([kind, numbers, visible, problem or cluster.unsupported(params, kind)])
print(json.dumps(found))
