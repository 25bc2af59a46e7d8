"""Borders that a series' points and the site's file tell, and series that have crossed them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.prediction.topology import Border
from scalesweep.analysis.table_io import read_table
from scalesweep.aspects.prediction.table import prediction_rows
from scalesweep.core.plan_format import read_plan
from scalesweep.table.declared import frame_of
from scalesweep.tables.borders import borders_of
from scalesweep.tables.machine import Machine
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import predictable
from scalesweep.tables.scaling import series_of
from scalesweep.tables.witnesses import (
    KEPT,
    campaign_series,
    keep_series,
    predicting_machine,
    read_series,
)
from tests.fakes.results import Fake, make_results

TO_8 = [1, 2, 4, 8]


def data_of(root: Path, fake: Fake) -> ExperimentData:
    make_results(root, [fake])
    (entry,) = read_plan(root / "plan.json")["experiments"]
    return ExperimentData(read_table(root / "summary.parquet"), entry)


def on_nodes_of(per_node: int, **more: Any) -> Fake:
    axes = more.pop("axes", {"ranks": TO_8})
    return Fake("e", axes, "weak", linked={"ranks_per_node": lambda p: per_node}, **more)


@pytest.mark.parametrize(
    ("per_node", "machine", "wanted"),
    [
        (8, Machine(), [("node", 8)]),
        (8, Machine(islands=2, switch_group=4), [("island", 4), ("node", 8), ("switch group", 32)]),
        (8, Machine(islands=3), [("node", 8)]),  # ranks cannot be divided evenly
        (1, Machine(islands=2), [("node", 1)]),
    ],
)
def test_borders_are_those_of_the_points_and_the_site(
    tmp_path: Path, per_node: int, machine: Machine, wanted: list[tuple[str, int]]
) -> None:
    data = data_of(tmp_path, on_nodes_of(per_node))
    assert borders_of(data, data.points(), machine) == tuple(Border(*one) for one in wanted)


def test_devices_of_a_table_that_states_its_nodes(tmp_path: Path) -> None:
    """Scaling over gpus: each is a rank, which those of one process with several are not."""
    data = data_of(tmp_path, on_nodes_of(8))
    points = [
        replace(one, values={**one.values, "gpus": one.values["ranks"]}) for one in data.points()
    ]
    of_gpus = ExperimentData(data.summary, {**data.experiment, "scale": "gpus"})
    assert borders_of(of_gpus, points, None) == (Border("node", 8),)
    of_one = [replace(one, values={**one.values, "ranks": 1}) for one in points]
    assert borders_of(of_gpus, of_one, None) is None


def test_nodes_that_points_fill_differently(tmp_path: Path) -> None:
    # All of them on one node: its size is not known. Of several, that of the largest.
    fake = Fake("e", {"ranks": TO_8}, "weak", linked={"ranks_per_node": lambda p: p["ranks"]})
    data = data_of(tmp_path / "a", fake)
    assert borders_of(data, data.points(), None) is None
    fake = Fake(
        "e", {"ranks": TO_8}, "weak", linked={"ranks_per_node": lambda p: min(p["ranks"], 4)}
    )
    data = data_of(tmp_path / "b", fake)
    assert borders_of(data, data.points(), None) == (Border("node", 4),)


def test_imported_points_that_state_no_nodes_are_not_believed(tmp_path: Path) -> None:
    data = data_of(tmp_path, on_nodes_of(1, source="imported"))
    assert borders_of(data, data.points(), None) is None


def crossing(point: dict[str, Any]) -> float:
    """A slower machine beyond a node of 4."""
    return 0.8 if point["ranks"] > 4 else 1.0


def test_another_series_of_the_experiment_tells_the_step(tmp_path: Path) -> None:
    def fate(point: dict[str, Any], repeat: int) -> str:
        return "new" if point["batch_size"] == 2 and point["ranks"] > 4 else "done"

    axes = {"ranks": [1, 2, 4, 8, 16], "batch_size": [1, 2]}
    fake = on_nodes_of(4, axes=axes, fate=fate, speed=crossing)
    data = data_of(tmp_path, fake)
    points = data.points()
    groups = [[points[i] for i in group] for group in series_of(data, points)]
    found = [one for one in predictable(data, groups) if one.measure[1] == "later"]
    assert [len(one.series.similar) for one in found] == [1, 1]
    table = frame_of(prediction_rows(data, groups, [8, 16, 32]))
    assert table is not None
    rows = table.query("phase == 'later' and batch_size == 2").set_index("ranks")
    assert not rows["refused"].notna()[8] and not rows["refused"].notna()[16]
    assert rows["efficiency"][8] == pytest.approx(0.8, rel=0.05)
    assert "no measured count does" in rows["refused"][32]  # which the other has not reached
    (alone,) = ([one for one in groups if one[0].values["batch_size"] == 2],)
    table = frame_of(prediction_rows(data, alone, [8]))
    assert table is not None
    assert table["refused"].str.contains("measure 8 ranks on two nodes").all()


def two_experiments(root: Path) -> tuple[Any, Any]:
    """``near`` has been measured on one node, ``far`` across the border at less speed."""
    near = Fake("near", {"ranks": [1, 2, 4]}, "weak", linked={"ranks_per_node": lambda p: 4},
                predict=[8])  # fmt: skip
    far = Fake("far", {"ranks": [2, 4, 8, 16]}, "weak",
               linked={"ranks_per_node": lambda p: 4, "batch_size": lambda p: 2},
               speed=crossing)  # fmt: skip
    make_results(root, [near, far])
    return read_plan(root / "plan.json"), read_table(root / "summary.parquet")


def predicted(summary: Any, plan: Any, machine: Machine) -> Any:
    data = ExperimentData(summary, plan["experiments"][0])
    points = data.points()
    groups = [[points[i] for i in group] for group in series_of(data, points)]
    table = frame_of(prediction_rows(data, groups, [8, 16], machine))
    assert table is not None
    return table.query("phase == 'later'").set_index("ranks")


def test_another_experiment_of_the_campaign_tells_the_step(tmp_path: Path) -> None:
    plan, summary = two_experiments(tmp_path)
    rows = predicted(summary, plan, predicting_machine(summary, plan))
    assert rows["refused"].isna().all()
    assert rows["efficiency"][8] == pytest.approx(0.8, rel=0.08)
    # Of another kind of scaling, of nodes filled differently, or imported, it tells nothing.
    changes: list[dict[str, Any]] = [
        {"scaling": "strong"}, {"per_node": 2}, {"source": "imported"}, {"benchmark": "nt3"},
        {"transport": {"hierarchical_allreduce": True}},
    ]  # fmt: skip
    for change in changes:
        known = predicting_machine(summary, plan)
        known = replace(known, series=[replace(one, **change) for one in known.series])
        alone = predicted(summary, plan, known)
        refused = "transport" not in change  # which the points do not state
        assert alone["refused"].notna().all() == refused, change


def test_another_campaign_of_the_folder_tells_the_step(tmp_path: Path) -> None:
    plan, summary = two_experiments(tmp_path / "a")
    kept = tmp_path / KEPT
    other = {**plan, "campaign": "earlier", "experiments": plan["experiments"][1:]}
    keep_series(other, campaign_series(summary, other), kept)
    near = {**plan, "experiments": plan["experiments"][:1], "results": str(tmp_path)}
    machine = predicting_machine(summary, near)
    assert {one.campaign for one in machine.series} == {"", "earlier"}
    assert predicted(summary, near, machine)["refused"].isna().all()
    named = {**near, "results": "", "ceilings": str(tmp_path)}  # by the site
    assert {one.campaign for one in predicting_machine(summary, named).series} == {"", "earlier"}
    # Measured again the campaign's series take the place of the earlier ones.
    before = kept.read_text()
    keep_series(other, campaign_series(summary, other), kept)
    assert kept.read_text() == before
    keep_series(other, [], kept)
    assert not read_series(kept)
    kept.write_text(before)
    # The same runs in two campaigns tell once, those of another site nothing.
    keep_series({**other, "campaign": "copy"}, campaign_series(summary, other), kept)
    assert len(predicting_machine(summary, near).series) == len(machine.series)
    elsewhere = predicting_machine(summary, {**near, "site": "elsewhere"})
    assert {one.campaign for one in elsewhere.series} == {""}


def test_lines_that_are_no_series_are_left_out(tmp_path: Path) -> None:
    plan, summary = two_experiments(tmp_path)
    kept = tmp_path / KEPT
    keep_series(plan, campaign_series(summary, plan), kept)
    good = read_series(kept)
    first = json.loads(kept.read_text().splitlines()[0])
    bad = [
        {**first, "rates": [1.0]}, {**first, "ranks": [4, 2, 1]}, {**first, "per_node": "4"},
        {**first, "rates": [float("nan")] * len(first["ranks"])}, {**first, "extra": 1}, [], 7,
        {**first, "measure": "rate"}, {**first, "rates": [0.0] * len(first["ranks"])},
    ]  # fmt: skip
    kept.write_text(kept.read_text() + "".join(json.dumps(one) + "\n" for one in bad) + "{\n")
    assert read_series(kept) == good
    # The file is made again without them.
    keep_series({**plan, "campaign": "other"}, campaign_series(summary, plan), kept)
    assert len(read_series(kept)) == 2 * len(good)
    assert read_series(tmp_path) == [] and read_series(tmp_path / "none") == []
