"""How numbers, and text that is not ours, are written for people."""

import math
from typing import Any

import pytest

from scalesweep.core.formatting import as_given, duration, listed, number, percent, with_interval
from scalesweep.core.visible import visible


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (with_interval(1234.56, 1230.1, 1239.2), "1,235 [1,230, 1,239]"),
        (with_interval(0.0123456, 0.0121, 0.0126, "s"), "0.0123 [0.0121, 0.0126] s"),
        (with_interval(-0.3, -0.6, -0.0001), "-0.3 [-0.6, 0.0]"),
        (with_interval(5.0, 5.0, 5.0), "5.000 [5.000, 5.000]"),
        (with_interval(12.3456, None, None), "12.35"),
        (with_interval(47.5, None, None, "images/s"), "47.5 images/s"),  # and no 47.50
        (with_interval(None, 1, 2), "–"),
        (as_given(128.0), "128"),
        (as_given(2e-7), "2e-07"),
        (as_given(1234.5), "1,234"),
        (number(123456.7), "123,457"),
        (number(math.nan), "–"),
        (percent(0.782, 0.779, 0.786), "78.2 [77.9, 78.6] %"),
        (percent(-0.0001), "0.0 %"),
        (percent(-0.03, -0.06, -0.0002), "-3 [-6, 0] %"),
        (duration(0.5), "0.50 s"),
        (duration(7265), "2 h 01 min"),
        (listed(["a", "b", "c", "d", "e"], 3), "a, b and 3 more"),
        (listed(["460", "1,257"]), "460 and 1,257"),
        (listed(["1,257", "ranks 0,1000", "b"]), "1,257; ranks 0,1000; and b"),
    ],
)
def test_numbers_for_people(made: Any, text: str) -> None:
    assert made == text


HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07 \u202eevil\u2066 \x9b2J \rover \x00 a\u200bb \ud800 \U000e0041"
)


def test_what_cannot_be_seen_is_an_escape() -> None:
    assert visible(HOSTILE) == (
        r"\x1b[31mred\x1b]0;title\x07 \u202eevil\u2066 \x9b2J \rover \x00 a\u200bb \ud800 "
        r"\U000e0041"
    )
    plain = "Größe 5 µs ± 2\u202f%\n\ttab 日本 שלום مرحبا 😀 \u00a0 C:\\x1b"
    assert visible(plain) == plain and visible("") == ""
