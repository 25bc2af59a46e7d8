"""The parts of a series' costs, from ledgers and from what probes say of the network."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.adaptive.advice_points import longest_wall
from scalesweep.analysis.network_fit import RING, fit_network, predicted_seconds
from scalesweep.analysis.prediction.forecast import predict, refusals
from scalesweep.analysis.step_account import STEPS, StepAccount
from scalesweep.analysis.table_io import read_table
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.prediction.table import prediction_rows
from scalesweep.core.plan_format import Plan
from scalesweep.report.export_tables import write_all
from scalesweep.table.declared import frame_of
from scalesweep.tables.cost_parts import COMPUTATION, EXCHANGE, OUTSIDE, REST
from scalesweep.tables.machine import Machine, Network, machine_of
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import MeasuredSeries, predictable
from scalesweep.tables.provenance import FACTS, facts_text
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.scaling import series_of
from scalesweep.tables.sweep_text import sweep_text
from scalesweep.tables.wall_times import wall_series, wall_times
from tests.fakes.plan import whole_plan
from tests.fakes.probes import note

COUNTS = (1, 2, 4, 8, 16, 32)
BATCH = 8
GRADIENTS = 1e6  # parameters, 4 bytes each
LATENCY, BANDWIDTH = 2e-5, 5e9
EPOCHS, OUTSIDE_S = 50, 2.0
SIZES = [2.0**k for k in range(10, 27, 2)]


def exchange(ranks: int, size: float = 4 * GRADIENTS) -> float:
    """Seconds that the planted network takes."""
    return float(predicted_seconds(RING, ranks, np.array([size]), LATENCY, BANDWIDTH)[0])


def account(ranks: int, unattributed: float) -> dict[str, Any]:
    """A step of 10 ms of computation, 1 ms of input, and the exchange."""
    busy, transfer = 0.011, exchange(ranks)
    return StepAccount(
        form=STEPS, steps=10, per_epoch=10, ranks=ranks, elapsed=busy + transfer + unattributed,
        input=0.001, compute=0.01, busy=None, persistent=0.0, alternating=0.0, transfer=transfer,
        barrier=0.0, mean_busy=busy, max_busy=busy, busiest=busy, slowest=0, slowest_input=0.0,
    ).to_json()  # fmt: skip


def campaign(
    ledger: bool = True,
    unattributed: float = 0.0,
    counts: Sequence[int] = COUNTS,
    pending: Sequence[int] = (),
    **fixed: Any,
) -> tuple[Plan, pd.DataFrame]:
    """A training experiment, and one that probed its network. Each run trains for ``EPOCHS`` and
    takes ``OUTSIDE_S`` more."""
    train, probe, rows = [], [], []
    base = {"source": "measured", "started": "2026-01-01", "repeat": 0, "warnings": None}
    for ranks in counts:
        run_id, one = f"t-{ranks}", account(ranks, unattributed)
        train.append({"run_id": run_id, "repeat": 0, "point": {"ranks": ranks}, "status": "done"})
        wall_s = OUTSIDE_S + EPOCHS * 10 * one["elapsed"]
        rows.append(base | {
            "run_id": run_id, "benchmark": "t", "samples": 10 * BATCH * ranks,
            FACTS: facts_text({"source": "measured", "wall_s": wall_s}),
            "_account": json.dumps(one) if ledger else None,
            "total_throughput_mean_init": ranks * BATCH / one["elapsed"] / 2,
            "total_throughput_mean_later": ranks * BATCH / one["elapsed"],
            "model_parameters_mean_run": GRADIENTS,
        })  # fmt: skip
    for ranks in pending:
        train.append({"run_id": f"t-{ranks}", "repeat": 0, "point": {"ranks": ranks}})
    for ranks in (2, 4, 8):
        run_id = f"p-{ranks}"
        seconds = np.array([[[exchange(ranks, size)]] * 3 for size in SIZES])
        said = {"notes": {"sweep": note(SIZES, SIZES, collective="allreduce")}}
        probe.append({"run_id": run_id, "repeat": 0, "point": {"ranks": ranks}, "status": "done"})
        sweep = sweep_text(said, {"sweep_seconds": seconds})
        rows.append(base | {"run_id": run_id, "benchmark": "p", "samples": None, "_sweep": sweep})
    settings = {"batch_size": BATCH, "ranks_per_node": 1, "epochs": EPOCHS, **fixed}
    summary = pd.DataFrame(rows)
    summary.attrs["metrics"] = {
        "t": {"model_parameters": {"unit": "parameters", "better": "lower", "scope": "rank"}}
    }
    experiments = [
        {"name": "train", "axes": ["ranks"], "runs": train, "scaling": "weak", "fixed": settings,
         "benchmark": "t"},
        {"name": "probe", "axes": ["ranks"], "runs": probe, "fixed": {"ranks_per_node": 1},
         "benchmark": "p", "ceiling": "network"},
    ]  # fmt: skip
    return whole_plan({"experiments": experiments}), summary


def series(plan: Plan, summary: pd.DataFrame) -> dict[str, MeasuredSeries]:
    data = ExperimentData(summary, plan["experiments"][0])
    groups = [[data.points()[i] for i in group] for group in series_of(data, data.points())]
    found = predictable(data, groups, machine_of(summary, plan))
    return {one.measure[1]: one for one in found}


def shares(one: MeasuredSeries) -> Mapping[str, Any]:
    parts = one.series.parts
    assert parts is not None
    return dict(zip(parts.names, parts.cost / one.series.cost, strict=True))


def test_parts_are_those_of_the_ledger_and_add_up() -> None:
    found = series(*campaign(unattributed=0.0005))
    later = found["later"]
    parts = later.series.parts
    assert parts is not None and parts.exchange == EXCHANGE
    assert parts.names == (COMPUTATION, "input", EXCHANGE, REST)
    assert parts.cost.sum(axis=0) == pytest.approx(later.series.cost)
    # By hand: rank-seconds of a sample are the step over the samples of a rank.
    assert parts.cost[0] == pytest.approx([0.01 / BATCH] * len(COUNTS))
    assert parts.cost[2] == pytest.approx([exchange(ranks) / BATCH for ranks in COUNTS])
    assert found["init"].series.parts is None


def test_what_the_ledger_has_too_much_of_is_taken_off_computation() -> None:
    later = series(*campaign(unattributed=-0.0005))["later"]
    own = shares(later)
    assert REST not in own
    assert own[COMPUTATION][0] == pytest.approx(0.0095 / 0.0105)


def test_the_collective_is_that_of_the_gradients_at_any_count() -> None:
    for ledger in (True, False):
        parts = series(*campaign(ledger))["later"].series.parts
        assert parts is not None and parts.collective is not None
        assert (parts.exchange is not None) == ledger
        many = np.array([64.0, 1024.0])
        wanted = [exchange(64) / BATCH, exchange(1024) / BATCH]
        assert parts.collective(many) == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(
    "fixed",
    [{"ranks_per_node": 4}, {"batch_size": None}, {"variable_update": "parameter_server"}],
)
def test_a_probe_of_something_else_says_nothing(fixed: dict[str, Any]) -> None:
    parts = series(*campaign(**fixed))["later"].series.parts
    assert parts is not None and parts.collective is None
    assert series(*campaign(ledger=False, **fixed))["later"].series.parts is None


def test_the_gradient_of_half_the_bytes() -> None:
    parts = series(*campaign(gradient_compression="fp16"))["later"].series.parts
    assert parts is not None and parts.collective is not None
    assert parts.collective(np.array([64.0])) == pytest.approx(
        exchange(64, 2 * GRADIENTS) / BATCH, rel=0.01
    )


def test_a_sum_by_parts_competes_and_names_the_part_that_grows() -> None:
    plan, summary = campaign(counts=(*COUNTS, 64))
    data = ExperimentData(summary, plan["experiments"][0])
    found = []
    for machine in (machine_of(summary, plan), Machine()):
        table = frame_of(prediction_rows(data, [data.points()], [128], machine))
        assert table is not None
        found.append(table.query("phase == 'later'").iloc[0])
    probed, blind = found
    assert probed["models"].startswith("parts, the exchange as probed")
    assert (probed["part"], probed["term"]) == (EXCHANGE, "collective")
    assert "sum of the parts of a step" in blind["models"]
    truth = 128 * BATCH / (0.011 + exchange(128))
    assert probed["value"] == pytest.approx(truth, rel=0.01)
    # Without the probe little shows that latency will grow with the ranks.
    assert blind["value"] > 1.05 * truth
    assert probed["low"] < truth < probed["high"]


@pytest.mark.parametrize("ledger", [True, False])
def test_wall_times_have_the_parts_of_their_epochs(ledger: bool) -> None:
    plan, summary = campaign(ledger)
    data = ExperimentData(summary, plan["experiments"][0])
    walls = wall_series(data, data.points(), wall_times(data), machine_of(summary, plan))
    parts = walls.parts
    assert parts is not None and parts.collective is not None
    own = dict(zip(parts.names, parts.cost, strict=True))
    assert own[OUTSIDE] == pytest.approx([OUTSIDE_S] * len(COUNTS))
    assert parts.cost.sum(axis=0) == pytest.approx(walls.cost)
    steps = 10 * EPOCHS
    if ledger:
        assert parts.names == (COMPUTATION, "input", EXCHANGE, OUTSIDE)
        assert own[EXCHANGE] == pytest.approx([steps * exchange(ranks) for ranks in COUNTS])
    assert parts.collective(np.array([64.0])) == pytest.approx(steps * exchange(64), rel=0.01)


def test_wall_times_of_unknown_epochs_have_none() -> None:
    plan, summary = campaign(epochs=None)
    data = ExperimentData(summary, plan["experiments"][0])
    walls = wall_series(data, data.points(), wall_times(data), machine_of(summary, plan))
    assert walls.parts is None and len(walls.cost) == len(COUNTS)


def test_predicted_runtimes_know_the_network_as_predicted_rates_do() -> None:
    plan, summary = campaign(counts=(*COUNTS, 64), pending=[128])
    found = []
    for machine in (machine_of(summary, plan), Machine()):
        tables = make_tables(summary, plan, machine=machine)["train"]
        found.append(tables["runtimes"].iloc[0])
    probed, blind = found
    truth = OUTSIDE_S + EPOCHS * 10 * (0.011 + exchange(128))
    assert probed["expected_s"] == pytest.approx(truth, rel=0.01)
    assert probed["low_s"] < truth < probed["high_s"]
    assert abs(blind["expected_s"] - truth) > 2 * abs(probed["expected_s"] - truth)


def test_written_runtimes_know_the_network_where_there_is_no_ledger(tmp_path: Path) -> None:
    plan, summary = campaign(ledger=False, counts=(*COUNTS, 64), pending=[128])
    write_all(summary, plan, tmp_path / "runs", tmp_path / "tables")
    written = read_table(tmp_path / "tables" / "train" / "runtimes.parquet").iloc[0]
    data = ExperimentData(summary, plan["experiments"][0])
    points = [point for point in data.points() if point.rows.size]
    walls = wall_series(data, points, wall_times(data), machine_of(summary, plan))
    assert walls.parts is not None
    low, high = predict(walls, [128.0]).interval()
    assert written[["low_s", "high_s"]].tolist() == pytest.approx([low[0], high[0]])
    # What advice charges for a run there is of the same prediction, at a lower level.
    assert walls.cost[-1] < longest_wall(walls, 128) < high[0]


def fitted(layout: Layout, counts: Sequence[int], latency: float) -> Network:
    """A network that was probed on so many ranks."""
    ranks, sizes = np.repeat(np.array(counts, np.float64), len(SIZES)), np.tile(SIZES, len(counts))
    seconds = [
        float(predicted_seconds(RING, int(p), np.array([size]), latency, BANDWIDTH)[0])
        for p, size in zip(ranks, sizes, strict=True)
    ]
    return Network(layout, {}, fit_network(ranks, sizes, np.array(seconds)), "probe")


def test_a_probe_of_several_nodes_is_the_exchange_beyond_a_node() -> None:
    plan, summary = campaign(ledger=False, counts=(1, 2, 4, 8), ranks_per_node=8)
    data = ExperimentData(summary, plan["experiments"][0])
    groups = [[data.points()[i] for i in group] for group in series_of(data, data.points())]
    within = fitted(Layout(8, 8), (2, 4, 8), LATENCY)
    across = fitted(Layout(32, 8), (16, 32), 50 * LATENCY)

    def later(*networks: Network) -> MeasuredSeries:
        found = predictable(data, groups, Machine(networks=networks))
        return next(one for one in found if one.measure[1] == "later")

    here, both = later(within).series, later(within, across).series
    assert "measure 16 ranks on two nodes" in refusals(here, [16])[0]
    assert refusals(both, [16]) == [""]
    assert both.parts is not None and both.parts.collective is not None
    assert both.parts.probed_to == 32
    slow = predicted_seconds(RING, 16, np.array([4 * GRADIENTS]), 50 * LATENCY, BANDWIDTH)[0]
    near, far = both.parts.collective(np.array([8.0, 16.0]))
    assert near == pytest.approx(exchange(8) / BATCH, rel=0.02)
    assert far == pytest.approx(slow / BATCH, rel=0.02)
    # The step is that of the probe: computation, input and the slower exchange.
    cost = predict(both, [16.0]).cost[0]
    assert cost == pytest.approx((0.011 + slow) / BATCH, rel=0.1)
    assert cost > 1.5 * both.cost[-1]
