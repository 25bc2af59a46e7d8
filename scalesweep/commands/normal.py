"""Say whether the training rates of a results folder are normal, beside published ones."""

import argparse
from collections import Counter
from pathlib import Path

import pandas as pd

from scalesweep.compare.normal import COLUMNS, place, points_of, sentence
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import counted
from scalesweep.core.paths import RESOURCES


def run(args: argparse.Namespace) -> None:
    """Write a table into the results folder, and print a sentence for each point."""
    published = pd.read_csv(RESOURCES / "published_rates.csv")
    rows = [place(it, published) for it in points_of(Path(args.folder), args.device, args.dtype)]
    for row in rows:
        if row["published"]:
            print(sentence(row))
    for reason, count in Counter(row["reason"] for row in rows if not row["published"]).items():
        print(f"not judged: {counted(count, 'point')}: {reason}")
    if not rows:
        print("not judged: the folder has no finished point")
    table = Path(args.folder) / "normal" / "normal.csv"
    table.parent.mkdir(exist_ok=True)
    write_atomic(table, pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False))
    print(f"table: {table}")
