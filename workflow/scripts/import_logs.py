"""Import logs of tf_cnn_benchmarks, keras-multi-gpu, MLPerf, Keras, OSU and nccl-tests; report."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("import_logs")
