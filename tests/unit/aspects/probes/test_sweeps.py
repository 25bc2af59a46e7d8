"""What probes measured by size: summary, tables, ceilings, the network's fit, and findings."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from scalesweep.aspects.probes.figure import network_figures, sweep_figures
from scalesweep.aspects.probes.table import (
    NetworkRow,
    ceilings,
    ceilings_section,
    is_probe,
    machine_ceilings,
    network_fit,
)
from scalesweep.aspects.scaling.findings import scaling_verdict, verdicts
from scalesweep.core.errors import UserError
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import as_text, curves_of, sweep_of
from tests.fakes.campaigns import note
from tests.fakes.finding_rows import said
from tests.fakes.rows import study_of as made_of

RATE = {"speed": ("FLOP/s", "higher"), "speed_median": ("FLOP/s", "higher")}


def study_of(
    points: Sequence[tuple[dict[str, Any], Sequence[tuple[dict[str, Any], Any]]]],
    metrics: Mapping[str, tuple[str, str]],
    values: Mapping[str, Sequence[Sequence[float]]],
    workload: Sequence[str] = (),
    fixed: Mapping[str, Any] | None = None,
) -> ExperimentResults:
    """An experiment of points with a sweep's note and seconds for each of their runs.

    ``metrics`` are unit and direction by name, the main one first; ``values`` theirs by name, as
    ``[point][run]``.
    """
    rows = [
        (point, [
            {"_sweep": as_text(sweep_of({"notes": {"sweep": said}},
                                        {"sweep_seconds": np.asarray(seconds)})),
             **{f"{name}_mean_run": values[name][number][repeat] for name in metrics}}
            for repeat, (said, seconds) in enumerate(sweeps)
        ])
        for number, (point, sweeps) in enumerate(points)
    ]  # fmt: skip
    parameters = {name: {"workload": name in workload} for name in points[0][0]}
    main, fixed = next(iter(metrics)), dict(fixed or {"ranks": 1})
    return made_of(rows, metrics, parameters=parameters, main_metric=main, fixed=fixed)


def seconds_of(*values: float, spread: float = 0.0, repeats: int = 3) -> Any:
    """``[value, repeat, rank]`` of one rank: the first repeat is the best one."""
    steps = 1 + spread * np.arange(repeats)
    return (np.array(values)[:, None] * steps)[:, :, None]


def test_a_run_keeps_best_median_and_worst_of_the_slowest_rank() -> None:
    seconds = np.array([[[1.0, 2.0], [3.0, 1.0], [1.0, 1.5]]])
    record = {"notes": {"sweep": note([8], [16.0])}, "point": {"ranks": 2}}
    found = curves_of(record, {"sweep_seconds": seconds})[0]["_sweep"]
    assert (found["times"], found["values"]) == ([[1.5, 2.0, 3.0]], [8])
    assert sweep_of({"notes": {}}, {"sweep_seconds": seconds}) is sweep_of(record, {}) is None


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        ({}, [[1, 1, 1]]),
        ({}, [[[0.0]]]),
        ({"values": [1, 2]}, [[[1]]]),
        ({"amounts": None}, [[[1]]]),
    ],
)
def test_sweeps_that_cannot_be_used_are_refused(change: Any, seconds: Any) -> None:
    record = {"notes": {"sweep": note([8], [16.0]) | change}}
    with pytest.raises(UserError, match="sweep"):
        sweep_of(record, {"sweep_seconds": np.array(seconds)})


def compute() -> ExperimentResults:
    """Two types at one and two threads; bfloat16 is twice as fast, two threads 1.8 times."""
    draw = np.random.default_rng(5)
    points, speeds = [], []
    for dtype, threads in (("float32", 1), ("float32", 2), ("bfloat16", 1), ("bfloat16", 2)):
        speed = 1e11 * (1 + (dtype == "bfloat16")) * (1.8 if threads == 2 else 1.0)
        runs = speed * (1 + 0.01 * draw.standard_normal(3))
        amounts = [2e9, 1.6e10, 1.28e11]
        moved = [4.0 * 3 * size**2 for size in (64, 128, 256)]
        noted = note([64, 128, 256], amounts, by="matrix size", amount_unit="FLOP", moved=moved)
        sweeps = [
            (noted, seconds_of(4e9 / run, 1.6e10 / run, 1.28e11 / (0.98 * run), spread=0.04))
            for run in runs
        ]
        points.append(({"dtype": dtype, "threads": threads}, sweeps))
        speeds.append(runs.tolist())
    medians = [[0.96 * value for value in runs] for runs in speeds]
    values = {"speed": speeds, "speed_median": medians}
    return study_of(points, RATE, values, workload=["dtype"])


def test_the_table_has_rates_by_size_with_their_best() -> None:
    study = compute()
    first, second, *others = study.rows("sweep")
    assert len(others) == 10
    assert (first["by"], first["value"], first["unit"]) == ("matrix size", 64, "FLOP/s")
    assert second["best_rate"] > second["rate"] > first["rate"]
    assert second["rate"] == pytest.approx(second["best_rate"] / 1.04, rel=0.03)
    assert second["rate_low"] < second["rate"] < second["rate_high"]
    assert second["repeats"] == 3
    assert second["intensity"] == pytest.approx(1.6e10 / (12 * 128**2))


def test_each_kind_of_work_has_its_ceiling_over_how_it_is_done() -> None:
    study = compute()
    assert is_probe(study)
    found = {one.what: one for one in ceilings(study)}
    assert set(found) == {"float32", "bfloat16"}
    one = found["bfloat16"]
    assert (one.row["threads"], one.unit) == (2, "GFLOP/s")
    assert one.best.rate.value == pytest.approx(360, rel=0.02)
    # Against the best run: the mean of the runs' medians is 0.96 of the mean of their bests.
    assert one.share == pytest.approx(0.947, abs=1e-3)
    assert one.how == "threads 2, matrix size 128"
    float32, bfloat16 = said(machine_ceilings(study))
    assert float32.state == bfloat16.state == "clear"
    assert float32.sentence.startswith("The ceiling of float32 is 1")
    (drawing,) = sweep_figures(study)
    assert drawing.figure.axes[0].get_ylabel() == "Rate [GFLOP/s]"
    assert not network_figures(study)


def test_words_as_values_and_experiments_without_probes() -> None:
    noted = note(["numpy copy", "numpy triad"], [1e9, 1.5e9], by="kernel")
    sweeps = [(noted, seconds_of(0.1, 0.12))] * 2
    metrics = {"bandwidth": ("bytes/s", "higher")}
    study = study_of([({}, sweeps)], metrics, {"bandwidth": [[1.25e10, 1.25e10]]})
    (finding,) = said(machine_ceilings(study))
    assert finding.sentence.startswith("The ceiling is 12.5 GB/s (kernel numpy triad)")
    (drawing,) = sweep_figures(study)
    assert "numpy triad" in set(drawing.panels[0].frame["x"])
    plain = ExperimentResults(study.entry, {**study.tables, "sweep": None})
    assert machine_ceilings(plain) == network_fit(plain) == sweep_figures(plain) == []


SIZES = (4.0 * 4.0 ** np.arange(13)).tolist()


def network(counts: list[int]) -> ExperimentResults:
    """Allreduces by a ring with 20 µs and 2 GB/s, 2 % noise."""
    draw = np.random.default_rng(7)
    noted = note(SIZES, SIZES, by="message size", unit="bytes", collective="allreduce")
    points, speeds = [], []
    for p in counts:
        cost = 2 * (p - 1) * (20e-6 + np.array(SIZES) / p / 2e9)
        runs = [cost * np.exp(draw.normal(0, 0.02, len(SIZES))) for _ in range(3)]
        points.append(({"ranks": p}, [(noted, run[:, None, None]) for run in runs]))
        speeds.append([float((2 * (p - 1) / p * np.array(SIZES) / run).max()) for run in runs])
    metrics = {"bus_bandwidth": ("bytes/s", "higher")}
    return study_of(points, metrics, {"bus_bandwidth": speeds}, fixed={"ranks": counts[0]})


def test_the_network_of_several_rank_counts_is_a_ring() -> None:
    study = network([2, 4, 8])
    (one,) = study.of(NetworkRow)
    assert one.algorithm == one.algorithms == "ring"
    assert one.latency.value == pytest.approx(20e-6, rel=0.05)
    assert one.bandwidth is not None and one.bandwidth.value == pytest.approx(2e9, rel=0.05)
    (finding,) = said(network_fit(study))
    assert finding.state == "clear"
    assert finding.sentence.startswith("Allreduce as a ring has a latency of 19.9")
    bus = [row for row in study.rows("sweep") if row["ranks"] == 8 and row["value"] == SIZES[-1]]
    assert bus[0]["rate"] == pytest.approx(2e9, rel=0.1)  # the network's own, at any rank count
    (drawing,) = network_figures(study)
    assert len(drawing.figure.axes[0].lines) == 6  # points and fit of each rank count


# Bus bandwidth of an allreduce of 1 GiB by ranks, GB/s: argonne-lcf/alcf-nccl-tests,
# results_polaris/nccl_2_18, n2.g4, n8.g4 and n540.g4 of 2024-04-29, all_reduce_output.dat.5.
POLARIS = {8: 36.81, 32: 36.53, 2160: 18.73}


def test_a_bandwidth_has_no_ideal_that_grows_with_the_ranks() -> None:
    """5 times 36.8 GB/s is no ideal of 32 ranks: they reach what 8 do."""
    size = 1 << 30
    noted = note([size], [size], by="message size", unit="bytes", collective="allreduce")
    points, speeds = [], []
    for p, speed in POLARIS.items():
        seconds = 2 * (p - 1) / p * size / (speed * 1e9)
        points.append(({"ranks": p}, [(noted, seconds_of(seconds))]))
        speeds.append([speed * 1e9])
    values = {"bus_bandwidth": speeds, "latency": [[4e-5]] * 3}
    metrics = {"bus_bandwidth": ("bytes/s", "higher"), "latency": ("s", "lower")}
    study = study_of(points, metrics, values)
    table = study.tables["scaling"]
    assert table["bus_bandwidth_mean_run"].tolist() == [1e9 * it for it in POLARIS.values()]
    assert not [name for name in table if re.search("_eff|_ideal|_speedup", name)]
    assert verdicts(study) == scaling_verdict(study) == []


@pytest.mark.parametrize(
    ("sizes", "rates", "ceiling", "reason"),
    [  # what disturbs only makes slower; one at the largest size is none
        ([512], [1e9, 2e9, 3e9], "is 3 GFLOP/s", "1 run of 3 within 10 % of the best, 3 needed"),
        ([512, 1024], [1.39e9, 1.395e9, 1.4e9], "", "it still grows towards larger sizes"),
    ],
)
def test_no_ceiling(sizes: list[int], rates: list[float], ceiling: str, reason: str) -> None:
    noted = note(sizes, [1e9, 4e9][: len(sizes)])
    sweeps = [(noted, seconds_of(*[1.0, 4e9 / rate][: len(sizes)])) for rate in rates]
    study = study_of([({}, sweeps)], {"speed": ("FLOP/s", "higher")}, {"speed": [rates]})
    (finding,) = said(machine_ceilings(study))
    assert finding.state == "open"
    assert ceiling in finding.sentence and reason in finding.reason


def lines_of(*studies: ExperimentResults) -> list[dict[str, str]]:
    """The lines of the page's table, by heading."""
    shown = ceilings_section(studies)
    words = [heading.text for heading in shown["headings"]]
    return [dict(zip(words, (cell.text for cell in row), strict=True)) for row in shown["rows"]]


def test_the_report_answers_how_fast_the_machine_is() -> None:
    float32, _, bus, fitted = lines_of(compute(), network([2, 4, 8]))
    assert float32["What"].endswith(": float32")
    value = float32["Ceiling [95 % interval]"]
    assert value.startswith("18") and value.endswith("] GFLOP/s")
    assert (float32["Median repeat"], float32["Runs"]) == ("95.4 %", "3")
    assert float32["Reached with"] == "threads 2, matrix size 128"
    assert "ranks" in bus["Reached with"] and fitted["Reached with"].endswith("ring")
    assert re.search("µs.* GB/s", fitted["Ceiling [95 % interval]"])
    assert ceilings_section([]) is None
