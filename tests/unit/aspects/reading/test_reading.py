"""What was read against what plain reads reach: table, finding and figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.reading.figure import reading_figures
from scalesweep.aspects.reading.findings import against_reads
from scalesweep.aspects.reading.table import readings
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.read_ceilings import read_ceilings, state_of
from tests.fakes.finding_rows import only
from tests.fakes.plan import whole_plan

CEILINGS = {"warm": [4e9, 4.2e9, 4.1e9], "cold": [1e9, 0.99e9, 0.98e9]}


def campaign(
    rates: Mapping[str, Sequence[float]],
    fixed: Mapping[str, Any],
    ceiling: Mapping[str, Any] | None = None,
    read_again: Mapping[str, float] | None = None,
    parameter: str = "pipeline",
) -> tuple[dict[str, ExperimentResults], Any, pd.DataFrame]:
    """An experiment `io` over a parameter, and one of the ceilings of reading."""
    rows: list[dict[str, Any]] = []
    io, files = [], []

    def add(where: list[Any], point: dict[str, Any], repeat: int, **values: Any) -> None:
        run_id = f"r{len(rows)}"
        where.append({"run_id": run_id, "repeat": repeat, "point": point, "status": "done"})
        rows.append({"run_id": run_id, "source": "measured", "samples": pd.NA, "started": None,
                     "warnings": None, "repeat": repeat, **values})  # fmt: skip

    for name, values in rates.items():
        for repeat, value in enumerate(values):
            more = {"read_rate_mean_init": value / 2, "read_rate_mean_later": value}
            if read_again:
                more["bytes_read_per_byte_mean_run"] = read_again.get(name, 1.0)
            add(io, {parameter: name}, repeat, benchmark="input_pipeline", **more)
    for state, values in CEILINGS.items():
        for repeat, value in enumerate(values):
            add(files, {"cache": state}, repeat, benchmark="file_read", best_mean_run=value)
    parameters = {parameter: {}, "cache": {"workload": True}}
    plan = whole_plan(
        {
            "experiments": [
                {"name": "io", "benchmark": "input_pipeline", "axes": [parameter], "runs": io,
                 "fixed": {"ranks": 2, "ranks_per_node": 2, **fixed}, "parameters": parameters},
                {"name": "files", "benchmark": "file_read", "axes": ["cache"], "runs": files,
                 "fixed": {"ranks": 1, **(ceiling or {})}, "parameters": parameters,
                 "main_metric": "best", "ceiling": "files"},
            ]
        }
    )  # fmt: skip
    summary = pd.DataFrame(rows)
    meaning = {"unit": "1", "better": "lower", "scope": "total"}
    summary.attrs["metrics"] = {
        "input_pipeline": {"bytes_read_per_byte": meaning},
        "file_read": {"best": {"unit": "bytes/s", "better": "higher", "scope": "total"}},
    }
    tables = make_tables(summary, plan)
    entries = plan["experiments"]
    return {e["name"]: ExperimentResults(e, tables[e["name"]]) for e in entries}, plan, summary


SLOW = {"serial": [1e8, 1.1e8, 1.05e8], "combined": [3e8, 3.1e8, 3.05e8]}


def test_a_share_is_of_the_ceiling_in_the_same_state_on_as_many_nodes() -> None:
    studies, plan, summary = campaign(SLOW, {"page_cache": "cold"})
    assert [(one.state, one.nodes) for one in read_ceilings(summary, plan)] == [
        ("warm", 1), ("cold", 1),
    ]  # fmt: skip
    first, best = readings(studies["io"])
    assert (first.state, first.phase, first.where) == ("cold", "later", "files")
    assert best.ceiling == pytest.approx(1e9) and best.share.value == pytest.approx(0.305)
    assert best.share.low is not None and best.share.high is not None
    # The ceiling's own scatter is in it: up to 16 % above the best run, against ±1.6 % of the rate.
    assert best.share.low < 0.27 and 0.315 < best.share.high < 0.33
    assert readings(studies["io"], "init")[1].share.value == pytest.approx(0.1525)
    assert studies["files"].rows("reading") == []
    # On other numbers of nodes nothing is known.
    other, *_ = campaign(SLOW, {"page_cache": "cold"}, {"ranks": 2})
    assert readings(other["io"]) == []


def test_what_the_page_cache_holds() -> None:
    assert state_of({"page_cache": "cold"}, "later") == "cold"
    assert state_of({"drop_page_cache": True}, "init") == "cold"
    assert state_of({"drop_page_cache": False}, "init") is None
    assert state_of({"drop_page_cache": True}, "later") == "warm"
    assert state_of({"ranks": 1}, "later") is None


def test_groups_without_a_sentence_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalesweep.aspects.reading.findings.MOST", 0)
    note = only(against_reads(campaign(SLOW, {"page_cache": "cold"})[0]["io"]))
    assert note.text.startswith("1 more combination of workload and page cache: only in the table")
    assert note.level == "note" and not note.claims


def test_findings_say_what_limits_the_rate() -> None:
    slow = only(against_reads(campaign(SLOW, {"page_cache": "cold"})[0]["io"]))
    assert slow.level == "confirmed"
    assert slow.text.startswith("At best samples are read at the rate of 0.305 [")
    assert "(later epochs, pipeline combined), 30 [" in slow.text
    assert "of what plain reads reach from a cold page cache (1 GB/s)" in slow.text
    assert slow.text.endswith(
        "; the least is 10.5 %, pipeline serial: the pipeline's own work limits the rate, not the "
        "files."
    )
    fast = {"serial": [9.4e8, 9.5e8, 9.6e8], "combined": [9.5e8, 9.6e8, 9.7e8]}
    limited = only(against_reads(campaign(fast, {"page_cache": "cold"})[0]["io"]))
    assert limited.text.endswith(": files limit the rate, not the pipeline.")
    between = {"serial": [6e8, 6.5e8, 5.5e8], "combined": [6.2e8, 6.5e8, 6.6e8]}
    neither = only(against_reads(campaign(between, {"page_cache": "cold"})[0]["io"]))
    assert "limit" not in neither.text
    single, *_ = campaign({"serial": [1e8], "combined": [3e8]}, {"page_cache": "cold"})
    unsure = only(against_reads(single["io"]))
    assert unsure.level == "open" and "no interval, not confirmed" in unsure.text


def test_what_comes_from_a_cache_of_the_pipeline_is_not_read() -> None:
    rates = {**SLOW, "cached": [9e9, 9.1e9, 9.2e9]}
    studies, *_ = campaign(rates, {"page_cache": "warm"}, read_again={"cached": 0.0})
    assert [one.from_files for one in readings(studies["io"])] == [True, True, False]
    finding = only(against_reads(studies["io"]))
    assert "pipeline combined" in finding.text and "cached" not in finding.text
    (drawing,) = reading_figures(studies["io"])
    assert drawing.name == "reading" and "3 points" in drawing.alt


def test_imported_ceilings_count_only_where_none_was_measured() -> None:
    _, plan, summary = campaign(SLOW, {"page_cache": "cold"})
    place = summary["benchmark"] == "file_read"
    summary.loc[place, "source"] = np.where(
        summary.loc[place, "repeat"] == 0, "measured", "imported"
    )
    summary.loc[place & (summary["source"] == "measured"), "best_mean_run"] = 5e8
    found = {one.state: one for one in read_ceilings(summary, plan)}
    assert (found["cold"].best.value, found["cold"].where) == (5e8, "files")
    summary.loc[place, "source"] = "imported"
    assert {one.where for one in read_ceilings(summary, plan)} == {"files (imported)"}


def test_no_table_without_ceilings() -> None:
    _, plan, summary = campaign(SLOW, {"page_cache": "cold"})
    entry, *_ = plan["experiments"]
    tables = make_tables(summary, {**plan, "experiments": [entry]})
    assert "reading" not in tables["io"]


def test_a_parameter_of_a_column_s_name_steps_aside() -> None:
    studies, *_ = campaign(SLOW, {"page_cache": "cold"}, parameter="state")
    results = studies["io"]
    names = list(results.tables["reading"])  # type: ignore[arg-type]
    assert names[:6] == ["parameter_state", "source", "repeats", "planned", "phase", "state"]
    assert [(row.point, row.state) for row in readings(results)] == [
        ({"state": "serial"}, "cold"), ({"state": "combined"}, "cold"),
    ]  # fmt: skip
    assert "state combined" in only(against_reads(results)).text
