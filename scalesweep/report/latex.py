"""Tables for papers: an experiment's points, and its scaling, in LaTeX.

The columns are those of the report's table of points; booktabs draws the rules, longtable
takes what is longer than a page.
"""

from pathlib import Path

import pandas as pd

from scalesweep.core.files import write_atomic
from scalesweep.core.visible import visible
from scalesweep.experiment.points_table import point_table
from scalesweep.experiment.results import ExperimentResults

NAMES = ("points", "scaling")
ONE_PAGE, MAX_ROWS = 40, 200
_SIGNS = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$", "μ": "µ",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
})  # fmt: skip


def latex_text(text: str) -> str:
    r"""Any text as LaTeX's text mode shows it, on one line.

    What ``\\`` in front would take for an argument (``[``, ``*``) is behind empty braces.
    """
    shown = visible(" ".join(text.split())).translate(_SIGNS)
    return f"{{}}{shown}" if shown[:1] in ("[", "*") else shown


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
    caption = f"{results.title}: {name} (campaign {campaign}). Means with 95 % intervals."
    caption += f" The first {MAX_ROWS} of {len(table.sources)} rows." if table.left_out else ""
    long = len(rows) > ONE_PAGE
    return frame.style.hide(axis="index").to_latex(
        environment="longtable" if long else "table",
        position=None if long else "htbp",
        position_float=None if long else "centering",
        hrules=True,
        multicol_align="c",
        column_format="l" * len(table.lead) + "r" * (len(heads) - len(table.lead)),
        caption=latex_text(caption),
        label=f"tab:{results.name}-{name}",
    )


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
