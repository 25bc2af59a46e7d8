"""Sentences of made-up campaigns, recomputed from their records by an independent path."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from scalesweep.analysis.table_io import read_table
from scalesweep.core.plan_format import read_plan
from scalesweep.report.export_tables import write_all
from tests.acceptance.faults import Program, always
from tests.fakes.planted_steps import RATE, planted_study
from tests.fakes.results import Fake, make_results
from tests.fakes.training import Training, make_training, nt3
from tests.recompute.arithmetic import (
    Run,
    Value,
    at,
    block_ratio,
    difference,
    mean,
    ratio,
    runs_of,
    samples_per_second,
    weighted,
    within,
)
from tests.recompute.sentences import Sentences

INIT, LATER = samples_per_second("init"), samples_per_second("later")
NO = math.nan

# Logarithms of what a run's time is multiplied by, by point and block.
SCATTER = {
    ("off", 1): (0.00, 0.21, 0.52), ("off", 4): (0.02, 0.19, 0.48),
    ("after_shard", 1): (-0.03, 0.23, 0.51), ("after_shard", 4): (0.03, 0.20, 0.50),
}  # fmt: skip


def percents(triple: tuple[float, float, float]) -> list[float]:
    return [100 * value for value in triple]


def written(root: Path, site: str) -> Path:
    """The tables of a campaign, made as the rule makes them."""
    summary = read_table(root / "summary.parquet")
    write_all(summary, read_plan(root / "plan.json"), root / "runs" / site, root / "tables")
    return root


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fakes = [
        Fake("weak", {"ranks": [1, 2]}, "weak", speed=lambda p: p["ranks"] ** -0.5,
             fate=lambda p, r: "TIMEOUT" if (p["ranks"], r) == (2, 3) else "done", repeats=4),
        Fake("models", {"model": ["alexnet", "vgg16"]}, repeats=4, noise=0.03,
             speed=lambda p: {"alexnet": 4.0, "vgg16": 0.6}[p["model"]]),
        Fake("reads", {"parallel_reads": [1, 4]}, repeats=1, speed=lambda p: p["parallel_reads"]),
        Fake("allreduce", {"message_bytes": [2**10, 2**25]}, epochs=0,
             metrics={"bus_bandwidth": ("bytes/s", "higher")}),
        # The machine is slower in each block than in the one before, and points scatter alike.
        Fake("blocks", {"shuffle": ["off", "after_shard"], "parallel_reads": [1, 4]}, repeats=3,
             noise=0.0, speed=lambda p: 4.0 if p["shuffle"] == "off" else 1.0,
             slower=lambda p, r: math.exp(SCATTER[p["shuffle"], p["parallel_reads"]][r])),
        Fake("strong", {"ranks": [1, 4]}, "strong", speed=lambda p: 1 / (1 + 0.1 * p["ranks"])),
    ]  # fmt: skip
    root = tmp_path_factory.mktemp("reading")
    return written(make_results(root, fakes), "daint-like")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("training")
    target = Training(
        {"ranks": [1, 2, 4]}, name="target", fixed={"target_accuracy": 0.8},
        main_metric="training_samples_per_second",
        watts=lambda point, repeat: 100.0 * (1 + 0.02 * repeat),
    )  # fmt: skip
    make_training(root, nt3(), target)
    return written(root, "here")


def test_sentences_of_reading(reading: Path) -> None:
    runs = runs_of(reading, "weak")
    weak = Sentences(reading, "weak")
    later = ratio(at(runs, LATER, ranks=2), at(runs, LATER, ranks=1), 1 / 2)
    first = ratio(at(runs, INIT, ranks=2), at(runs, INIT, ranks=1), 1 / 2)
    weak.hold(
        "verdict", "Simulated: Run 1 rank: 2 ranks reach {} [{}, {}] % of the ideal.",
        percents(later), [later],
    )  # fmt: skip
    weak.hold(
        "efficiency", "Simulated: First epoch: 2 ranks reach {} [{}, {}] % of the ideal.",
        percents(first), [first],
    )  # fmt: skip
    gains = {n: within(at(runs, lambda run: LATER(run) / INIT(run), ranks=n)) for n in (1, 2)}
    assert gains[2][0] < gains[1][0]
    weak.hold(
        "cache",
        "Simulated: Total throughput is higher in the later epochs than in the first epoch at 2 of "
        "2 points with intervals: from {} [{}, {}] times (2 ranks) to {} [{}, {}] times (1 rank).",
        [*gains[2], *gains[1]],
        [mean(at(runs, INIT, ranks=2)), mean(at(runs, LATER, ranks=2))],
    )
    epoch = [320 * n / mean(at(runs, LATER, ranks=n))[0] for n in (1, 2)]
    # The ledger weighs repeats with their rates, so that its terms add up to the mean rate's step.
    local = {n: weighted(at(runs, least_local, ranks=n), at(runs, LATER, ranks=n)) for n in (1, 2)}
    loss = difference(local[2], local[1])
    without = 100 * epoch[0] / (epoch[1] - loss[0])
    weak.hold(
        "largest loss",
        "Simulated: At 2 ranks an epoch takes {} s instead of the ideal {} s; the largest part is "
        "input and computation, which take longer than at the reference on each rank, {} [{}, {}] "
        "s: without it the epoch would reach {} % of the ideal.",
        [epoch[1], epoch[0], *loss, without],
        [[1e3 * value for value in loss]],
    )
    failures = [*reading.glob("runs/*/*/failure.json")]
    weak.hold(
        "coverage", "Coverage: {} of {} runs done, {} failed (TIMEOUT {}).",
        [len(runs), len(runs) + len(failures), len(failures), len(failures)],
        [(len(runs), NO, NO), (len(failures), NO, NO)],
    )  # fmt: skip
    assert len(weak.right) == 5


def test_sentences_of_strong_scaling(reading: Path) -> None:
    runs, strong = runs_of(reading, "strong"), Sentences(reading, "strong")
    rates = {n: at(runs, LATER, ranks=n) for n in (1, 4)}
    strong.hold(
        "best",
        "Simulated: Best total throughput (later epochs): {} [{}, {}] samples/s at 4 ranks, clear "
        "of the only other; next is 1 rank with {} [{}, {}].",
        [*mean(rates[4]), *mean(rates[1])],
        [mean(rates[4])],
    )
    reached = ratio(rates[4], rates[1], 1 / 4)
    strong.hold(
        "verdict",
        "Simulated: Not decided: 4 ranks reach {} [{}, {}] % of the ideal, not clear of {} % among "
        "all claims of this experiment.",
        [*percents(reached), 80],
        [reached],
    )
    first = ratio(at(runs, INIT, ranks=4), at(runs, INIT, ranks=1), 1 / 4)
    strong.hold(
        "efficiency",
        "Simulated: First epoch: 4 ranks reach {} [{}, {}] % of the ideal; the interval includes "
        "{} %.",
        [*percents(first), 80],
        [first],
    )
    medians = [np.median(one.arrays["local_times"][1:], 0) for one in runs if one.is_at(ranks=4)]
    slow = float(np.median([own / np.median(own) for own in medians], axis=0).max())
    strong.hold(
        "stragglers",
        "Simulated: No straggler among {} ranks: the epoch of the slowest takes {} times as long "
        "as the median; *",
        [4, slow],
    )


def test_sentences_of_parameters_and_metrics(reading: Path) -> None:
    runs, models = runs_of(reading, "models"), Sentences(reading, "models")
    alexnet, vgg = (at(runs, LATER, model=name) for name in ("alexnet", "vgg16"))
    models.hold(
        "best",
        "Simulated: Best total throughput (later epochs): {} [{}, {}] samples/s at model alexnet, "
        "clear of the only other; next is model vgg16 with {} [{}, {}].",
        [*mean(alexnet), *mean(vgg)],
        [mean(alexnet)],
    )
    times = ratio(vgg, alexnet)
    models.hold(
        "ratio", "Simulated: vgg16 over alexnet (model): {} [{}, {}] times the total throughput.",
        times, [times],
    )  # fmt: skip
    gains = [within(at(runs, lambda run: LATER(run) / INIT(run), model=name))
             for name in ("alexnet", "vgg16")]  # fmt: skip
    models.hold(
        "cache",
        "Simulated: Total throughput is higher in the later epochs than in the first epoch at 2 of "
        "2 points with intervals: from {} [{}, {}] times (model alexnet) to {} [{}, {}] times "
        "(model vgg16).",
        [*gains[0], *gains[1]],
    )
    (rate,) = at(runs_of(reading, "reads"), LATER, parallel_reads=4)
    Sentences(reading, "reads").hold(
        "best",
        "Simulated: Highest measured total throughput (later epochs): {} samples/s at "
        "parallel_reads {}; one repeat, not confirmed.",
        [rate, 4],
        [(rate, NO, NO)],
    )
    runs = runs_of(reading, "allreduce")
    rates = {n: mean(at(runs, lambda run: run.metric("bus_bandwidth"), message_bytes=n))
             for n in (2**10, 2**25)}  # fmt: skip
    Sentences(reading, "allreduce").hold(
        "best",
        "Simulated: Best bus bandwidth (whole run): {} [{}, {}] GB/s at message_bytes {}, clear of "
        "the only other; next is message_bytes {} with {} [{}, {}].",
        [*(value / 1e9 for value in rates[2**25]), 2**25, 2**10,
         *(value / 1e9 for value in rates[2**10])],
        [rates[2**25]],
    )  # fmt: skip


def test_sentences_of_blocks(reading: Path) -> None:
    runs, blocks = runs_of(reading, "blocks"), Sentences(reading, "blocks")
    rates = [at(runs, LATER, shuffle=word, parallel_reads=n) for word, n in SCATTER]
    for reads, (bottom, top) in ((1, (0, 2)), (4, (1, 3))):
        times = block_ratio(rates, top, bottom)
        assert times[2] - times[1] < 0.7 * (ratio(rates[top], rates[bottom])[2] - times[1])
        blocks.hold(
            "ratio",
            "Simulated: after_shard over off (shuffle): {} [{}, {}] times the total throughput at "
            f"parallel_reads {reads}.",
            times, [times],
        )  # fmt: skip


def test_sentences_of_a_training(training: Path) -> None:
    runs, train = runs_of(training, "train"), Sentences(training, "train")
    rates = {n: at(runs, trained_per_second, ranks=n) for n in (1, 4, 16)}
    train.hold(
        "best",
        "Best training samples per second (whole run): {} [{}, {}] samples/s at 16 ranks, clear of "
        "all {} others; next is 4 ranks with {} [{}, {}].",
        [*mean(rates[16]), 2, *mean(rates[4])],
        [mean(rates[16])],
    )
    reached = ratio(rates[16], rates[1], 1 / 16)
    train.hold(
        "verdict", "Run 4 ranks: 16 ranks reach {} [{}, {}] % of the ideal.",
        percents(reached), [reached, (4, NO, NO)],
    )  # fmt: skip
    final = {n: at(runs, lambda run: float(run.arrays["validation_accuracy"][-1].mean()), ranks=n)
             for n in (1, 16)}  # fmt: skip
    train.hold(
        "final accuracy",
        "Final validation accuracy at 16 ranks is lower (worse) than at 1 rank: {} [{}, {}] "
        "against {} [{}, {}], {} [{}, {}] times.",
        [*mean(final[16]), *mean(final[1]), *ratio(final[16], final[1])],
        [mean(final[16])],
    )
    share = mean(at(runs, loading_share, ranks=16))
    train.hold(
        "data loading",
        "Data loading takes {} [{}, {}] % of the run's phases at 16 ranks ({} s), the most of "
        "{} points where it takes {} % or more.",
        [*percents(share), 5, NO, 10],
        [share, (5, NO, NO)],
    )


def test_sentences_of_training_to_a_target(training: Path) -> None:
    runs, target = runs_of(training, "target"), Sentences(training, "target")
    times = {n: at(runs, seconds_to(0.8), ranks=n) for n in (1, 2, 4)}
    target.hold(
        "target",
        "Fastest to the target: 4 ranks with {} [{}, {}] s, clear of {} others that met it in "
        "every run; next is 2 ranks with {} [{}, {}] s.",
        [*mean(times[4]), 2, *mean(times[2])],
        [mean(times[4])],
    )
    for ranks, found in times.items():
        best, score, worst = sorted(found)
        target.hold(
            "score",
            f"Score of {{}} runs at {ranks} rank{'s' * (ranks > 1)} (MLPerf takes {{}}; best and "
            "worst dropped): {} s; best {} s, worst {} s.",
            [3, 10, score, best, worst],
            [(3, NO, NO), (3, NO, NO), (best, NO, NO), (worst, NO, NO), (score, NO, NO)],
        )
    lasted = {n: mean(at(runs, trained_seconds, ranks=n)) for n in (1, 4)}
    joules = {n: mean(at(runs, lambda run: counted_joules(training, run), ranks=n)) for n in (1, 4)}
    target.hold(
        "energy",
        "Fastest is 4 ranks ({} [{}, {}] s of training, {} [{}, {}] kJ); 1 rank needs the least "
        "energy ({} [{}, {}] s, {} [{}, {}] kJ)*",
        [*lasted[4], *(value / 1e3 for value in joules[4]),
         *lasted[1], *(value / 1e3 for value in joules[1])],
        [lasted[4], joules[4]],
    )  # fmt: skip


def test_sentences_of_a_slow_rank(tmp_path: Path) -> None:
    planted_study(tmp_path, Program(faults={"compute": always(30, 1)}))
    runs = runs_of(written(tmp_path, "here"), "steps")
    images = 32  # of a rank in a step
    step, ideal = (
        1e3 * images * n / mean(at(runs, lambda run: run.metric(RATE), ranks=n))[0] for n in (2, 1)
    )
    longer = float(np.mean(at(runs, slower_by, ranks=2)))
    gain = float(np.mean(at(runs, without_it, ranks=2)))
    Sentences(tmp_path, "steps").hold(
        "largest loss",
        "At 2 ranks a step takes {} ms instead of the ideal {} ms; the largest part is waiting for "
        "the rank that is behind (imbalance), {} [{}, {}] ms, because rank 1 computes {} ms longer "
        "in every step: without it the step would reach {} % of the ideal.",
        [step, ideal, NO, NO, NO, longer, 100 * ideal / (step - gain)],
    )
    causes = read_table(tmp_path / "tables" / "steps" / "causes.parquet")
    (row,) = causes[causes["cause"] == "compute"].to_dict("records")
    # To 0.2 %: a median over steps is taken here.
    assert row["longer_ms"] == pytest.approx(longer, rel=2e-3)
    assert row["gain_ms"] == pytest.approx(gain, rel=2e-3)


def slower_by(run: Run) -> float:
    """Ms that rank 1 computes longer than rank 0 in the median step."""
    return float(1e3 * np.median(np.diff(run.arrays["span_compute"], axis=1)))


def without_it(run: Run) -> float:
    """Ms that steps are shorter where rank 1 arrives at the exchange so much earlier."""
    arrived = sum(run.arrays[f"span_{name}"] for name in ("between", "input", "compute"))
    earlier = arrived - np.array([0.0, slower_by(run) / 1e3])
    return float(1e3 * (arrived.max(axis=1) - earlier.max(axis=1)).mean())


def least_local(run: Run) -> float:
    """Seconds of a later epoch on the faster of two ranks, which is their lower median."""
    return float(run.arrays["local_times"][1:].mean(axis=0).min())


def trained_seconds(run: Run) -> float:
    """Seconds of all epochs, of the slowest rank in each."""
    return float(run.arrays["global_times"].max(axis=1).sum())


def trained_per_second(run: Run) -> float:
    epochs = len(run.arrays["global_times"])
    return float(run.record["work"]["samples"] * epochs / trained_seconds(run))


def loading_share(run: Run) -> float:
    """Of the time of all phases, from when each of them began and ended."""
    spans = run.record["phase_spans"]
    loading = sum(end - begin for name, begin, end in spans if name == "data_loading")
    return float(loading / sum(end - begin for _, begin, end in spans))


def seconds_to(accuracy: float) -> Value:
    """When the first epoch ended whose validation accuracy, mean over ranks, was so high."""

    def value(run: Run) -> float:
        met = run.arrays["validation_accuracy"].mean(axis=1) >= accuracy
        return float(run.arrays["epoch_ends"][met.argmax()].max())

    return value


def counted_joules(root: Path, run: Run) -> float:
    """Of the packages of all hosts, whose power of each second lies in power.csv."""
    (path,) = root.glob(f"runs/*/{run.run_id}/power.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return sum(float(row["watts"] or 0) for row in rows if row["domain"].startswith("package"))
