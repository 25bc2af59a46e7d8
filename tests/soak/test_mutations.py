"""Hostile folders of runs, a few of them; ``make soak`` changes 2,000."""

import os
from pathlib import Path

from tests.soak.mutations import BATCH, soak

SEED = int(os.environ.get("SOAK_SEED", "1"))


def test_mutated_folders_take_nothing_down(tmp_path: Path) -> None:
    print(f"SOAK_SEED={SEED}")
    became = soak(tmp_path, SEED, 3 * BATCH)
    # Some do no harm, some are damage, some are whole and of no use.
    assert min(became[name] for name in ("done", "BAD_RECORD", "UNUSABLE_RECORD")) > 10
