"""Tables for papers: an experiment's points, and its scaling, in LaTeX.

The columns are those of the report's table of points; booktabs draws the rules, longtable
takes what is longer than a page.
"""

import re
from pathlib import Path

import pandas as pd

from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import counted
from scalesweep.core.visible import visible
from scalesweep.experiment.points_table import Table, point_table
from scalesweep.experiment.results import ExperimentResults

NAMES = ("points", "scaling")
ONE_PAGE, MAX_ROWS = 40, 200
_SIGNS = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
        "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
        "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
        "`": r"\textasciigrave{}", "–": "--", "−": "$-$", "±": r"$\pm$", "×": r"$\times$",
        "→": r"$\to$", "≤": r"$\le$", "≥": r"$\ge$", "µ": r"$\mu$", "μ": r"$\mu$",
    }
)  # fmt: skip


def latex_text(text: str) -> str:
    r"""Any text as LaTeX's text mode shows it, on one line.

    What ``\\`` or a rule in front would take for an argument (``[``, ``*``) is put in braces.
    """
    parts = re.split("(-(?=-))", visible(" ".join(text.split())))  # two hyphens would be a dash
    shown = "".join("-{}" if n % 2 else part.translate(_SIGNS) for n, part in enumerate(parts))
    return f"{{{shown[0]}}}{shown[1:]}" if shown[:1] in ("[", "*") else shown


def latex_table(results: ExperimentResults, name: str, campaign: str) -> str | None:
    """The table ``points`` or ``scaling`` of an experiment; None where it has no rows."""
    if name == "scaling" and not results.series:
        return None
    table = point_table(results, MAX_ROWS, scaling=name == "scaling")
    if not table.sources:
        return None
    heads = [("", heading) for heading in table.lead]
    heads += [(group, column.heading) for group, part in table.groups for column in part]
    columns = [(latex_text(group), latex_text(heading)) for group, heading in heads]
    rows = [[latex_text(cell.text) for cell in row] for row in table.head]
    frame = pd.DataFrame(rows, columns=pd.MultiIndex.from_tuples(columns))
    if not any(group for group, _ in heads):
        frame.columns = frame.columns.droplevel(0)
    long = len(rows) > ONE_PAGE
    return frame.style.hide(axis="index").to_latex(
        environment="longtable" if long else "table",
        position=None if long else "htbp",
        position_float=None if long else "centering",
        hrules=True,
        multicol_align="c",
        column_format=_alignment(results, table),
        caption=_caption(results, table, name, campaign),
        label=f"tab:{results.name}-{name}",
    )


def _alignment(results: ExperimentResults, table: Table) -> str:
    """Words to the left, numbers to the right."""
    axes = "".join("r" if results.numeric(name) else "l" for name in results.columns)
    source = "l" * (len(table.lead) - table.parameters - 1)
    return axes + "r" + source + "r" * sum(len(columns) for _, columns in table.groups)


def _caption(results: ExperimentResults, table: Table, name: str, campaign: str) -> str:
    words = [
        f"{results.title}: {name} (campaign {campaign}). Means over the runs of a point, with "
        "95 % intervals.",
        f"Efficiency is relative to the smallest finished {results.scale_words} of a series."
        if table.scaling else "",
        f"Source: {', '.join(results.sources) or 'none'}.",
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
