"""Files of a figure, each drawn once: SVG, PDF and PNG.

``Figure.savefig`` walks through a figure twice for each format, the first time for a layout that is
known by then. With many figures that is half of the time.
"""

import io
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from scalesweep.core.visible import visible


def svg_text(figure: Figure) -> str:
    """The figure as SVG. The first to be called, because it lays the figure out."""
    buffer = io.StringIO()
    canvas: Any = FigureCanvasSVG(_ready(figure))
    canvas.print_svg(buffer, metadata={"Date": None})
    figure.set_layout_engine("none")
    return visible(buffer.getvalue())  # XML has no control characters


def write_pdf(figure: Figure, path: Path) -> None:
    """Write the figure as PDF, in the layout that it has."""
    metadata = {"CreationDate": None, "Producer": None, "Creator": None}
    canvas: Any = FigureCanvasPdf(_ready(figure))
    canvas.print_pdf(str(path), metadata=metadata)


def write_png(figure: Figure, path: Path) -> None:
    """Write the figure as PNG, in the layout that it has."""
    canvas: Any = FigureCanvasAgg(_ready(figure))
    canvas.print_png(path, metadata={"Software": None})


def _ready(figure: Figure) -> Figure:
    figure.set_dpi(rcParams["savefig.dpi"])  # a vector format leaves its own
    return figure
