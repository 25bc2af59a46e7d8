"""The two sides of a comparison: whose runs they are, and what each run measured.

A side is this campaign, another results folder, or another site's runs in one of them. Nothing of
it is changed, and no path that its files name is followed: it may have been moved.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import Quantity, column, quantities_of
from scalesweep.analysis.table_io import read_table
from scalesweep.analysis.types import Floats
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import Plan, PlanExperiment, read_plan
from scalesweep.core.profilers import NONE, split_name
from scalesweep.tables.derived import with_derived
from scalesweep.tables.now import plan_now, read_now, summary_of
from scalesweep.tables.provenance import FACTS, RunFacts, read_facts

ALLOWED = "a results folder, FOLDER@SITE, or @SITE for another site's runs in this campaign's"
_NEEDED = ("run_id", "benchmark", "version", "source", "started", "_point")


@dataclass(frozen=True)
class Run:
    """A finished run; ``row`` is its place in the summary."""

    row: int
    run_id: str
    benchmark: str
    version: int
    source: str
    started: str
    point: Mapping[str, Any]


@dataclass
class Side:
    """One side: where its runs are, its plan (None if there is none), and its summary."""

    role: str  # base | new
    place: str  # as a person would name it
    site: str
    plan: Plan | None
    summary: pd.DataFrame

    @property
    def campaign(self) -> str:
        """Name of the campaign; where there is no plan, of the place."""
        return str(self.plan["campaign"]) if self.plan else self.place

    @property
    def created(self) -> str:
        """When stock was taken of it, ISO 8601; empty if unknown."""
        return str(self.plan.get("created", "")) if self.plan else ""

    @property
    def planned(self) -> Sequence[PlanExperiment]:
        """Experiments of the plan, where their states are those of this side's runs."""
        return self.experiments if self.plan and self.plan["site"] == self.site else []

    @property
    def experiments(self) -> Sequence[PlanExperiment]:
        """Experiments of the plan; nothing where there is none."""
        return list(self.plan["experiments"]) if self.plan else []

    @cached_property
    def runs(self) -> list[Run]:
        """Its finished runs, in the order of the summary."""
        columns = [self.summary[name].tolist() for name in _NEEDED]
        try:
            parsed = {text: json.loads(text) for text in set(columns[-1])}
            return [
                Run(row, str(i), str(what), int(version), str(source), str(started), parsed[text])
                for row, (i, what, version, source, started, text) in enumerate(
                    zip(*columns, strict=True)
                )
            ]
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.place}: its summary cannot be read ({error})") from None

    def quantities(self, benchmark: str) -> dict[str, Quantity]:
        """What runs of a benchmark may have measured."""
        return quantities_of(self.summary, benchmark)

    def numbers(self, metric: str, phase: str) -> Floats:
        """The runs' means of a metric in a phase; NaN where a run has none."""
        name = column(metric, "mean", phase)
        if name not in self._numbers:
            there = name in self.summary
            self._numbers[name] = (
                self.summary[name].to_numpy(np.float64)
                if there
                else np.full(len(self.summary), np.nan)
            )
        return self._numbers[name]

    @cached_property
    def _numbers(self) -> dict[str, Floats]:
        return {}

    def facts(self, rows: Iterable[int]) -> list[RunFacts]:
        """Where and with what these runs ran; runs that recorded nothing are left out."""
        if FACTS not in self.summary:
            return []
        wanted = sorted(set(rows))
        ids = [self.runs[row].run_id for row in wanted]
        texts = self.summary[FACTS].tolist()
        return list(read_facts(ids, [texts[row] for row in wanted]).values())


def read_sides(base: str, new: str, campaign: Campaign) -> tuple[Side, Side]:
    """Base and new as the command names them; an empty text is this campaign.

    Raises UserError, in one line, if none is named, both are the same, or one cannot be read.
    """
    places = [_Place(role, text, campaign) for role, text in (("base", base), ("new", new))]
    if places[0].key == places[1].key:
        raise UserError(f"compare: base and new are both {places[0].name}; allowed: {ALLOWED}")
    first, second = (place.read() for place in places)
    return first, second


class _Place:
    """Where a side is read from."""

    def __init__(self, role: str, text: str, campaign: Campaign) -> None:
        self._role, self._option, self._campaign = role, f"{role.upper()} {text}", campaign
        here = campaign.results
        folder, site = _split(text)
        self._folder = here if folder is None else folder
        if folder is not None and not folder.is_dir():
            raise UserError(f"{self._option}: no such folder; allowed: {ALLOWED}")
        self._own = self._folder.resolve() == here.resolve()
        if self._own and site == campaign.site.name:
            site = None
        self._site = site
        self.name = f"{self._folder}@{site}" if site else str(self._folder)
        self.key = (self._folder.resolve(), site)

    def read(self) -> Side:
        """The side. Raises UserError if it lacks what is needed."""
        side = self._of_site(self._site) if self._site else self._of_folder()
        if side.summary.empty:
            raise UserError(f"{self.name}: no finished run to compare")
        return side

    def _of_folder(self) -> Side:
        if self._own:
            plan, summary = read_now(self._campaign)
            return self._side(self._campaign.site.name, plan, summary)
        files = [self._folder / name for name in ("plan.json", "summary.parquet")]
        if lacking := [file.name for file in files if not file.is_file()]:
            raise UserError(
                f"{self._option}: {' and '.join(lacking)} missing: not a results folder, or no "
                "report has been written in it (run `snakemake report` with its campaign)"
            )
        plan, summary = read_plan(files[0]), read_table(files[1])
        if unknown := [name for name in _NEEDED if name not in summary]:
            raise UserError(
                f"{files[1]}: has no column {unknown[0]}: not a summary, or of another version of "
                "scalesweep; rebuild it with `snakemake report` and its campaign"
            )
        return self._side(str(plan.get("site", "")), plan, summary)

    def _of_site(self, site: str) -> Side:
        runs = self._folder / "runs"
        sites = sorted(p.name for p in runs.iterdir() if p.is_dir()) if runs.is_dir() else []
        if site not in sites:
            there = ", ".join(sites) or "none"
            raise UserError(f"{self._option}: {runs} has no runs of {site!r}; allowed: {there}")
        if self._own:
            plan: Plan | None = plan_now(self._campaign)
        else:
            file = self._folder / "plan.json"
            plan = read_plan(file) if file.is_file() else None
        names = sorted(path.name for path in (runs / site).iterdir() if path.is_dir())
        measured = [name for name in names if name[0] != "." and split_name(name)[1] == NONE]
        summary = summary_of(runs / site, measured, None)
        return self._side(site, plan, with_derived(summary, plan["experiments"] if plan else []))

    def _side(self, site: str, plan: Plan | None, summary: pd.DataFrame) -> Side:
        return Side(self._role, self.name, site, plan, summary)


def _split(text: str) -> tuple[Path | None, str | None]:
    """Folder and site of ``FOLDER``, ``FOLDER@SITE`` or ``@SITE``; None: this campaign's."""
    if not text:
        return None, None
    if Path(text).is_dir() or "@" not in text:
        return Path(text), None
    folder, _, site = text.rpartition("@")
    return (Path(folder) if folder else None), site
