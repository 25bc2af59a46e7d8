from scalesweep.core.visible import visible

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
