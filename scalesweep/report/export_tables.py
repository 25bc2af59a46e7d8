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

import numpy as np
import pandas as pd

from scalesweep.analysis.table_io import without_attrs, write_tables
from scalesweep.aspects.find import find
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.files import digest_of, stamp_of, write_atomic
from scalesweep.core.formatting import listed
from scalesweep.core.joined_experiments import benchmarks_of, shown
from scalesweep.core.parallel import shared_map
from scalesweep.core.paths import code_digest
from scalesweep.core.plan_format import Plan
from scalesweep.core.visible import visible
from scalesweep.experiment.load import lasting, load_results
from scalesweep.experiment.points_table import point_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.table import TABLE as FINDINGS
from scalesweep.findings.table import findings_table
from scalesweep.tables.file_rates import LOADING, only_reads
from scalesweep.tables.machine import Machine, known_machine
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import predicting_machine

_log = logging.getLogger(__name__)
# Of tables for papers: their columns are those of the report's table of points.
NAMES, MAX_ROWS = ("points", "scaling"), 40
_SIGNS = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$", "μ": "µ",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
})  # fmt: skip


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
                code_digest("numpy", "pandas", "pyarrow", "scipy", "jinja2"),
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
    # What runs of networks of known size exchange is known; predicted times rest on all.
    measured = replace(machine, grown=())
    for entry in shown(plan)["experiments"]:
        ids = dict.fromkeys(run["run_id"] for run in entry["runs"])
        taken = [rows[run_id] for run_id in ids if run_id in rows]
        own = without_attrs(summary).take(taken).reset_index(drop=True)
        named = [name for name in benchmarks_of(entry) if name in meant]
        own.attrs = {"metrics": {name: meant[name] for name in named}}
        own_plan: Plan = {**shared, "experiments": [lasting(entry)]}
        known = machine if entry.get("predict") else measured
        if only_reads(entry):  # what other pipelines reach is held against trainings alone
            known = replace(known, rates=[it for it in known.rates if it.kind != LOADING])
        parts[entry["name"]] = _Part(own_plan, own, runs, known)
    return parts


def _write(work: tuple[Path, Path | None, int], part: _Part) -> None:
    """Make and write tables and figures of an experiment, for which there are so many processes."""
    out, figures, processes = work
    (entry,) = part.plan["experiments"]
    name = entry["name"]
    tables = make_tables(part.summary, part.plan, part.runs, machine=part.machine)
    for metric, meant in ExperimentData(part.summary, entry).unlike.items():
        of_each = (
            f"{of.unit}, {of.better} is better, {of.scope}, in {each}" for each, of in meant.items()
        )
        _log.warning("%s: metric %s is left out: it is %s", name, metric, listed([*of_each]))
    write_tables(tables, out)
    # As the page reads them: what is there of an earlier call beside these is none of them.
    results = load_results(entry, out, tables[name])
    table = findings_table(results, find(results))
    write_tables({name: {FINDINGS: table}}, out)
    for kind in NAMES:
        if text := latex_table(results, kind, part.plan["campaign"]):
            write_atomic(out / name / f"{kind}.tex", text, durable=False)
    if figures:
        from scalesweep.aspects.draw import write_figures

        write_figures(results, figures, processes=processes)


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
) -> None:
    """Write the tables of all experiments, or of these, and their figures if there is a folder for
    them.

    ``runs`` is the folder of the site's runs. Raises UserError if plan and summary do not belong
    together.
    """
    parts = [part for name, part in _parts(summary, plan, runs).items() if not only or name in only]
    for part in parts:
        (out / part.plan["experiments"][0]["name"]).mkdir(parents=True, exist_ok=True)
    if figures is not None:  # which the processes below have then
        import scalesweep.aspects.draw  # noqa: F401
    work = out, figures, processes if len(parts) == 1 else 1
    shared_map(_write, work, parts, processes)


def latex_text(text: str) -> str:
    r"""Any text as LaTeX's text mode shows it, on one line.

    What ``\\`` in front would take for an argument (``[``, ``*``) is behind empty braces.
    """
    shown = visible(" ".join(text.split())).translate(_SIGNS)
    return f"{{}}{shown}" if shown[:1] in ("[", "*") else shown


def latex_table(results: ExperimentResults, name: str, campaign: str) -> str | None:
    """The table ``points`` or ``scaling`` of an experiment; None where it has no rows."""
    if name == "scaling" and not results.series:
        return None
    table = point_table(results, MAX_ROWS, scaling=name == "scaling")
    if not table.sources:
        return None
    heads = [("", heading) for heading in table.lead]
    heads += [(group, column.heading) for group, part in table.groups for column in part]
    columns = [(latex_text(group), latex_text(heading)) for group, heading in heads]
    rows = [[latex_text(cell.text) for cell in row] for row in table.head]
    frame = pd.DataFrame(rows, columns=pd.MultiIndex.from_tuples(columns))
    if not any(group for group, _ in heads):
        frame.columns = frame.columns.droplevel(0)
    caption = f"{results.title}: {name} (campaign {campaign}). Means with 95 % intervals."
    caption += f" The first {MAX_ROWS} of {len(table.sources)} rows." if table.left_out else ""
    return frame.style.hide(axis="index").to_latex(
        environment="table",
        position="htbp",
        position_float="centering",
        hrules=True,
        multicol_align="c",
        column_format="l" * len(table.lead) + "r" * (len(heads) - len(table.lead)),
        caption=latex_text(caption),
        label=f"tab:{results.name}-{name}",
    )
