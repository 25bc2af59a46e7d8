"""A study of the gallery, imported without Snakemake: its tables, no figures, no report."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from scalesweep.config.campaign import load_campaign
from scalesweep.core.plan_format import PLAN, write_plan_file
from scalesweep.importers import cli
from scalesweep.planning.plan import build_plan
from scalesweep.report.export_tables import write_all
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary


def make_tables(results: Path) -> None:
    """Write plan and tables of an import, as the report's call of Snakemake does."""
    campaign = load_campaign(results / "campaign.yaml", "imported", str(results))
    runs = campaign.unique_runs()
    plan = build_plan(campaign, scan(campaign.runs_folder, runs, remember=False))
    finished = [run["run_id"] for entry in plan["experiments"] for run in entry["runs"]
                if run["status"] == "done"]  # fmt: skip
    records = [campaign.runs_folder / run_id / "record.json" for run_id in dict.fromkeys(finished)]
    write_plan_file(results / PLAN, plan)
    write_all(build_summary(records), plan, campaign.runs_folder, results / "tables", 1, None)


def tables_only(patch: pytest.MonkeyPatch) -> None:
    """Let every import make tables in place of its report."""

    def run(command: Sequence[str], **_kept: Any) -> subprocess.CompletedProcess[str]:
        make_tables(Path(command[command.index("--configfile") + 1]).parent)
        return subprocess.CompletedProcess(command, 0, "", "")

    patch.setattr(cli, "subprocess", SimpleNamespace(run=run))


TABLE = "gpus,rate,printed\n1,100.0,100%\n2,150.0,75%\n4,240.0,66%\n"
SMALL: dict[str, Any] = {
    "title": "A small study",
    "citation": "Nobody, 2020",
    "source": "nowhere",
    "licence": "none",
    "needs": "a checkout of nothing",
    "imports": [{"name": "rates", "shipped": "table.csv", "map": "map.yaml"}],
    "checks": [
        {
            "name": "efficiency",
            "where": "the table",
            "unit": "%",
            "own_values": True,
            "published": {"rows_of": "rates", "column": "printed", "keys": ["gpus"]},
            "recomputed": {
                "table": "scaling",
                "rows": {"ranks": {"column": "gpus"}},
                "value": "100 * rate_eff_run",
            },
        }
    ],
}
MAP = {
    "name": "small_rates",
    "parameters": {"ranks": {"column": "gpus"}},
    "scaling": "weak",
    "metrics": {
        "rate": {"column": "rate", "unit": "images/s", "better": "higher", "scope": "total"},
    },
    "ignore": ["printed"],
}  # fmt: skip


def write_study(gallery: Path, content: dict[str, Any], table: str = TABLE) -> None:
    """Write the study ``small``, with its table and map."""
    folder = gallery / "small"
    folder.mkdir(exist_ok=True)
    (folder / "table.csv").write_text(table)
    (folder / "map.yaml").write_text(yaml.safe_dump(MAP))
    (folder / "study.yaml").write_text(yaml.safe_dump(content))


def plotly_page(panels: dict[str, list[str]]) -> str:
    """A page with a figure of Plotly: the texts of the points of each of its parts."""
    share = 1 / len(panels)
    traces = [
        {"text": texts, "mode": "markers", "xaxis": "x" if place == 0 else f"x{place + 1}"}
        for place, texts in enumerate(panels.values())
    ]
    layout: dict[str, Any] = {
        f"xaxis{'' if place == 0 else place + 1}": {"domain": [place * share, (place + 1) * share]}
        for place in range(len(panels))
    }
    layout["annotations"] = [
        {"text": f"<b>{name}</b>", "x": (place + 0.5) * share, "xref": "paper"}
        for place, name in enumerate(panels)
    ]
    return f'<div>Plotly.newPlot("id", {json.dumps(traces)}, {json.dumps(layout)}, {{}})</div>'
