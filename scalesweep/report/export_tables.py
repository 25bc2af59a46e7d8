"""All tables, findings and figures of a campaign: made and written, an experiment at a time.

``plan/<experiment>.json`` changes with all that those of an experiment are made of: its entry in
the plan, the rows of its runs, the files of its runs that tables read, the
code. So Snakemake makes them again only then.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import column
from scalesweep.analysis.table_io import without_attrs, write_tables
from scalesweep.aspects.find import find
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.code_digest import code_digest
from scalesweep.core.files import digest_of, stamp_of, write_atomic
from scalesweep.core.formatting import listed
from scalesweep.core.joined_experiments import benchmarks_of, shown
from scalesweep.core.parallel import shared_map
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.experiment.load import lasting, load_results
from scalesweep.findings.table import TABLE as FINDINGS
from scalesweep.findings.table import findings_table
from scalesweep.report.latex import write_latex
from scalesweep.tables.bookkeeping import ACCOUNT
from scalesweep.tables.file_rates import reads_files
from scalesweep.tables.layers import LAYERS
from scalesweep.tables.machine import UNKNOWN, Machine, known_machine
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import predicting_machine

_log = logging.getLogger(__name__)


# What makes numbers and files of them.
LIBRARIES = ("numpy", "pandas", "pyarrow", "scipy", "jinja2")


@dataclass(frozen=True)
class _Part:
    """An experiment with all that its tables are made of."""

    plan: Plan  # of this experiment alone
    summary: pd.DataFrame  # rows of its runs
    runs: Path
    machine: Machine  # where runs have timed layers, or tell where the time of steps went

    @property
    def key(self) -> str:
        """Digest of all that the tables are made of; of profiles the files are looked at."""
        folders = [self.runs / run["run_id"] for run in self.plan["experiments"][0]["profiles"]]
        files = [str(path) for folder in folders for path in sorted(folder.rglob("*"))]
        bare = without_attrs(self.summary).dropna(axis="columns", how="all")
        return digest_of(
            [
                code_digest(*LIBRARIES),
                self.plan,
                hashlib.blake2b(bare.to_parquet(index=False)).hexdigest(),
                self.summary.attrs,
                [[path, stamp_of(path)] for path in files],
                # As a text: a ceiling of one repeat has no interval, and NaN is no JSON.
                json.dumps(asdict(self.machine), sort_keys=True, default=np.ndarray.tolist),
            ]
        )


def _parts(summary: pd.DataFrame, plan: Plan, runs: Path) -> dict[str, _Part]:
    """The experiments by name, each with no more than its tables are made of."""
    rows = {run_id: row for row, run_id in enumerate(summary["run_id"].tolist())}
    # No table says any of this.
    shared: Plan = {
        **plan, "description": "", "file": "", "results": "", "created": "", "jobs": None,
        "order": {"seed": None, "of": 0},
    }  # fmt: skip
    parts, meant = {}, summary.attrs.get("metrics", {})
    predicts = any(entry.get("predict") for entry in plan["experiments"])
    machine = (predicting_machine if predicts else known_machine)(summary, plan)
    for entry in shown(plan)["experiments"]:
        ids = dict.fromkeys(run["run_id"] for run in entry["runs"])
        taken = [rows[run_id] for run_id in ids if run_id in rows]
        own = without_attrs(summary).take(taken).reset_index(drop=True)
        named = [name for name in benchmarks_of(entry) if name in meant]
        own.attrs = {"metrics": {name: meant[name] for name in named}}
        own_plan: Plan = {**shared, "experiments": [lasting(entry)]}
        parts[entry["name"]] = _Part(own_plan, own, runs, _known_to(entry, own, machine))
    return parts


def _known_to(entry: PlanExperiment, rows: pd.DataFrame, machine: Machine) -> Machine:
    """What of the machine the tables of an experiment hold its runs against."""
    if entry.get("predict"):
        return machine
    # Of networks of known size what runs exchange is known, which their predicted times rest on.
    names = (LAYERS, ACCOUNT, column("model_parameters", "mean", "run"))
    held = reads_files(entry) or any(name in rows and rows[name].notna().any() for name in names)
    return replace(machine, grown=()) if held else UNKNOWN


@dataclass(frozen=True)
class _Work:
    out: Path
    figures: Path | None
    processes: int  # for figures: several of a single experiment


def _write(work: _Work, part: _Part) -> tuple[int, list[dict[str, Any]]]:
    """Make and write tables and figures of an experiment: how many files, and the index."""
    (entry,) = part.plan["experiments"]
    name = entry["name"]
    tables = make_tables(part.summary, part.plan, part.runs, machine=part.machine)
    for metric, meant in ExperimentData(part.summary, entry).unlike.items():
        of_each = (
            f"{of.unit}, {of.better} is better, {of.scope}, in {each}" for each, of in meant.items()
        )
        _log.warning("%s: metric %s is left out: it is %s", name, metric, listed([*of_each]))
    files = write_tables(tables, work.out)
    # As the page reads them: what is there of an earlier call beside these is none of them.
    results = load_results(entry, work.out, tables[name])
    table = findings_table(results, find(results))
    files += write_tables({name: {FINDINGS: table}}, work.out)
    files += write_latex(results, part.plan["campaign"], work.out)
    if work.figures is None:
        return len(files), []
    from scalesweep.aspects.draw import write_figures

    return len(files), write_figures(results, work.figures, processes=work.processes)


def note_inputs(summary: pd.DataFrame, plan: Plan, runs: Path, results: Path) -> None:
    """Write ``plan/<experiment>.json`` of the experiments of which it changes; remove what is there
    of experiments that are no more: these files, tables and figures.

    ``runs``: the folder of the site's runs.
    """
    parts = _parts(summary, plan, runs)
    (results / "plan").mkdir(exist_ok=True)
    for name, part in parts.items():
        path, text = results / "plan" / f"{name}.json", json.dumps({"made_of": part.key}) + "\n"
        if not path.is_file() or path.read_text() != text:
            write_atomic(path, text, durable=False)
    for folder in (results / name for name in ("plan", "tables", "figures")):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and path.name not in parts:
                shutil.rmtree(path)
            elif path.is_file() and path.stem not in parts:
                path.unlink()


def write_all(
    summary: pd.DataFrame,
    plan: Plan,
    runs: Path,
    out: Path,
    only: Collection[str] = (),
    processes: int = 1,
    figures: Path | None = None,
) -> tuple[int, list[dict[str, Any]]]:
    """Write the tables of all experiments, or of these, and their figures if there is a folder for
    them; how many files of tables, and the index of figures.

    ``runs`` is the folder of the site's runs. Raises UserError if plan and summary do not belong
    together.
    """
    parts = [part for name, part in _parts(summary, plan, runs).items() if not only or name in only]
    for part in parts:
        (out / part.plan["experiments"][0]["name"]).mkdir(parents=True, exist_ok=True)
    if figures is not None:  # which the processes below have then
        import scalesweep.aspects.draw  # noqa: F401
    work = _Work(out, figures, processes if len(parts) == 1 else 1)
    written = shared_map(_write, work, parts, processes)
    return sum(files for files, _ in written), [each for _, index in written for each in index]
