"""Say whether the training rates of a results folder are normal, by those of the gallery."""

import argparse
import io
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from scalesweep.core.csv_cells import CsvWriter
from scalesweep.core.formatting import counted
from scalesweep.core.own_files import publish
from scalesweep.gallery.normal import Placed, place, sentence
from scalesweep.gallery.normal_figure import figure_svg
from scalesweep.gallery.training_rates import (
    check_device,
    check_dtype,
    gallery_rates,
    rates_of_results,
)

FOLDER = "normal"
SAID = 20  # points with a sentence of their own
_COLUMNS = (
    "point", "source", "ranks", "parameters", "dtype", "device", "sequence", "tokens", "tokens_low",
    "tokens_high", "published", "least", "median", "most", "ratio", "ratio_low", "ratio_high",
    "verdict", "reason", "studies", "left_out",
)  # fmt: skip


def run(args: argparse.Namespace) -> None:
    """Write a table and a figure into the results folder, and print a sentence for each point."""
    results = Path(args.folder)
    device = check_device(args.device)
    rates = rates_of_results(results, str(results), device, check_dtype(args.dtype))
    gallery = gallery_rates(Path(args.gallery), results)
    placed = [place(rate, gallery) for rate in rates]
    out = results / FOLDER
    out.mkdir(exist_ok=True)
    publish(out / "normal.csv", _table(placed))
    said = [each for each in placed if each.references]
    for each in said[:SAID]:
        print(sentence(each))
    if len(said) > SAID:
        print(f"and {len(said) - SAID} more, in the table")
    for reason, count in Counter(each.reason for each in placed if not each.references).items():
        print(f"not judged: {counted(count, 'point')}: {reason}")
    if not placed:
        print("not judged: the folder has no finished point")
    print(f"table: {out / 'normal.csv'}")
    if svg := figure_svg(placed):
        publish(out / "normal.svg", svg)
        print(f"figure: {out / 'normal.svg'}")


def _table(placed: Sequence[Placed]) -> str:
    out = io.StringIO()
    writer = CsvWriter(out)
    writer.writerow(_COLUMNS)
    for each in placed:
        rate, shape, values, ratio = each.rate, each.rate.shape, each.values, each.ratio
        model = [
            getattr(shape, name) if shape else None
            for name in ("parameters", "dtype", "device", "sequence")
        ]
        middle = statistics.median(values) if values else None
        studies = ", ".join(sorted({other.origin for other in each.references}))
        cells = [
            rate.label, rate.source, rate.ranks or None, *model, *_ends(rate.tokens), len(values),
            min(values, default=None), middle, max(values, default=None), *_ends(ratio),
            each.verdict, each.reason, studies,
            ", ".join(f"{why}: {count}" for why, count in each.left_out.items()),
        ]  # fmt: skip
        writer.writerow(["" if cell is None else cell for cell in cells])
    return out.getvalue()


def _ends(estimate: object) -> list[object]:
    return [getattr(estimate, name, None) for name in ("value", "low", "high")]
