"""What a coarse clock makes of steps is no cause; what is well above its resolution is one."""

from pathlib import Path

import numpy as np
import pytest

from scalesweep.findings.base import CLEAR, OPEN, Finding
from tests.acceptance.faults import Arrays, Fault, Noise, always, every
from tests.unit.findings.test_planted_steps import faulty, measured

LOSSES = ("largest loss", "causes")


def said(tmp_path: Path, tick_ms: float, **faults: Fault) -> list[Finding]:
    def count(arrays: Arrays) -> None:
        for name, values in arrays.items():
            arrays[name] = np.rint(values * 1e3 / tick_ms) * tick_ms / 1e3

    program = faulty(**faults)
    more = {"ranks": 8, "noise": Noise(run=0.2), "changed": count, "alone": count}
    _, _, found = measured(tmp_path, program, **more)
    return [one for one in found if one.rule in LOSSES]


@pytest.mark.slow
def test_rounding_is_no_cause(tmp_path: Path) -> None:
    """15 % of a step: nothing late is planted, or a rank is late by a third of the resolution."""
    for place, faults in enumerate(({}, {"compute": always(3, 5)})):
        found = said(tmp_path / str(place), 10, **faults)
        assert found and not [one for one in found if one.state == CLEAR], found
        named = [one for one in found if "counts in steps of 10.0 ms" in one.sentence]
        assert named and all(one.state == OPEN for one in named)
        assert (
            "% of a step, and" in named[0].sentence and "may be its rounding" in named[0].sentence
        )


@pytest.mark.slow
def test_what_is_well_above_the_resolution_stays_clear(tmp_path: Path) -> None:
    found = said(tmp_path / "coarse", 10, compute=always(60, 5))
    assert any(one.state == CLEAR and "rank 5 computes 60" in one.sentence for one in found), found
    found = said(tmp_path / "stalls", 10, checkpoint=every(300, 10, 0), compute=every(200, 10, 3))
    assert any(one.state == CLEAR and "ank 0 spends 300 ms" in one.sentence for one in found), found
    found = said(tmp_path / "fine", 1, compute=always(10, 5))
    assert any(one.state == CLEAR and "rank 5 computes" in one.sentence for one in found), found
