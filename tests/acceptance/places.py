"""Where a results folder keeps what the gates read: what moves is one line here."""

import csv
from pathlib import Path

# What a gate asks for -> the file of an experiment in the results folder.
TABLES = {
    "causes": "tables/{experiment}/step_causes.csv",
    "findings": "tables/{experiment}/findings.csv",
    "scaling": "tables/{experiment}/scaling.csv",
    "points": "tables/{experiment}/points.csv",
}
REPORT = "report.html"
# What Snakemake is asked for to get the tables alone.
TABLES_RULE = "tables"
# What a finding is when it claims something and the claim stands.
CLEAR = "clear"

Row = dict[str, str]


def read(results: Path, table: str, experiment: str) -> list[Row]:
    """The rows of a table of an experiment: text, empty where nothing is known."""
    with (results / TABLES[table].format(experiment=experiment)).open(newline="") as file:
        return list(csv.DictReader(file))
