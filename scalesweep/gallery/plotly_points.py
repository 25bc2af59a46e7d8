"""Points of a figure of Plotly, saved as HTML, as a CSV file: what their texts say."""

import csv
import html
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.gallery.source_text import read_source_text

_CALL = "Plotly.newPlot("
_BREAK = re.compile(r"<br\s*/?>")
_TAG = re.compile(r"<[^>]*>")


def points_as_csv(path: Path, only: str | None, patterns: Mapping[str, str]) -> str:
    """What ``patterns`` (column -> pattern with a group) find in the text of each point.

    A point's text begins with a line ``panel: NAME``, the title of its part of the figure.
    ``only``: a pattern that the text must match. Raises UserError for a file without such a figure,
    or without a point.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(patterns)
    points = 0
    for text in _texts(path):
        if only and not re.search(only, text, re.MULTILINE):
            continue
        matches = (re.search(pattern, text, re.MULTILINE) for pattern in patterns.values())
        writer.writerow([match[1].replace(",", "") if match else "" for match in matches])
        points += 1
    if not points:
        raise UserError(f"{path}: the figure has no point with a text")
    return out.getvalue()


def _texts(path: Path) -> Iterator[str]:
    """The text of each point, without marks, a line for each of its lines."""
    traces, layout = _figure(path)
    for trace in traces:
        if not isinstance(trace, dict) or not isinstance(trace.get("text"), list):
            continue
        panel = _panel(str(trace.get("xaxis", "x")), layout)
        for text in trace["text"]:
            plain = html.unescape(_TAG.sub("", _BREAK.sub("\n", str(text))))
            yield f"panel: {panel}\n{plain}"


def _figure(path: Path) -> tuple[list[Any], dict[str, Any]]:
    """Traces and layout of the figure in a page."""
    page = read_source_text(path)
    decoder, at = json.JSONDecoder(), page.find(_CALL)
    try:
        start = page.index("[", page.index(",", at))
        traces, end = decoder.raw_decode(page, start)
        layout, _ = decoder.raw_decode(page, page.index("{", end))
    except (ValueError, RecursionError):
        raise UserError(f"{path}: has no figure of Plotly that can be read") from None
    return traces, layout


def _panel(axis: str, layout: Mapping[str, Any]) -> str:
    """The title of the part of a figure that has this axis: the note above its middle."""
    name = f"xaxis{axis.removeprefix('x')}"
    try:
        low, high = layout[name]["domain"]
        for note in layout["annotations"]:
            if note.get("xref") == "paper" and low <= float(note["x"]) <= high:
                return _TAG.sub("", str(note["text"]))
    except (KeyError, TypeError, ValueError):
        pass
    return ""
