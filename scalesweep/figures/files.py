"""Files of a figure: SVG that can stand in a page, PDF and PNG."""

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from scalesweep.core.visible import visible

FAMILY = "'DejaVu Sans', Verdana, 'Segoe UI', Helvetica, Arial, sans-serif"
DPI = 150
_OPENING = re.compile(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>')
_NEEDLESS = re.compile(r'(?<=<g) id="[^"]*"|font-family:[^;"]*;?\s*| transform="rotate\(-?0 [^"]*"')
_PATH = re.compile(r' d="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")


def svg_text(figure: Figure, salt: str, alt: str) -> str:
    """The figure as SVG for inline use: ids begin differently with each ``salt``, text is text.

    The first to be called, because it lays the figure out.
    """
    buffer = io.StringIO()
    canvas: Any = FigureCanvasSVG(figure)
    with mpl.rc_context({"svg.hashsalt": salt}):
        canvas.print_svg(buffer, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    figure.set_layout_engine("none")
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


def write_pdf(figure: Figure, path: Path) -> None:
    """Write the figure as PDF, in the layout that it has."""
    canvas: Any = FigureCanvasPdf(figure)
    nothing = dict.fromkeys(("CreationDate", "Producer", "Creator"))
    canvas.print_pdf(str(path), metadata=nothing)


def write_png(figure: Figure, path: Path) -> None:
    """Write the figure as PNG, in the layout that it has."""
    figure.set_dpi(DPI)  # a vector format leaves its own
    canvas: Any = FigureCanvasAgg(figure)
    canvas.print_png(path, metadata={"Software": None})


WRITERS: Mapping[str, Callable[[Figure, Path], None]] = {"pdf": write_pdf, "png": write_png}
