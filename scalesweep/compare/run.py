"""A comparison made and written: the page and its tables."""

from pathlib import Path
from urllib.parse import quote

from scalesweep.compare.environment_diff import surroundings
from scalesweep.compare.inputs import Side
from scalesweep.compare.matching import join
from scalesweep.compare.page import render_comparison
from scalesweep.compare.page_tables import FOLDER
from scalesweep.compare.significance import VERDICTS, changes, counts
from scalesweep.compare.tables import TABLES, make_tables, write_tables
from scalesweep.core.own_files import publish

PAGE = "compare.html"


def compare(base: Side, new: Side, results: Path) -> dict[str, int]:
    """Write ``compare.html`` and ``compare/`` into a results folder.

    Returns how many points' main metrics got each verdict, in the phases that they have.
    """
    joined = join(base, new)
    changed, unlike = changes([*joined.both, *joined.unmatched], base, new)
    around = surroundings(joined.both, base, new)
    summary = counts(changed)
    write_tables(make_tables(changed, summary, joined, around), results / FOLDER)
    files = [f"./{FOLDER}/{quote(name)}.csv" for name in TABLES]
    html = render_comparison(base, new, changed, summary, joined, around, unlike, files)
    publish(results / PAGE, html)
    main = [change.verdict for change in changed if change.main]
    return {verdict: main.count(verdict) for verdict in VERDICTS if verdict in main}
