"""Make or check the tables of NT3's stand-in; `harness.staging` has the frame."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dataset
from harness import staging

if __name__ == "__main__":
    sys.exit(staging.main(__doc__.splitlines()[0], dataset.SPLITS, dataset.Tables.from_params))
