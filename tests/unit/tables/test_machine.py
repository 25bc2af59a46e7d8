"""Of which the machine explains: by hand, in the ledger, the figure and what is said of it."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.exchange import Exchange, exchange_seconds
from scalesweep.analysis.network_fit import RING, fit_network, message_seconds, predicted_seconds
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.steps.machine import against_machine
from scalesweep.core.paths import REPO
from scalesweep.core.plan_format import write_plan_file
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import exchange_of, exchanged_by
from scalesweep.tables.machine import known_machine, machine_of
from scalesweep.tables.summary import write_summary
from tests.fakes import finding_rows
from tests.fakes.campaigns import SIZES, Campaign, exchange
from tests.unit.aspects.steps.test_efficiency import noisy

# docs/reference/step_causes.md works with these numbers.
LATENCY, BANDWIDTH = 1e-3, 2e9  # s, bytes/s
TENSORS, FUSION = [10_000_000] * 6, 15e6
FLOPS, BYTES = 400e9, 80e9  # of a node
LAYERS = [("conv", "conv2d", 6e9, 120e6), ("norm", "batch_norm", 75e6, 300e6)]
WEIGHTS = 15_000_000  # of 4 bytes each: the tensors
READ, STEP_BYTES = 2e9, 8e6
MODEL = {"model": "net", "batch_size": 32}


def campaign(
    large: Mapping[str, float] | None = None,
    *,
    probes: str = "network compute memory files layers",
    tensors: Sequence[int] = TENSORS,
    fusion: float | None = FUSION,
    cycle_ms: float | None = 1.0,
    seed: int = 3,
    repeats: int = 5,
    weights: int = WEIGHTS,
    per_node: int = 4,
) -> Campaign:
    """Training on 1 and 4 ranks of a node, and the probes of its machine that are named."""
    ms = {"input": 9.0, "compute": 100.0, "transfer": 90.0} if large is None else large
    here, there = noisy(4, repeats, seed, **ms), noisy(1, repeats, seed, input=2, compute=80)
    parts = {"model_parameters_mean_run": float(weights), "_exchange": None}
    # An account's epoch has 10 steps.
    points = [
        ({"ranks": 1}, there, {**parts, "samples": 320, "bytes": 10 * STEP_BYTES / 4}),
        ({"ranks": 4}, here, {**parts, "samples": 4 * 320, "bytes": 10 * STEP_BYTES,
                              "_exchange": exchange(tensors, fusion, cycle_ms)}),
    ]  # fmt: skip
    made = Campaign(seed).training(points, ranks_per_node=per_node, **MODEL)
    named = probes.split()
    scatter = (0.996, 0.998, 1.0)
    if "network" in named:
        made.network(LATENCY, BANDWIDTH, ranks_per_node=4)
    if "compute" in named:
        made.rates("compute", "compute", [FLOPS * each for each in scatter])
    if "memory" in named:
        made.rates("memory", "memory", [BYTES * each for each in scatter])
    if "files" in named:
        made.rates("files", "files", [READ * each for each in scatter], pattern="sequential")
        made.rates("cached", "files", [READ * 9] * 2, pattern="sequential", cache="warm")
        made.rates("random", "files", [READ * 9] * 2, pattern="random")
    if "layers" in named:
        made.layers(LAYERS, WEIGHTS, **MODEL)
    return made


def rows_of(study: ExperimentResults, kind: str = "ledger", ranks: int = 4) -> dict[str, Any]:
    return {
        row["term"]: row
        for row in study.rows("efficiency")
        if row["kind"] == kind and row["ranks"] == ranks
    }


COMPUTATION, EXCHANGE, READING = "compute", "transfer", "input"


def said(study: ExperimentResults, term: str) -> list[Any]:
    return [f for f in finding_rows.said(against_machine(study)) if f.evidence["term"] == term]


# --- what is sent, and how long it takes ---


def test_tensors_are_fused_from_the_last_to_the_first_up_to_the_threshold() -> None:
    sent = Exchange("horovod", [30, 10, 5, 70, 20, 20], 50, None)
    assert sent.messages == [40, 70, 45]
    assert Exchange("horovod", [30, 10, 5], 0, None).messages == [5, 10, 30]
    assert Exchange("horovod", [30, 10, 5], 64, None).messages == [45]
    assert sent.total == 155


def test_a_message_takes_what_the_formula_says_and_bounds_hold_it() -> None:
    """40 fits of 2 and 4 ranks at 5 % noise: messages within and between the measured sizes."""
    sizes = np.array(SIZES, float)
    inside = wide = total = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        ranks = np.repeat([2.0, 4.0], len(sizes) * 3)
        every = np.tile(sizes, 6)
        ideal = np.concatenate(
            [predicted_seconds(RING, n, np.tile(sizes, 3), LATENCY, BANDWIDTH) for n in (2, 4)]
        )
        fits = fit_network(ranks, every, ideal * (1 + 0.05 * draw.standard_normal(len(ideal))))
        for size in (3e3, 1e6, 9e6):
            planted = float(predicted_seconds(RING, 4, np.array([size]), LATENCY, BANDWIDTH)[0])
            found = message_seconds(fits, 4, size)
            assert found is not None
            total += 1
            inside += found.low <= planted <= found.high
            wide += found.high > 1.3 * found.low
    assert inside >= 0.9 * total
    assert wide <= 0.1 * total
    assert message_seconds(fits, 4, 100 * sizes[-1]) is None
    assert message_seconds(fits, 1, 100) is None
    assert exchange_seconds(fits, 4, []) is None
    assert exchange_seconds([], 4, [100]) is None


def test_records_without_an_exchange_say_nothing() -> None:
    assert exchange_of({}) is None
    assert exchange_of({"notes": {"exchange": None}}) is None
    assert exchange_of({"notes": {"exchange": {"by": "horovod", "tensor_bytes": None}}}) is None


# --- the ledger ---


def test_the_worked_example_of_what_the_machine_explains() -> None:
    rows = rows_of(campaign().study(), "machine")
    # A ring of 4: 6 x 1 ms + 1.5 x 10 MB / (2 GB/s) = 13.5 ms for each of six messages.
    assert rows["transfer"]["machine"] == pytest.approx(81, rel=0.02)
    assert rows["transfer"]["machine_low"] < 81 < rows["transfer"]["machine_high"]
    # A rank has a quarter of 400 GFLOP/s and 80 GB/s: 60 + 15 ms, and 9 ms for the update.
    assert rows["compute"]["machine"] == pytest.approx(84, rel=1e-3)
    assert rows["compute"]["value"] == pytest.approx(0.84, rel=0.03)
    assert rows["compute"]["low"] < 0.84 < rows["compute"]["high"]
    assert rows["input"]["machine"] == pytest.approx(4, rel=1e-3)
    assert {row["machine_from"] for row in rows.values()} == {"network", "layers", "files"}
    page = (REPO / "docs" / "reference" / "step_causes.md").read_text()
    for term, own, least in (("input", 9, 4), ("computation", 100, 84), ("transfer", 90, 81)):
        assert f"| {term} | {own} | {least} |" in page


@pytest.mark.parametrize(
    ("probes", "lacking"),
    [
        ("compute memory files layers", "transfer"),
        ("network compute memory files", "compute"),
        ("network memory files layers", "compute"),
        ("network compute memory layers", "input"),
        ("", "transfer"),
    ],
)
def test_without_a_probe_nothing_is_explained(probes: str, lacking: str) -> None:
    study = campaign(probes=probes).study()
    assert lacking not in rows_of(study, "machine")
    assert said(study, lacking) == []
    assert len(said(campaign().study(), lacking)) == 1


def test_what_is_not_the_same_is_not_held_against_it() -> None:
    """Another network of the same name, another layout, another batch, unknown settings."""
    assert "compute" not in rows_of(campaign(weights=WEIGHTS + 1).study(), "machine")
    assert "transfer" not in rows_of(campaign(per_node=2).study(), "machine")
    assert "transfer" not in rows_of(campaign(fusion=None).study(), "machine")
    made = campaign(probes="compute memory").layers(LAYERS, WEIGHTS, model="net", batch_size=16)
    assert "compute" not in rows_of(made.study(), "machine")
    far = [10**9] * 60  # far beyond the sizes that were measured
    assert "transfer" not in rows_of(campaign(tensors=far).study(), "machine")


# --- findings, both ways ---


@pytest.mark.slow
def test_computation_below_its_ceilings_is_named_and_at_them_it_is_not_confirmed() -> None:
    (finding,) = said(campaign().study(), COMPUTATION)
    assert finding.state == "clear"
    assert finding.sentence.startswith("At 4 ranks: computation reaches 83 [80, 85] % of what its")
    at_them = {"compute": 84.0, "transfer": 5.0}
    levels = [
        one.state
        for seed in range(20)
        for one in said(
            campaign(at_them, seed=seed, probes="compute memory layers").study(), COMPUTATION
        )
    ]
    assert levels.count("clear") <= 2
    (beyond,) = said(campaign({"compute": 60.0, "transfer": 5.0}).study(), COMPUTATION)
    assert beyond.state == "note"
    assert "faster than the measured ceilings allow" in beyond.sentence
    (alone,) = said(campaign(repeats=1).study(), COMPUTATION)
    assert alone.state == "open"
    assert "it has no interval" in alone.reason


def test_a_small_fusion_buffer_is_named_and_a_slow_network_is_not() -> None:
    """One message of 60 MB takes 6 + 45 ms, six of 10 MB 81 ms."""
    study = campaign().study()
    (finding,) = said(study, EXCHANGE)
    assert finding.state == "clear"
    assert finding.sentence == (
        "At 4 ranks: the exchange reaches 55.0 [53.5, 56.4] % of what one message could: 92.60 ms "
        "a step, 50.90 ms would do; messages are too small."
    )
    assert finding.next == "let tensors be sent together up to 58 MiB or more"
    (row,) = study.rows("exchange")
    assert (row["messages"], row["tensors"], row["message_bytes"]) == (6, 6, 60_000_000)
    # In one message as fast as the network: nothing to say.
    whole = {"compute": 100.0, "transfer": 52.0}
    assert said(campaign(whole, fusion=128e6).study(), EXCHANGE) == []
    # Much slower than the network, in one message: no reason is known.
    slow = {"compute": 100.0, "transfer": 90.0}
    (finding,) = said(campaign(slow, fusion=128e6).study(), EXCHANGE)
    assert finding.state == "clear"
    assert finding.sentence.endswith("would do.") and finding.next == ""
    # A cycle that is as long as what is lost.
    (finding,) = said(campaign(slow, fusion=128e6, cycle_ms=30.0).study(), EXCHANGE)
    assert "tensors wait for the cycle" in finding.sentence
    # Of one repeat no cause is named.
    (finding,) = said(campaign(repeats=1).study(), EXCHANGE)
    assert finding.state == "open"
    assert "too small" not in finding.sentence
    # A transfer that hardly matters.
    assert said(campaign({"compute": 9000.0, "transfer": 90.0}).study(), EXCHANGE) == []


def test_another_librarys_messages_are_no_measure_of_the_network() -> None:
    """A probe through Horovod says nothing of what torch.distributed could do. What does not say
    what carries it is compared, as before."""
    horovod, torch = "horovod over gloo", "torch.distributed over gloo"
    for training, compared in ((torch, False), (horovod, True), (None, True)):
        summary, plan = campaign().done()
        probe = summary["_sweep"].notna()
        summary["_exchanged_by"] = np.where(probe, f'"{horovod}"', training and f'"{training}"')
        study = ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["training"])
        assert bool(said(study, EXCHANGE)) == compared == bool(study.rows("exchange"))
        assert ("transfer" in rows_of(study, "machine")) == compared
    exchanged = {"by": "ddp", "library": "torch.distributed", "backend": "gloo"}
    assert exchanged_by({"notes": {"exchange": exchanged}}) == torch
    assert exchanged_by({"notes": {"exchange": {"by": "horovod", "backend": "gloo"}}}) == horovod
    for unknown in ({}, None, [], {"by": "horovod", "backend": None}, {"backend": "gloo"}):
        assert exchanged_by({"notes": {"exchange": unknown}}) is None


def test_input_slower_than_the_file_system_is_named_and_as_fast_is_not() -> None:
    (finding,) = said(campaign().study(), READING)
    assert finding.state == "clear"
    assert "input reaches 4" in finding.sentence
    for ms in (4.1, 2.0):
        assert said(campaign({"input": ms, "compute": 100.0}).study(), READING) == []
    assert not math.isnan(rows_of(campaign().study(), "machine")["input"]["low"])


# --- the ceilings of another campaign of the site ---


def test_what_a_campaign_did_not_measure_is_taken_from_where_the_site_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others, plan = campaign(probes="network compute memory files layers").done()
    write_plan_file(tmp_path / "plan.json", plan)
    write_summary(others, tmp_path / "summary.parquet")
    summary, own = campaign(probes="files").done()
    assert known_machine(summary, own) == machine_of(summary, own)
    own["ceilings"] = str(tmp_path)
    machine = known_machine(summary, own)
    assert [one.where for one in machine.networks] == [f"network of {tmp_path}"]
    assert {one.where for one in machine.rates} == {"files", "cached"}
    tables = make_tables(summary, own, machine=machine)["training"]
    study = ExperimentResults(own["experiments"][0], tables)
    reached = rows_of(study, "machine")
    assert reached["transfer"]["machine"] == pytest.approx(81, rel=0.02)
    assert reached["compute"]["machine_from"] == f"layers of {tmp_path}"
    # Of another site, or not there: nothing, and a line.
    write_plan_file(tmp_path / "plan.json", {**plan, "site": "elsewhere"})
    assert known_machine(summary, own) == machine_of(summary, own)
    assert "of site elsewhere, not here: nothing is held against them" in caplog.text
    own["ceilings"] = str(tmp_path / "nowhere")
    assert known_machine(summary, own) == machine_of(summary, own)
    assert "No such file" in caplog.text
