import sys
import unicodedata

from scalesweep.core.errors import UserError
from scalesweep.core.visible import INVISIBLE, visible

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


def test_no_control_of_unicode_is_forgotten() -> None:
    """Held against Unicode's own tables: categories, and bidirectional classes."""
    controls = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        category = unicodedata.category(char)
        if char in "\n\t":
            assert not INVISIBLE.match(char)
        elif category in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(char) in controls:
            assert INVISIBLE.match(char), hex(code)
        elif not 0xE0000 <= code <= 0xE0FFF and (category[0] in "LNSMP" or category == "Zs"):
            # There, marks that choose a variant of a letter: a text may hide in many of them.
            assert not INVISIBLE.match(char), hex(code)


def test_errors_are_visible() -> None:
    assert str(UserError(f"a\n {HOSTILE}")) == visible(f"a {' '.join(HOSTILE.split())}")
