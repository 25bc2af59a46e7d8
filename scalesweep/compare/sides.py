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
from scalesweep.tables.now import read_now, summary_of

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
    """Base and new as the command names them; an empty text is this campaign. Raises UserError, in
    one line, if none is named, both are the same, or one cannot be read."""
    first, second = (_read(role, text, campaign) for role, text in (("base", base), ("new", new)))
    if first.place == second.place:
        raise UserError(f"compare: base and new are both {first.place}; allowed: {ALLOWED}")
    return first, second


def _read(role: str, text: str, campaign: Campaign) -> Side:
    """The side that ``FOLDER``, ``FOLDER@SITE``, ``@SITE`` or nothing names. Raises UserError."""
    folder, site = Path(text) if text else campaign.results, ""
    if text and not folder.is_dir() and "@" in text:
        name, _, site = text.rpartition("@")
        folder = Path(name) if name else campaign.results
    own = folder.resolve() == campaign.results.resolve()
    if not own and not folder.is_dir():
        raise UserError(f"{role.upper()} {text}: no such folder; allowed: {ALLOWED}")
    if own and site in ("", campaign.site.name):
        side = Side(role, str(folder), campaign.site.name, *read_now(campaign))
    elif site:
        side = _side_of_site(role, folder, site)
    else:
        side = folder_side(role, folder)
    if side.summary.empty:
        raise UserError(f"{side.place}: no finished run to compare")
    return side


def folder_side(role: str, folder: Path) -> Side:
    """A results folder as one side. Raises UserError."""
    files = [folder / name for name in ("plan.json", "summary.parquet")]
    if lacking := " and ".join(file.name for file in files if not file.is_file()):
        raise UserError(
            f"{role.upper()} {folder}: {lacking} missing: not a results folder, or no report has "
            "been written in it (run `snakemake report` with its campaign)"
        )
    plan = read_plan(files[0])
    return Side(role, str(folder), plan["site"], plan, read_table(files[1]))


def _side_of_site(role: str, folder: Path, site: str) -> Side:
    """The runs of one of the sites of a results folder. Raises UserError."""
    name, runs = f"{folder}@{site}", folder / "runs"
    sites = sorted(path.name for path in runs.glob("*/"))
    if site not in sites:
        there = ", ".join(sites) or "none"
        raise UserError(f"{role.upper()} {name}: {runs} has no runs of {site!r}; allowed: {there}")
    file, none = folder / "plan.json", {"campaign": name, "experiments": []}
    plan = read_plan(file) if file.is_file() else cast(Plan, none)
    names = sorted(path.name for path in (runs / site).glob("[!.]*/"))
    measured = [run_id for run_id in names if split_name(run_id)[1] == NONE]
    summary = with_derived(summary_of(runs / site, measured), plan["experiments"])
    return Side(role, name, site, plan, summary)
