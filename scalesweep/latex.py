"""Tables for papers: an experiment's points, and its scaling, in LaTeX.

The columns are those of the report's table of points; booktabs draws the rules, longtable
takes what is longer than a page.
"""

import re
import unicodedata
from pathlib import Path

import pandas as pd

from scalesweep.presentation import counted
from scalesweep.record import write_atomic
from scalesweep.reporttables import Table, point_table
from scalesweep.study import Study

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

    What ``\\`` or a rule in front would take for an argument (``[``, ``*``) stands in braces;
    characters that have no picture (control, direction) become spaces.
    """
    shown = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text)
    shown = _TO_ESCAPE.sub(lambda found: _SPECIAL[found[0]], " ".join(shown.split()))
    return f"{{{shown[0]}}}{shown[1:]}" if shown[:1] in ("[", "*") else shown


def latex_table(study: Study, name: str, campaign: str) -> str | None:
    """The table ``points`` or ``scaling`` of an experiment; None where it has no rows."""
    if name == "scaling" and not study.series:
        return None
    table = point_table(study, MAX_ROWS, scaling=name == "scaling")
    if not table.sources:
        return None
    frame = pd.DataFrame(
        [[latex_text(cell.text) for cell in row] for row in table.head],
        columns=_headings(table),
    )
    long = len(frame) > ONE_PAGE
    style = frame.style.hide(axis="index")
    text = style.to_latex(
        column_format=_alignment(study, table),
        hrules=True,
        multicol_align="c",
        environment="longtable" if long else "table",
        position=None if long else "htbp",
        position_float=None if long else "centering",
        caption=_caption(study, table, name, campaign),
        label=f"tab:{study.name}-{name}",
    )
    needs = r"\usepackage{booktabs,longtable}" if long else r"\usepackage{booktabs}"
    letters = "" if text.isascii() else "; LuaLaTeX or XeLaTeX for its letters"
    return f"% {name}.csv has all digits. Preamble: {needs}{letters}\n{text}"


def _headings(table: Table) -> "pd.Index[str] | pd.MultiIndex":
    """Heads of the columns, in two levels where phases stand above the values."""
    pairs = [("", heading) for heading in table.lead]
    pairs += [(group, one.heading) for group, columns in table.groups for one in columns]
    shown = [(latex_text(group), latex_text(heading)) for group, heading in pairs]
    if any(group for group, _ in shown):
        return pd.MultiIndex.from_tuples(shown)
    return pd.Index([heading for _, heading in shown])


def _alignment(study: Study, table: Table) -> str:
    """Words to the left, numbers to the right."""
    axes = "".join("r" if study.numeric(name) else "l" for name in study.axes)
    source = "l" * (len(table.lead) - table.parameters - 1)
    return axes + "r" + source + "r" * sum(len(columns) for _, columns in table.groups)


def _caption(study: Study, table: Table, name: str, campaign: str) -> str:
    sources = ", ".join(study.sources) or "none"
    words = [
        f"{study.title}: {'scaling' if name == 'scaling' else 'points'} (campaign {campaign}).",
        "Means over the runs of a point with their 95 % intervals in brackets, where it has two "
        "or more.",
        f"Efficiency is relative to the smallest finished {study.scale_words} of a series."
        if table.scaling else "",
        f"Source: {sources}.",
        f"The first {len(table.head):,} of {counted(len(table.sources), 'row')}." if table.left_out
        else "",
    ]  # fmt: skip
    return latex_text(" ".join(word for word in words if word))


def write_latex(study: Study, campaign: str, out: Path) -> list[Path]:
    """Write ``out/<experiment>/<table>.tex``; returns what was written."""
    found = {out / study.name / f"{name}.tex": latex_table(study, name, campaign) for name in NAMES}
    written = {path: text for path, text in found.items() if text is not None}
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text, durable=False)
    return list(written)
