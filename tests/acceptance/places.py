"""Where a results folder keeps what the gates read: what moves is one line here."""

import csv
from pathlib import Path

# What a gate asks for -> the file of an experiment in the results folder.
TABLES = {
    "causes": "tables/{experiment}/step_causes.csv",
    "findings": "tables/{experiment}/findings.csv",
    "scaling": "tables/{experiment}/scaling.csv",
    "points": "tables/{experiment}/points.csv",
    "prediction": "tables/{experiment}/prediction.csv",
}
FIGURES = {"scaling": "figures/{experiment}/scaling*.svg"}
REPORT = "report.html"
# What Snakemake is asked for to get the tables alone.
TABLES_RULE = "tables"
# A row a planned run: run_id, status (new, done, failed), cause.
PLAN = "plan.csv"
# Of every finished run; its folder is named by the run's id.
RECORDS = "runs/*/*/record.json"
# What a finding is when it claims something and the claim stands.
CLEAR = "clear"

Row = dict[str, str]


def read(results: Path, table: str, experiment: str) -> list[Row]:
    """The rows of a table of an experiment: text, empty where nothing is known."""
    return _rows(results / TABLES[table].format(experiment=experiment))


def plan(results: Path) -> list[Row]:
    """The rows of the plan."""
    return _rows(results / PLAN)


def records(results: Path) -> dict[str, bytes]:
    """Run id -> record of every finished run."""
    return {path.parent.name: path.read_bytes() for path in results.glob(RECORDS)}


def _rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
