"""Pages of the gallery: published beside recomputed for a study, and the list of all."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from scalesweep.core.paths import RESOURCES
from scalesweep.gallery.comparison_text import EACH, counts, digits_of, largest
from scalesweep.gallery.recompute import AGREES, DIFFERS, KNOWN, MISSING, Comparison
from scalesweep.gallery.study import Study
from scalesweep.report.html_assets import Assets, render

PAGE = "published.html"
TEMPLATE = "gallery.html.j2"
_KINDS = {AGREES: "good", KNOWN: "known", DIFFERS: "bad", MISSING: "bad"}


def study_page(study: Study, comparisons: Sequence[Comparison]) -> str:
    """The page of a study, beside its report."""
    checks = []
    for check, group in groupby(comparisons, key=lambda comparison: comparison.check):
        numbers = list(group)
        agree = all(each.verdict == AGREES for each in numbers)
        checks.append(
            {
                "name": check.name,
                "where": check.where,
                "counts": f"{counts(numbers)}{largest(numbers)}",
                "open": not agree or len(numbers) <= EACH,
                "rows": [_row(each) for each in numbers],
            }
        )
    facts = [
        ("Source", study.source), ("Citation", study.citation), ("Licence", study.licence),
        ("Published numbers", counts(comparisons)),
    ]  # fmt: skip
    lead = ["Each published number beside the one that scalesweep works out from the study's data."]
    links = [("report.html", "The report of the import")]
    return _render(title=study.title, lead=lead, facts=facts, links=links, checks=checks)


def index_page(studies: Sequence[Mapping[str, Any]]) -> str:
    """The list of studies: ``name``, ``title``, ``counts``, and the addresses ``page`` and
    ``report``, empty where there is none."""
    lead = [
        "Published studies of distributed training, imported by scalesweep: each published number "
        "beside the recomputed one. Studies whose numbers may be shipped have a page and a report "
        "here; others need a checkout or download: scalesweep gallery NAME SOURCE.",
    ]
    return _render(title="Published studies, recomputed", lead=lead, studies=studies)


def _row(comparison: Comparison) -> dict[str, str]:
    number, difference = comparison.published, comparison.difference
    return {
        "label": number.label or comparison.check.name,
        "published": number.printed,
        "recomputed": digits_of(comparison),
        "difference": "–" if difference is None else f"{100 * difference:+.2g} %",
        "verdict": comparison.verdict,
        "kind": _KINDS[comparison.verdict],
        "reason": comparison.reason,
    }


def _render(**given: Any) -> str:
    style = Markup((RESOURCES / "report.css").read_text("utf-8"))
    empty: dict[str, Any] = {"facts": (), "links": (), "checks": (), "studies": ()}
    return render(TEMPLATE, {**empty, **given, "assets": Assets({}, (), (style,))}, {})
