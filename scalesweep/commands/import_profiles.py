"""Import profiles of other tools (TALP, mpitrace, TAU, Nsight Systems, ...), and report on them."""

import argparse
import math
from pathlib import Path

from scalesweep.config.benchmark import load_benchmark
from scalesweep.core.errors import UserError
from scalesweep.importers import PROFILES, cli
from scalesweep.importers.imported_run import NotRead
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.nsys_database import Window
from scalesweep.importers.profiles.profile_runs import runs_of
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.write_campaign import Rules

MOST_S = 1e9


def run(args: argparse.Namespace) -> None:
    """Read profiles into records, write a campaign of them, make its report.

    Profiles that are not whole are named and do not fail the others.
    """
    window = window_of(args.window)
    if window is not None and args.benchmark:
        raise UserError(
            "--window: not with --benchmark, whose points would count windows of a run as repeats"
        )
    known = load_benchmark(args.benchmark, "--benchmark") if args.benchmark else None
    source = read_source(Path(args.source), args.ranks or RankMap({}), window)
    made = runs_of(source.profiles, Path(args.source), known)
    cli.deliver(
        args,
        PROFILES,
        [*made.runs, *(NotRead(file) for file in source.others)],
        [*source.refusals, *made.refusals],
        {
            name: Rules() if known and name == known.name else Rules(kind)
            for name, kind in made.scaling.items()
        },
        "Profiles of other tools, imported.",
    )


def window_of(text: str) -> Window | None:
    """The window that ``--window`` names, None without; raises UserError for what is none."""
    if not text:
        return None
    try:
        begin, end = (float(part) for part in text.split(":"))
    except ValueError:
        begin = end = math.nan
    if not 0 <= begin < end < MOST_S:
        raise UserError(
            f"--window: '{text}' is not FROM:TO, seconds after the first event with 0 <= FROM < TO,"
            " such as 10:12.5"
        )
    return Window(begin, end)
