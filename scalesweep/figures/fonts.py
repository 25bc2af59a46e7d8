"""The figures' fonts.

Each PDF embeds the glyphs that it uses, and cutting them out of DejaVu Sans, whose tables know some
6,000 of them, took half of the time of all figures. So the letters that nearly all text is made of
are cut out once, with their kerning and ligatures, into fonts of their own; text with other letters
takes those from the whole font, as matplotlib does with families that follow each other.
"""

import atexit
import tempfile
from functools import cache
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib import font_manager

WHOLE, COMMON = "DejaVu Sans", "DejaVu Sans Common"
# Latin, Greek, punctuation, and signs such as ± × − ≤ ≈ →
_RANGES = ((0x20, 0x24F), (0x370, 0x3FF), (0x2010, 0x205E), (0x2190, 0x2193), (0x2200, 0x2265))
_WEIGHTS = ("Regular", "Bold")
_FAMILY, _FULL, _POSTSCRIPT = 1, 4, 6  # ids of names


@cache
def families() -> list[str]:
    """Font families for matplotlib; the first call in a process makes the first of them."""
    folder = tempfile.TemporaryDirectory(prefix="scalesweep-fonts-")
    atexit.register(folder.cleanup)
    for weight, whole in zip(_WEIGHTS, whole_fonts(), strict=True):
        path = Path(folder.name) / f"{weight}.ttf"
        _write_subset(whole, path, weight)
        font_manager.fontManager.addfont(path)
    return [COMMON, WHOLE]


def whole_fonts() -> list[str]:
    """Files of the fonts that the others are cut out of, by weight."""
    wanted = [font_manager.FontProperties(family=WHOLE, weight=name.lower()) for name in _WEIGHTS]
    return [font_manager.findfont(font, fallback_to_default=False) for font in wanted]


def _write_subset(whole: str, path: Path, weight: str) -> None:
    """Write the common part of a font under a name of its own."""
    options = subset.Options(glyph_names=True, recalc_timestamp=False)
    options.drop_tables += ["FFTM"]  # of FontForge, no table of the standard's
    with subset.load_font(whole, options) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=[code for low, high in _RANGES for code in range(low, high + 1)])
        cutter.subset(font)
        _rename(font, weight)
        font.save(path)


def _rename(font: TTFont, weight: str) -> None:
    names = {_FAMILY: COMMON, _FULL: f"{COMMON} {weight}"}
    names[_POSTSCRIPT] = f"{COMMON.replace(' ', '')}-{weight}"
    for record in font["name"].names:
        if record.nameID in names:
            record.string = names[record.nameID]
