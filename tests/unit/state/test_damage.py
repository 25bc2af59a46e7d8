"""Whatever bit of a file is flipped: it is found and named, or without effect.

A flipped bit may fall into a space between two values.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scalesweep.core.record import SAMPLES, parse_record, read_record, read_samples
from scalesweep.core.record_check import BadRecordError
from tests.fakes.records import times, write_run

RUN = "data_loading-r2-0"


def flips(content: bytes, bits: int = 8) -> Iterator[bytes]:
    """The content with one bit flipped, for ``bits`` of every byte that it has."""
    changed = bytearray(content)
    for place in range(len(content)):
        for bit in range(place, place + bits):
            changed[place] ^= 1 << bit % 8
            yield bytes(changed)
            changed[place] ^= 1 << bit % 8


def test_every_flipped_bit_of_a_run_is_found_or_changes_nothing(
    tmp_path: Path,
) -> None:
    path = write_run(tmp_path, RUN, times())
    good, content = read_record(path), path.read_bytes()
    found = 0
    for changed in flips(content):
        try:
            assert parse_record(changed, RUN) == good
        except BadRecordError as error:
            assert str(error).startswith(RUN) and "\n" not in str(error)
            found += 1
    assert found > 7 * len(content)  # what is left are spaces between values
    samples = path.parent / SAMPLES
    for changed in flips(samples.read_bytes(), bits=1):
        samples.write_bytes(changed)
        with pytest.raises(BadRecordError, match=f"{SAMPLES} was changed"):
            read_samples(path.parent, good)
