"""Tokens/s of trainings, of a results folder and of the gallery, and what makes them comparable."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES, ModelShape
from scalesweep.analysis.utilisation import rate_source
from scalesweep.aspects.utilisation.table import Utilisation
from scalesweep.config.point_shape import planned_shape
from scalesweep.core.errors import UserError, choices
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PLAN, read_plan
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.gallery.study import Import, load_study, study_names
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import runs_of
from scalesweep.table.declared import Estimate


@dataclass(frozen=True)
class TrainingRate:
    """Tokens/s of a rank at a point.

    ``origin``: the study or the results folder; ``label``: the point; ``source``: measured,
    simulated or imported. ``shape`` is None where the benchmark declares no transformer, or ``why``
    says what else is missing.
    """

    origin: str
    label: str
    source: str
    ranks: int
    shape: ModelShape | None
    tokens: Estimate | None
    why: str = ""


def check_dtype(name: str) -> str:
    """The name of a type of numbers; raises UserError for one that data sheets do not have."""
    if name and name not in DTYPES:
        raise UserError(f"--dtype {name}: {choices(name, DTYPES)}")
    return name


def check_device(name: str) -> str:
    """The name of a device; raises UserError for one that no data sheet is known of."""
    if name and name not in DEVICES:
        raise UserError(f"--device {name}: {choices(name, DEVICES)}")
    return name


def rates_of_results(
    results: Path, origin: str, device: str = "", dtype: str = ""
) -> list[TrainingRate]:
    """A rate for each finished point of a results folder; without a transformer, one without.

    ``device`` is what ranks compute on, and ``dtype`` the type of the numbers in products, where
    the benchmark does not say it. Raises UserError for a folder without a plan and tables.
    """
    if not (results / PLAN).is_file():
        raise UserError(f"{results}: no results folder: it has no {PLAN}")
    rates: list[TrainingRate] = []
    for entry in read_plan(results / PLAN)["experiments"]:
        loaded = load_results(entry, results / "tables")
        rates += _of_experiment(loaded, origin, device, dtype)
    return list(dict.fromkeys(rates))


def _of_experiment(
    loaded: ExperimentResults, origin: str, device: str, dtype: str
) -> Iterator[TrainingRate]:
    entry = loaded.entry
    if "transformer" not in entry:
        if loaded.points:
            yield TrainingRate(origin, f"{entry['name']}: all points", "", 0, None, None)
        return
    seen = set()
    for row in loaded.of(Utilisation):
        every = parameters_at(entry, row.point)
        label = f"{entry['name']}: {loaded.describe(row.row)}"
        if label in seen:  # a row for each convention of FLOP
            continue
        seen.add(label)
        shape = planned_shape(entry, every)
        if shape is not None:
            shape = replace(
                shape, device=shape.device or device or None, dtype=shape.dtype or dtype or None
            )
        yield TrainingRate(
            origin, label, row.source or "", int(every["ranks"]), shape, row.rank_tokens
        )
    yield from _without_rate(loaded, origin, seen)


def _without_rate(
    loaded: ExperimentResults, origin: str, seen: Collection[str]
) -> Iterator[TrainingRate]:
    """The finished points of which no tokens/s of a transformer are known, with the reason."""
    points = {loaded.key(run["point"]): run["point"] for run in loaded.entry["runs"]}
    for row in loaded.points:
        label = f"{loaded.entry['name']}: {loaded.describe(row)}"
        if label in seen:
            continue
        every = parameters_at(loaded.entry, points[loaded.key(row)])
        shape = planned_shape(loaded.entry, every)
        why = "" if shape else "no dense transformer, or not its tokens of a sample, is stated"
        source = str(row.get("source") or "")
        yield TrainingRate(origin, label, source, int(every["ranks"]), shape, None, why)


def gallery_rates(imported: Path, results: Path) -> list[TrainingRate]:
    """The rates of the gallery: of shipped tables, and of what was imported below ``imported``.

    A study whose own import ``results`` is counts not: it would be compared with itself.
    """
    rates: list[TrainingRate] = []
    for name in study_names():
        study, folder = load_study(name), imported / name
        if folder.resolve() == results.resolve():
            continue
        if study.is_shipped:
            rates += [rate for part in study.imports for rate in _shipped(name, part)]
        elif (folder / PLAN).is_file():
            rates += [rate for rate in rates_of_results(folder, name) if rate.shape]
    return rates


def _shipped(origin: str, part: Import) -> Iterator[TrainingRate]:
    """The rates of a shipped table whose map declares a transformer."""
    if part.map is None or part.shipped is None:
        return
    table_map = load_map(part.map, part.shipped)
    if table_map.transformer is None:
        return
    for run in runs_of(table_map).runs:
        shape = table_map.transformer.at(run.point, str(part.map))
        source = rate_source(run.metrics, None)
        if shape is None or source is None:
            continue
        ranks = int(run.point["ranks"])
        tokens = source.tokens_per_second(float(run.metrics[source.metric]["value"]), shape, ranks)
        if tokens:
            label = f"{part.shipped.name}:{run.line}"
            yield TrainingRate(origin, label, "imported", ranks, shape, Estimate(tokens / ranks))
