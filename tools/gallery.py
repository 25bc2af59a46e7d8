"""Write docs/gallery.md, the list of studies (--check: only compare); with --site FOLDER import the
studies whose numbers are shipped, and write their pages and reports into FOLDER/gallery."""

import argparse
import contextlib
import io
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.core.errors import UserError
from scalesweep.gallery.study import Study, load_study, study_names

DOCS = ROOT / "docs" / "gallery.md"
HEAD = """\
<!-- tools/gallery.py writes this page from gallery/*/study.yaml. -->
# Studies of the gallery

`scalesweep gallery NAME SOURCE` imports a study, and compares the numbers that it publishes with
those that scalesweep works out ([guide](guide/gallery.md)).
`make docs` does so for studies whose numbers are shipped, and writes `site/gallery/index.html` with
the comparisons and reports.
"""


def listed() -> str:
    """The page of studies, as Markdown."""
    parts = [HEAD]
    for study in map(load_study, study_names()):
        shipped = "nothing: its numbers are shipped" if study.is_shipped else study.needs
        checks = "".join(f"\n  * {check.name}: {check.where}" for check in study.checks)
        parts.append(
            f"## {study.name}\n\n{study.title}.\n\n"
            f"* **Citation**: {study.citation}.\n* **Source**: {study.source}.\n"
            f"* **Licence**: {study.licence}.\n* **SOURCE**: {shipped}.\n"
            f"* **Compared**, each with where it is published:{checks}\n"
        )
    return "\n".join(parts)


def entry(study: Study, site: Path) -> dict[str, Any]:
    """The row of a study in the index; its pages are written first if its numbers are shipped."""
    from scalesweep.commands.gallery import import_study
    from scalesweep.gallery.comparison_text import counts

    row = {"name": study.name, "title": study.title, "page": "", "report": ""}
    if not study.is_shipped:
        return {**row, "counts": f"SOURCE is needed: {study.needs}"}
    results = site / ".gallery" / study.name
    with contextlib.redirect_stdout(io.StringIO()):
        comparisons = import_study(study, None, results)
    folder = site / "gallery" / study.name
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("published.html", "report.html"):
        shutil.copyfile(results / name, folder / name)
    pages = {"page": f"{study.name}/published.html", "report": f"{study.name}/report.html"}
    return {**row, **pages, "counts": counts(comparisons)}


def main() -> None:
    """Write the list, or say that it is stale; with ``--site`` the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--site", type=Path)
    args = parser.parse_args()
    text = listed()
    if args.check:
        stale = not DOCS.is_file() or DOCS.read_text() != text
        sys.exit("error: docs/gallery.md is stale: python tools/gallery.py" if stale else 0)
    DOCS.write_text(text)
    if args.site:
        from scalesweep.gallery.page import index_page

        try:
            rows = [entry(study, args.site) for study in map(load_study, study_names())]
        except UserError as error:
            sys.exit(f"error: {error}")
        index = args.site / "gallery" / "index.html"
        index.write_text(index_page(rows))
        print(f"gallery: {index}")


if __name__ == "__main__":
    main()
