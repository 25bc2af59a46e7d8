"""Make or check the stand-in that input tfrecords reads; `harness.staging` has the frame."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import records
from harness import staging

if __name__ == "__main__":
    sys.exit(staging.main(__doc__.splitlines()[0], records.SPLITS, records.StandIn.from_params))
