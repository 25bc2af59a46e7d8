"""Numbers as people read them."""

import pytest

from scalesweep.core.formatting import number, percent, scaled_unit, text_of, with_interval


@pytest.mark.parametrize(
    ("bounds", "words", "share"),
    [
        ((12.8, 13.2), "13.0 [12.8, 13.2] ms", "1300 [1280, 1320] %"),
        ((-5.0, 31.0), "13 [-5, 31] ms", "1300 [-500, 3100] %"),
        ((0.0, 26.0), "13 [0, 26] ms", "1300 [0, 2600] %"),
        ((0.5, 340.0), "13 [0, 340] ms", "1300 [50, 34000] %"),
        ((1e-5, 14214.0), "13.0 ms (interval not known)", "1300 % (interval not known)"),
        ((None, None), "13 ms", "1300.0 %"),
    ],
)
def test_an_interval_that_says_nothing_is_not_known(
    bounds: tuple[float | None, float | None], words: str, share: str
) -> None:
    assert with_interval(13.0, *bounds, "ms") == words
    assert percent(13.0, *bounds) == share


def test_a_small_difference_keeps_its_interval() -> None:
    """That it is at most so large is said by the bounds."""
    assert with_interval(0.01, -2.0, 2.02, "ms") == "0.01 [-2.00, 2.02] ms"
    assert with_interval(0.0, 0.0, 3.0) == "0 [0, 3]"


def test_values_that_differ_read_differently() -> None:
    values = (1234567.5, 1234567.0, 0.1 + 0.2, 1e-5, 2.0, None)
    assert list(map(text_of, values)) == ["1234567.5", "1234567", "0.3", "1e-05", "2", "–"]


@pytest.mark.parametrize(
    ("unit", "largest", "words"),
    [
        ("FLOP", 7_757_488_128, "7.76 GFLOP"),
        ("FLOP/s", 2.5e12, "2.50 TFLOP/s"),
        ("bytes", 423_993_344, "424 MB"),
        ("parameters", 269_722, "269,722 parameters"),
        ("parameters", 163_037_184, "163 million parameters"),
        ("parameters", 7.2e9, "7.20 billion parameters"),
        ("tokens/s", 12_345, "12,345 tokens/s"),
    ],
)
def test_sizes_of_training_are_readable(unit: str, largest: float, words: str) -> None:
    factor, scaled = scaled_unit(unit, largest)
    assert f"{number(largest * factor)} {scaled}" == words
