"""Import logs of tf_cnn_benchmarks, keras-multi-gpu, MLPerf and Keras, and report on them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.commands import call

call("import_logs")
