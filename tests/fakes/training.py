"""A results folder with made-up training runs: losses by epoch, phases, power over time, energy."""

import csv
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.core.files import digest_of
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.records import write_run
from tests.fakes.results import plan_entry, studies_of, write_plan

Point = dict[str, Any]
SITE = "here"
NOISE = 0.01
BEGAN = 1_760_000_000.0
UNITS = {
    "training_time": ("s", "lower"),
    "time_to_target": ("s", "lower"),
    "training_samples_per_second": ("samples/s", "higher"),
    "energy": ("J", "lower"),
}


@dataclass
class Training:
    """An experiment of training runs; functions take the point, some the repeat too."""

    axes: Mapping[str, Sequence[Any]]
    name: str = "train"
    kind: str = "accuracy"  # or mae
    epochs: Callable[[Point], int] = lambda point: 4
    epoch_s: Callable[[Point], float] = lambda point: 10.0 / point["ranks"]
    watts: Callable[[Point, int], float | None] = lambda point, repeat: 100.0
    end: Callable[[Point], float] = lambda point: 0.9  # of accuracy or error
    fate: Callable[[Point, int], str] = lambda point, repeat: "done"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    repeats: int = 3
    samples: Callable[[Point], int] = lambda point: 100
    planned: Callable[[Point], int | None] = lambda point: None  # work of a run
    scaling: str = "strong"
    work: Sequence[str] = ()
    main_metric: str | None = None
    compare: str | None = "same_training"  # of the final validation accuracy or error
    source: str = "measured"
    changes: Callable[[Point, int], Mapping[str, Any]] = lambda point, repeat: {}  # of the record
    arrays: Callable[[dict[str, Any], Point, int], None] = lambda arrays, point, repeat: None


def make_training(root: Path, *experiments: Training) -> dict[str, ExperimentResults]:
    """Write records, plan, summary and tables below ``root``; returns the studies by name."""
    folder = root / "runs" / SITE
    write_plan(root, [_experiment(one, folder) for one in experiments], site=SITE)
    return studies_of(root)


def study_of(root: Path, fake: Training) -> ExperimentResults:
    """The study of one experiment."""
    return make_training(root, fake)[fake.name]


def _experiment(fake: Training, folder: Path) -> dict[str, Any]:
    points: list[Point] = [
        {"ranks": 1, **fake.fixed, **dict(zip(fake.axes, values, strict=True))}
        for values in itertools.product(*fake.axes.values())
    ]
    entry = plan_entry(fake, "train", points, list(fake.axes), folder, partial(_write, fake))
    for run in entry["runs"]:
        run["work"] = fake.planned(run["point"])
    compare = {f"final_validation_{fake.kind}": fake.compare} if fake.compare else {}
    return entry | {
        "summary": "Trains.", "compare": compare, "work": [*fake.work],
        "main_metric": fake.main_metric,
    }  # fmt: skip


def curves(fake: Training, point: Point, repeat: int) -> dict[str, Any]:
    """Arrays [epoch, rank] of a run."""
    generator = np.random.default_rng([*digest_of([fake.name, point], 6).encode(), repeat])
    epochs, ranks = fake.epochs(point), int(point["ranks"])
    factor = 1 + NOISE * generator.standard_normal()
    local = np.full((epochs, ranks), fake.epoch_s(point) * factor)
    validation = np.full((epochs, ranks), 0.2 * fake.epoch_s(point))
    done = np.arange(1, epochs + 1)[:, None]
    rise = (1 - np.exp(-done / 2)) / (1 - np.exp(-epochs / 2))
    noise = 1 + 0.3 * NOISE * generator.standard_normal((epochs, ranks))
    if fake.kind == "accuracy":
        values = np.minimum((0.5 + (fake.end(point) - 0.5) * rise) * noise, 1.0)
    else:
        values = (0.5 + (fake.end(point) - 0.5) * rise) * noise
    loss = (0.7 - 0.5 * rise) * noise
    return {
        "local_times": local, "global_times": local * 1.01, "validation_times": validation,
        "epoch_ends": np.cumsum(local * 1.01 + validation, axis=0), "loss": loss,
        "validation_loss": loss * 1.1, fake.kind: values, f"validation_{fake.kind}": values * 0.98,
        "learning_rate": np.full((epochs, ranks), 0.001),
    }  # fmt: skip


def _phases(fake: Training, arrays: Mapping[str, Any], point: Point) -> list[list[Any]]:
    """Spans from the program's start on."""
    spans: list[list[Any]] = []
    now = BEGAN

    def add(name: str, seconds: float) -> None:
        nonlocal now
        spans.append([name, now, now + seconds])
        now += seconds

    for name, seconds in (("import", 3.0), ("init", 1.0), ("data_loading", 5.0)):
        add(name, seconds)
    for epoch in range(fake.epochs(point)):
        add("training", float(arrays["global_times"][epoch, 0]))
        add("validation", float(arrays["validation_times"][epoch, 0]))
    add("evaluation", 1.0)
    return spans


