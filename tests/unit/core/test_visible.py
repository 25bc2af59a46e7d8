import io
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.visible import INVISIBLE, VisibleStream, visible

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


def test_a_stream_shows_what_is_printed() -> None:
    file = io.StringIO()
    stream = VisibleStream(file)
    print(HOSTILE, file=stream)  # type: ignore[call-overload]
    assert file.getvalue() == visible(HOSTILE) + "\n" and not stream.closed


def test_errors_are_visible() -> None:
    assert str(UserError(f"a\n {HOSTILE}")) == visible(f"a {' '.join(HOSTILE.split())}")


@pytest.mark.parametrize("text", ["\x1b[2J", "\u202e", "\ud800"])
def test_whatever_a_command_prints_is_visible(text: str, tmp_path: Path) -> None:
    code = (
        "import logging, sys; from scalesweep.smk.cli import run_main, warn\n"
        "from scalesweep.core.errors import UserError\n"
        "def main():\n"
        f"    print({text!a}); warn({text!a})\n"
        f"    logging.getLogger('scalesweep.x').warning({text!a})\n"
        f"    raise UserError({text!a})\n"
        "run_main(lambda: main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    shown = visible(text)
    assert done.returncode == 1 and done.stdout.decode() == f"{shown}\n"
    assert done.stderr.decode() == f"warning: {shown}\nwarning: {shown}\nerror: {shown}\n"
