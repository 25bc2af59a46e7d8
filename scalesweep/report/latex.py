"""Tables for papers: an experiment's points, and its scaling, in LaTeX.

The columns are those of the report's table of points; booktabs draws the rules, longtable
takes what is longer than a page.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import counted
from scalesweep.core.paths import RESOURCES
from scalesweep.core.visible import visible
from scalesweep.experiment.points_table import Table, point_table
from scalesweep.experiment.results import ExperimentResults

TEMPLATE = "table.tex.j2"
NAMES = ("points", "scaling")
ONE_PAGE, MAX_ROWS = 40, 200
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "`": r"\textasciigrave{}", "-": r"-{}",
    "–": "--", "—": "---", "…": r"\dots{}", "−": "$-$", "±": r"$\pm$", "×": r"$\times$",
    "→": r"$\to$", "≤": r"$\le$", "≥": r"$\ge$", "µ": r"$\mu$", "μ": r"$\mu$",
}  # fmt: skip
# Two hyphens in a row would become a dash; a single one is left as it is.
_TO_ESCAPE = re.compile(
    "-(?=-)|[" + re.escape("".join(key for key in _SPECIAL if key != "-")) + "]"
)


def latex_text(text: str) -> str:
    r"""Any text as LaTeX's text mode shows it, on one line.

    What ``\\`` or a rule in front would take for an argument (``[``, ``*``) is put in braces;
    characters that have no picture (control, direction) are escapes, or spaces if they are not
    assigned.
    """
    shown = visible(" ".join(text.split()))
    shown = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in shown)
    shown = _TO_ESCAPE.sub(lambda match: _SPECIAL[match[0]], " ".join(shown.split()))
    return f"{{{shown[0]}}}{shown[1:]}" if shown[:1] in ("[", "*") else shown


def latex_table(results: ExperimentResults, name: str, campaign: str) -> str | None:
    """The table ``points`` or ``scaling`` of an experiment; None where it has no rows."""
    if name == "scaling" and not results.series:
        return None
    table = point_table(results, MAX_ROWS, scaling=name == "scaling")
    if not table.sources:
        return None
    rows = [_line(latex_text(cell.text) for cell in row) for row in table.head]
    long = len(rows) > ONE_PAGE
    head = _head(table)
    caption = _caption(results, table, name, campaign)
    plain = all(text.isascii() for text in (head, caption, *rows))
    context = {
        "name": name,
        "preamble": (r"\usepackage{booktabs,longtable}" if long else r"\usepackage{booktabs}")
        + ("" if plain else "; LuaLaTeX or XeLaTeX for its letters"),
        "long": long,
        "alignment": _alignment(results, table),
        "columns": len(table.lead) + sum(len(columns) for _, columns in table.groups),
        "caption": caption,
        "label": f"tab:{results.name}-{name}",
        "head": head,
        "rows": rows,
    }
    return _environment().get_template(TEMPLATE).render(context)


@cache
def _environment() -> Environment:
    # Braces are LaTeX's. What is rendered was escaped for LaTeX, of which Jinja knows nothing.
    return Environment(
        loader=FileSystemLoader(RESOURCES),
        undefined=StrictUndefined,
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        variable_start_string="<<",
        variable_end_string=">>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _head(table: Table) -> str:
    """Rules and heads of the columns, in two levels where phases are above the values."""
    columns = [latex_text(column.heading) for _, part in table.groups for column in part]
    lines = [r"\toprule"]
    if any(group for group, _ in table.groups):
        spans = [("", len(table.lead)), *((group, len(part)) for group, part in table.groups)]
        over = [f"\\multicolumn{{{n}}}{{c}}{{{latex_text(text)}}}" for text, n in spans]
        lines.append(_line(over))
    lines.append(_line([*(latex_text(heading) for heading in table.lead), *columns]))
    return "\n".join([*lines, r"\midrule"])


def _alignment(results: ExperimentResults, table: Table) -> str:
    """Words to the left, numbers to the right."""
    axes = "".join("r" if results.numeric(name) else "l" for name in results.columns)
    source = "l" * (len(table.lead) - table.parameters - 1)
    return axes + "r" + source + "r" * sum(len(columns) for _, columns in table.groups)


def _caption(results: ExperimentResults, table: Table, name: str, campaign: str) -> str:
    sources = ", ".join(results.sources) or "none"
    words = [
        f"{results.title}: {'scaling' if name == 'scaling' else 'points'} (campaign {campaign}).",
        "Means over the runs of a point; in brackets their 95 % intervals, for two runs or "
        "more.",
        f"Efficiency is relative to the smallest finished {results.scale_words} of a series."
        if table.scaling else "",
        f"Source: {sources}.",
        f"The first {len(table.head):,} of {counted(len(table.sources), 'row')}." if table.left_out
        else "",
    ]  # fmt: skip
    return latex_text(" ".join(word for word in words if word))


def write_latex(results: ExperimentResults, campaign: str, out: Path) -> list[Path]:
    """Write ``out/<experiment>/<table>.tex``; returns what was written."""
    paths = {
        out / results.name / f"{name}.tex": latex_table(results, name, campaign) for name in NAMES
    }
    written = {path: text for path, text in paths.items() if text is not None}
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text, durable=False)
    return list(written)
