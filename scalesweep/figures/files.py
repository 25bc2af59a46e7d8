"""Files of a figure: SVG that can stand in a page, PDF and PNG."""

import io
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from scalesweep.core.visible import visible

FAMILY = "'DejaVu Sans', Verdana, 'Segoe UI', Helvetica, Arial, sans-serif"
_OPENING = re.compile(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>')
_NEEDLESS = re.compile(r'(?<=<g) id="[^"]*"|font-family:[^;"]*;?\s*| transform="rotate\(-?0 [^"]*"')
_PATH = re.compile(r' d="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")


def svg_text(figure: Figure, salt: str, alt: str) -> str:
    """The figure as SVG for inline use: ids begin differently with each ``salt``, text is text."""
    buffer = io.StringIO()
    canvas: Any = FigureCanvasSVG(figure)
    with mpl.rc_context({"svg.hashsalt": salt}):
        canvas.print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = visible(buffer.getvalue())  # XML has no control characters
    head = _OPENING.search(text)
    assert head is not None
    opening = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{head[1]} width="100%" role="img" aria-label={quoteattr(visible(alt))} '
        f'font-family="{FAMILY}">'
    )
    body = _NEEDLESS.sub("", text[head.end() :])
    return opening + _PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), body)


@cache
def _converter() -> Any:
    """vl-convert, with the font of the figures: it embeds in a PDF only the letters that occur, in
    a tenth of matplotlib's time."""
    import vl_convert

    vl_convert.register_font_directory(str(Path(mpl.get_data_path()) / "fonts" / "ttf"))
    return vl_convert


# Text of a PDF is text, its fonts are embedded; a PNG has 144 dots per inch.
CONVERTERS: Mapping[str, Callable[[str], bytes]] = {
    "pdf": lambda svg: bytes(_converter().svg_to_pdf(svg)),
    "png": lambda svg: bytes(_converter().svg_to_png(svg, scale=2)),
}
