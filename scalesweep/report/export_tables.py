"""All tables of a campaign, and its findings: made and written, an experiment at a time.

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

import pandas as pd

from scalesweep.analysis.metrics import column
from scalesweep.analysis.table_io import without_attrs, write_tables
from scalesweep.aspects.find import find
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.code_digest import code_digest
from scalesweep.core.files import digest_of, stamp_of, write_atomic
from scalesweep.core.formatting import listed
from scalesweep.core.joined_experiments import benchmarks_of
from scalesweep.core.parallel import shared_map
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.core.shown_plan import shown
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
    def entry(self) -> PlanExperiment:
        """The experiment in the plan."""
        return self.plan["experiments"][0]

    @property
    def key(self) -> str:
        """Digest of all that the tables are made of; of profiles the files are looked at."""
        folders = [self.runs / run["run_id"] for run in self.entry["profiles"]]
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
                json.dumps(asdict(self.machine), sort_keys=True),
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
    parts = {}
    predicts = any(entry.get("predict") for entry in plan["experiments"])
    machine = (predicting_machine if predicts else known_machine)(summary, plan)
    for entry in shown(plan)["experiments"]:
        ids = dict.fromkeys(run["run_id"] for run in entry["runs"])
        own = _taken(summary, [rows[run_id] for run_id in ids if run_id in rows], entry)
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


def _taken(frame: pd.DataFrame, rows: list[int], entry: PlanExperiment) -> pd.DataFrame:
    """Rows of a summary, with the meaning of the metrics of an experiment's benchmarks."""
    taken = without_attrs(frame).take(rows).reset_index(drop=True)
    known = frame.attrs.get("metrics", {})
    taken.attrs = {"metrics": {name: known[name] for name in benchmarks_of(entry) if name in known}}
    return taken


def _write(out: Path, part: _Part) -> list[Path]:
    """Make and write the tables of an experiment; returns their files."""
    name = part.entry["name"]
    tables = make_tables(part.summary, part.plan, part.runs, machine=part.machine)
    data = ExperimentData(part.summary, part.entry)
    for metric, meant in data.unlike.items():
        of_each = (
            f"{of.unit}, {of.better} is better, {of.scope}, in {each}" for each, of in meant.items()
        )
        words = listed([*of_each])
        _log.warning("%s: metric %s is left out: it is %s", name, metric, words)
    files = write_tables(tables, out)
    # As the page reads them: what is there of an earlier call beside these is none of them.
    results = load_results(part.entry, out, tables[name])
    table = findings_table(results, find(results))
    files += write_tables({name: {FINDINGS: table}}, out)
    return files + write_latex(results, part.plan["campaign"], out)


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
) -> int:
    """Write the tables of all experiments, or of these; how many files.

    ``runs`` is the folder of the site's runs. Raises UserError if plan and summary do not belong
    together.
    """
    parts = _parts(summary, plan, runs)
    entries = [entry for entry in shown(plan)["experiments"] if not only or entry["name"] in only]
    for entry in entries:
        (out / entry["name"]).mkdir(parents=True, exist_ok=True)
    written = shared_map(_write, out, [parts[entry["name"]] for entry in entries], processes)
    return sum(map(len, written))
