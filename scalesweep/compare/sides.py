"""The two sides of a comparison: where their runs are, their plans and summaries.

A side is this campaign, another results folder, or another site's runs in one of them. Nothing of
it is changed, and no path that its files name is followed: it may have been moved.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pandas as pd

from scalesweep.analysis.table_io import read_table
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import Plan, read_plan
from scalesweep.core.profilers import NONE, split_name
from scalesweep.tables.derived import with_derived
from scalesweep.tables.now import plan_now, read_now, summary_of

ALLOWED = "a results folder, FOLDER@SITE, or @SITE for another site's runs in this campaign's"


@dataclass
class Side:
    """One side: ``role`` (base or new), where its runs are, its plan (without experiments, if there
    is none), its summary."""

    role: str
    place: str
    site: str
    plan: Plan
    summary: pd.DataFrame


def read_sides(base: str, new: str, campaign: Campaign) -> tuple[Side, Side]:
    """Base and new as the command names them; an empty text is this campaign.

    Raises UserError, in one line, if none is named, both are the same, or one cannot be read.
    """
    places = [_place(role, text, campaign) for role, text in (("base", base), ("new", new))]
    (first, here), (second, there) = places
    if first.resolve() == second.resolve() and here == there:
        name = f"{first}@{here}" if here else first
        raise UserError(f"compare: base and new are both {name}; allowed: {ALLOWED}")
    sides = [
        _read(role, f"{role.upper()} {text}", *place, campaign)
        for (role, text), place in zip((("base", base), ("new", new)), places, strict=True)
    ]
    return sides[0], sides[1]


def _place(role: str, text: str, campaign: Campaign) -> tuple[Path, str | None]:
    """Folder and site of ``FOLDER``, ``FOLDER@SITE`` or ``@SITE``; no site: the folder's own."""
    folder, site = Path(text) if text else campaign.results, None
    if text and not folder.is_dir() and "@" in text:
        name, _, site = text.rpartition("@")
        folder = Path(name) if name else campaign.results
    if text and not folder.is_dir() and folder != campaign.results:
        raise UserError(f"{role.upper()} {text}: no such folder; allowed: {ALLOWED}")
    own = folder.resolve() == campaign.results.resolve()
    return folder, None if own and site == campaign.site.name else site


def _read(role: str, option: str, folder: Path, site: str | None, campaign: Campaign) -> Side:
    """A side. Raises UserError if it lacks what is needed."""
    own = folder.resolve() == campaign.results.resolve()
    name = f"{folder}@{site}" if site else str(folder)
    if site:
        side = Side(role, name, site, *_of_site(option, folder, site, campaign if own else None))
    elif own:
        side = Side(role, name, campaign.site.name, *read_now(campaign))
    else:
        side = folder_side(role, folder, option)
    if side.summary.empty:
        raise UserError(f"{name}: no finished run to compare")
    return side


def folder_side(role: str, folder: Path, option: str = "") -> Side:
    """A results folder as one side; ``option``: how it was named. Raises UserError."""
    files = [folder / name for name in ("plan.json", "summary.parquet")]
    if lacking := " and ".join(file.name for file in files if not file.is_file()):
        raise UserError(
            f"{option or folder}: {lacking} missing: not a results folder, or no report has "
            "been written in it (run `snakemake report` with its campaign)"
        )
    plan = read_plan(files[0])
    return Side(role, str(folder), plan["site"], plan, read_table(files[1]))


def _of_site(
    option: str, folder: Path, site: str, own: Campaign | None
) -> tuple[Plan, pd.DataFrame]:
    runs = folder / "runs"
    sites = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
    if site not in sites:
        there = ", ".join(sites) or "none"
        raise UserError(f"{option}: {runs} has no runs of {site!r}; allowed: {there}")
    file, none = folder / "plan.json", {"campaign": f"{folder}@{site}", "experiments": []}
    plan = plan_now(own) if own else read_plan(file) if file.is_file() else cast(Plan, none)
    names = sorted(path.name for path in (runs / site).iterdir() if path.is_dir())
    measured = [name for name in names if name[0] != "." and split_name(name)[1] == NONE]
    return plan, with_derived(summary_of(runs / site, measured), plan["experiments"])
