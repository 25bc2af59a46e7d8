"""A table's import without the command, up to its tables."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from scalesweep.analysis.table_io import write_parquet, write_tables
from scalesweep.aspects.make_tables import make_tables
from scalesweep.config.campaign import load_campaign
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.importers.made_benchmark import make_benchmark
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import runs_of
from scalesweep.importers.write_campaign import Rules, campaign_of, former_rules, write_campaign
from scalesweep.planning.plan import build_plan
from scalesweep.state.run_state import scan
from scalesweep.tables.summary import build_summary
from tests.fakes.imported_runs import import_runs

# Layouts of three scales: rates of a rank fall with tp; one of each scale failed.
LAYOUTS: dict[str, Any] = {
    "name": "sweep",
    "parameters": {name: {"column": name} for name in ("ranks", "dp", "tp")},
    "metrics": {
        "tokens_per_second": {
            "column": "rate", "unit": "tokens/s", "better": "higher", "scope": "rank"
        },
    },
    "failed": {"column": "status", "values": {"oom": "GPU_OUT_OF_MEMORY"}},
    "mesh": {"dp": "dp", "tp": "tp"},
}  # fmt: skip
LAYOUT_ROWS = "ranks,dp,tp,rate,status\n" + "".join(
    f"{ranks},{ranks // tp},{tp},{f'{best / tp},ok' if tp < 8 else ',oom'}\n"
    for ranks, best in ((8, 100), (16, 90), (32, 60))
    for tp in (1, 2, 4, 8)
)


def imported(
    folder: Path, text: str, content: dict[str, Any]
) -> tuple[Mapping[str, Any], PlanExperiment, dict[str, pd.DataFrame]]:
    """The only experiment of a table's import: in the campaign file, in the plan, its tables."""
    spec, plan, summary = _imported(folder, text, content)
    (entry,) = plan["experiments"]
    return spec, entry, make_tables(summary, plan)[entry["name"]]


def write_imported(folder: Path, text: str, content: dict[str, Any]) -> Path:
    """What a page of a table's import is made of, but for figures (``tests.fakes.pages.render``
    draws them); returns the folder."""
    _, plan, summary = _imported(folder, text, content)
    (folder / "plan.json").write_text(json.dumps(plan))
    write_parquet(summary, folder / "summary.parquet", {})
    write_tables(make_tables(summary, plan), folder / "tables")
    return folder


def _imported(
    folder: Path, text: str, content: dict[str, Any]
) -> tuple[Mapping[str, Any], Plan, pd.DataFrame]:
    (folder / "table.csv").write_text(text)
    (folder / "map.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    table_map = load_map(folder / "map.yaml", folder / "table.csv")
    table = runs_of(table_map)
    file = table_map.file
    made = make_benchmark(folder, file.name, table.made)
    written, refused = import_runs(table.runs, folder / "runs" / "imported")
    assert not refused and not table.refusals
    derive = {name: expression.text for name, expression in table_map.derive.items()}
    rules = {made.name: Rules(file.scaling or "", derive)}
    campaign = campaign_of(written, rules, "imported", str(folder))
    known = former_rules(campaign, [])[made.name]
    assert (known.stated, known.derive) == (file.scaling or "none", derive)
    write_campaign(campaign, folder / "campaign.yaml")
    loaded = load_campaign(folder / "campaign.yaml")
    runs = loaded.unique_runs()
    assert set(runs) == {run.run_id for run in written}
    plan = build_plan(loaded, scan(loaded.runs_folder, runs))
    records = [loaded.runs_folder / run_id / "record.json" for run_id in runs]
    (spec,) = campaign["experiments"].values()
    return spec, plan, build_summary(records)
