"""Import a published study of the gallery, and compare its numbers with recomputed ones."""

import argparse
from pathlib import Path

from scalesweep.commands import import_source
from scalesweep.commands.interface import parser_of
from scalesweep.core.errors import UserError
from scalesweep.core.own_files import publish
from scalesweep.gallery.bring import bring, files_of
from scalesweep.gallery.comparison_text import FILE, as_csv, lines
from scalesweep.gallery.page import PAGE, study_page
from scalesweep.gallery.recompute import DIFFERS, MISSING, Comparison, compare
from scalesweep.gallery.study import Study, load_study, study_names
from scalesweep.smk.campaign_args import check_path
from scalesweep.state.results_folder import claim_folder

SITE = "imported"


def run(args: argparse.Namespace) -> None:
    """List the studies, or import one, write its report, and print published beside recomputed.

    Raises UserError if a number is missing or differs without being known to.
    """
    if not args.name:
        for name in study_names():
            study = load_study(name)
            shipped = "shipped" if study.is_shipped else "SOURCE needed"
            print(f"{name:24}{study.title} ({shipped})")
        return
    study = load_study(args.name)
    results = Path(args.results or f"results/gallery/{study.name}")
    comparisons = import_study(study, Path(args.source) if args.source else None, results)
    for line in lines(comparisons):
        print(line)
    print(f"all numbers: {results / FILE}, {results / PAGE}")
    bad = [each.verdict for each in comparisons if each.verdict in (DIFFERS, MISSING)]
    if bad:
        raise UserError(
            f"{study.name}: {len(bad)} of {len(comparisons)} published numbers do not come out"
        )


def import_study(study: Study, source: Path | None, results: Path) -> list[Comparison]:
    """Import a study into a results folder, with its report, and write published beside recomputed.

    Raises UserError, before the folder is made, for a source that does not hold what it needs.
    """
    check_path("--results", results)
    files = files_of(study, source)
    claim_folder(results, "--results")
    print(f"{study.title}: {study.citation}")
    brought = bring(files, results, SITE)
    for each in brought:
        words = parser_of("import").read(each.words)
        words.report = each is brought[-1]
        import_source.run(words)
    comparisons = compare(study, results, {each.part.name: each.path for each in brought})
    publish(results / FILE, as_csv(comparisons))
    publish(results / PAGE, study_page(study, comparisons))
    return comparisons
