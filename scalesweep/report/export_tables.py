"""All tables of a campaign: made and written, an experiment at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scalesweep.analysis.table_io import remove_stale, write_tables
from scalesweep.core.parallel import shared_map
from scalesweep.core.plan_format import Plan
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.latex import write_latex
from scalesweep.tables.build import make_tables
from scalesweep.tables.cprofile import functions_table
from scalesweep.tables.other_sites import summaries_elsewhere


@dataclass(frozen=True)
class _Work:
    summary: pd.DataFrame
    plan: Plan
    elsewhere: Mapping[str, pd.DataFrame]
    runs: Path
    out: Path

    def write(self, number: int) -> list[Path]:
        """Make and write the tables of an experiment; returns their files."""
        experiment = self.plan["experiments"][number]
        name = experiment["name"]
        plan: Plan = {**self.plan, "experiments": [experiment]}
        tables = make_tables(self.summary, plan, self.elsewhere, self.runs)
        functions = functions_table(experiment, self.runs)
        if functions is not None:
            tables[name]["functions"] = functions
        files = write_tables(tables, self.out)
        study = ExperimentResults(experiment, tables[name])
        return files + write_latex(study, self.plan["campaign"], self.out)


def write_all(summary: pd.DataFrame, plan: Plan, runs: Path, out: Path, processes: int = 1) -> int:
    """Write the tables of all experiments, remove those that are no more; how many files.

    ``runs`` is the folder of the site's runs. Raises UserError if plan and summary do not belong
    together.
    """
    experiments = plan["experiments"]
    run_ids = dict.fromkeys(run["run_id"] for one in experiments for run in one["runs"])
    work = _Work(summary, plan, summaries_elsewhere(runs, run_ids), runs, out)
    # The largest begin first where processes share the work.
    order = sorted(range(len(experiments)), key=lambda n: -len(experiments[n]["runs"]))
    written = shared_map(_Work.write, work, order, processes)
    files = [path for paths in written for path in paths]
    remove_stale(out, files)
    return len(files)