def write_power(path: Path, spans: Sequence[Sequence[Any]], watts: float, hosts: int) -> float:
    """A sample a second of a package (twice as much in training) and, within it, a core domain;
    returns the joules that are counted."""
    begin, end = spans[0][1], spans[-1][2]
    total = 0.0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "host", "domain", "watts"])
        for moment in np.arange(begin, end + 1):
            phase = next((s[0] for s in spans if s[1] <= moment - 0.5 < s[2]), "")
            value = watts * (2 if phase == "training" else 1)
            stamp = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
            for host in range(hosts):
                # Nothing is known of the time before a counter's first value.
                told = (value, value / 2) if moment > begin else ("", "")
                writer.writerow([stamp, f"n{host}", "package-0", told[0]])
                writer.writerow([stamp, f"n{host}", "core", told[1]])
                total += value if moment > begin else 0.0
    return total


def _write(fake: Training, run_id: str, point: Point, repeat: int, folder: Path) -> Path:
    arrays = curves(fake, point, repeat)
    spans = _phases(fake, arrays, point)
    seconds: dict[str, float] = {}
    for name, start, end in spans:
        seconds[name] = seconds.get(name, 0.0) + end - start
    epochs = fake.epochs(point)
    total = float(arrays["global_times"].max(1).sum())
    values = {
        "training_time": total, "epochs_run": epochs,
        "training_samples_per_second": fake.samples(point) * epochs / total,
        **{f"final_{name}": float(arrays[name][-1].mean())
           for name in arrays if name.removeprefix("validation_") in ("loss", fake.kind)},
    }  # fmt: skip
    target = point.get(f"target_{fake.kind}")
    if target is not None:
        found = arrays[f"validation_{fake.kind}"].mean(1)
        met = found >= target if fake.kind == "accuracy" else found <= target
        if met.any():
            values["time_to_target"] = float(arrays["epoch_ends"][int(np.argmax(met)), 0])
    watts = fake.watts(point, repeat)
    run = folder / run_id
    run.mkdir(parents=True)
    energy: dict[str, Any] = {
        "sources": [], "interval_s": 1.0, "hosts": ["n0"], "joules": None,
        "missing": "host n0 has no counters of rapl, nvml, pm_counters, hwmon",
    }  # fmt: skip
    if watts is not None:
        hosts = min(int(point["ranks"]), 4)
        joules = write_power(run / "power.csv", spans, watts, hosts)
        domains = {"package-0": {"joules": joules / hosts, "counted": True},
                   "core": {"joules": joules / hosts / 2, "counted": False}}  # fmt: skip
        energy = {
            "sources": ["rapl"], "interval_s": 1.0, "hosts": [f"n{i}" for i in range(hosts)],
            "missing": None, "domains": {f"n{i}": domains for i in range(hosts)}, "joules": joules,
            "phases": {name: s * watts * hosts * (2 if name == "training" else 1)
                       for name, s in seconds.items()},
        }  # fmt: skip
        values["energy"] = joules
    metrics = {}
    for name, value in values.items():
        unit, better = UNITS.get(name, ("1", "higher" if "accuracy" in name else "lower"))
        metrics[name] = {"value": value, "unit": unit, "better": better, "scope": "total"}
    fake.arrays(arrays, point, repeat)
    changes: dict[str, Any] = {
        "benchmark": "train", "point": point, "repeat": repeat, "site": SITE,
        "source": fake.source, "started": "2026-03-01T08:00:00.000+00:00",
        "ended": "2026-03-01T08:10:00.000+00:00", "wall_s": spans[-1][2] - BEGAN,
        "phases": seconds, "phase_spans": spans, "metrics": metrics, "resources": {},
        "work": {"samples_per_epoch": fake.samples(point), "samples": fake.samples(point)},
        "energy": energy, **fake.changes(point, repeat),
    }  # fmt: skip
    kept, changes = (
        {name: value for name, value in each.items() if value is not None}
        for each in (arrays, changes)
    )
    return write_run(folder, run_id, kept, **changes)


def nt3(**changes: Any) -> Training:
    """Ranks that share 16 epochs, as NT3 under Horovod does at 25, 100 and 400 nodes."""
    words: dict[str, Any] = {
        "axes": {"ranks": [1, 4, 16]},
        "epochs": lambda p: 16 // p["ranks"],
        "epoch_s": lambda p: 5.0 * (1 + 0.1 * np.log2(p["ranks"])),
        "end": lambda p: 0.98 - 0.02 * np.log2(p["ranks"]),
        "samples": lambda p: 100 * p["ranks"],
        "planned": lambda p: 1600,
        "work": ["ranks", "train_samples"],
        "main_metric": "training_samples_per_second",
    }
    return Training(**{**words, **changes})


def mae(**changes: Any) -> Training:
    """Ranks that train to an error."""
    words: dict[str, Any] = {
        "axes": {"ranks": [1, 2]}, "kind": "mae", "end": lambda p: 0.05 * p["ranks"],
        "fixed": {"target_mae": 0.12}, "epochs": lambda p: 8,
    }  # fmt: skip
    return Training(**{**words, **changes})
