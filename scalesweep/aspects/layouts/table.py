"""The tables ``best_layouts`` and ``layouts``."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from scalesweep.analysis.factors import fold_axes, layout_followers, planned_points
from scalesweep.analysis.metrics import is_memory
from scalesweep.analysis.stats import SIGNIFICANT, Ratio
from scalesweep.config.shapes import Mesh
from scalesweep.core.formatting import listed, text_of
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PlanExperiment, parameter_of
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    HOLES,
    NOTE,
    OPEN,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.planning.planned_shapes import planned
from scalesweep.table.declared import Estimate, PointRow, column, numbers_of
from scalesweep.tables.comparisons import main_measures, mean_of
from scalesweep.tables.making import Maker, TableInputs, point_columns
from scalesweep.tables.points import ExperimentData, Measure, Point

_UTILISATION = re.compile(r"(?:^|_)mfu(?:_|$)")
Values = Mapping[str, Any]
# What says of a transformer what is computed, where it is a parameter by itself.
_WORKLOAD = ("parameters", "layers", "width", "sequence", "vocabulary", "global_batch")


@dataclass(frozen=True)
class LayoutStudy:
    """An experiment whose points of one scale split their ranks in several ways.

    ``workload``: independent parameters that say what is computed: layouts compare where they and
    the scale are the same. ``free``: the other independent ones, without what they leave no choice
    of (``layout_followers``).
    """

    entry: PlanExperiment
    mesh: Mesh
    workload: Sequence[str]
    free: Sequence[str]

    def at(self, values: Values) -> dict[str, Any]:
        """Every parameter of the point whose varying ones have these values."""
        return parameters_at(self.entry, values)

    def scale(self, values: Values) -> int:
        """What the point is a study over: ranks, or devices."""
        return int(self.at(values)[self.entry["scale"]])

    def setting_text(self, values: Values) -> str:
        """``model 8B, gbs 256``; empty where all points compute the same."""
        return ", ".join(f"{name} {text_of(values[name])}" for name in self.workload)

    def mesh_at(self, values: Values) -> Mapping[str, int]:
        """The ranks along each axis of the mesh."""
        return self.mesh.at(self.at(values)) or {}

    @cached_property
    def roles(self) -> list[str]:
        """The axes of the mesh that are not 1 everywhere."""
        sizes = [self.mesh_at(point) for point in planned_points(self.entry)]
        return [role for role in self.mesh.fields if any(of.get(role, 1) != 1 for of in sizes)]

    @cached_property
    def others(self) -> list[str]:
        """Free parameters of which the mesh does not tell."""
        return [name for name in self.free if name not in self.mesh.names]

    def text(self, values: Values) -> str:
        """``dp 32 x tp 8 x pp 1, zero 0, mbs 8``."""
        mesh = self.mesh_at(values)
        sizes = " x ".join(f"{role} {text_of(mesh.get(role))}" for role in self.roles)
        words = [f"{name} {text_of(values[name])}" for name in self.others]
        return ", ".join(filter(None, [sizes, *words]))


def study_of(entry: PlanExperiment) -> LayoutStudy | None:
    """The study of layouts that an experiment is.

    None where its benchmark declares no mesh, or all points of a scale that compute the same have
    the same one.
    """
    mesh = planned(entry).mesh
    if mesh is None:
        return None
    texts = entry.get("transformer", {})
    named = {str(texts[key]) for key in _WORKLOAD if key in texts}
    inside = {*layout_followers(entry), *entry["scale_parameters"]}
    leaders = [name for name in fold_axes(entry)[0] if name != entry["scale"]]
    workload = [n for n in leaders if parameter_of(entry, n)["workload"] or n in named]
    free = [name for name in leaders if name not in inside and name not in workload]
    meshes: dict[Any, set[Any]] = {}
    for point in planned_points(entry):
        key = (point.get(entry["scale"]), *(point.get(name) for name in workload))
        meshes.setdefault(key, set()).add(tuple((mesh.at(point) or {}).values()))
    several = any(len(sizes) > 1 for sizes in meshes.values())
    return LayoutStudy(entry, mesh, workload, free) if several else None


@dataclass(frozen=True, kw_only=True)
class BestLayout(PointRow, table="best_layouts"):
    """The best layout of one scale and one thing that is computed; of a scale at which none ran,
    the parameters of the layout are missing."""

    scale: int = column("ranks, or devices where ranks have several", "1")
    setting: str = column("what is computed: parameters that say so; empty where they do not vary")
    layout: str | None = column("the axes of its mesh, and the other parameters that vary")
    phase: str = column("init (first epoch), later, or run")
    metric: str = column("the main metric")
    value: Estimate | None = column("its mean over the runs of the best layout", default=None)
    runs_failed: int = column("runs of the best layout that failed", "1", default=0)
    ran: int = column("layouts with a result", "1")
    tried: int = column("layouts that are planned", "1")
    failed: int = column("layouts of which every run failed", "1")
    causes: str = column("how many of them by cause, out of memory first")
    next_layout: str | None = column("the next best layout", default=None)
    ahead: Estimate | None = column(
        "best over next (of times next over best); the interval is over all layouts of the scale",
        "1", default=None,
    )  # fmt: skip
    p: float | None = column(
        "largest p value of the best against each other layout", "1", default=None
    )
    median: float = column(
        "median over the layouts that ran of their share of the best", "1", default=math.nan
    )
    memory_metric: str | None = column("the metric of the memory of a rank")
    memory: float | None = column("memory of the best layout, in the metric's unit", default=None)
    utilisation_metric: str | None = column("the metric of the utilisation (MFU)")
    utilisation: float | None = column(
        "utilisation of the best layout, in the metric's unit", default=None
    )


@dataclass(frozen=True, kw_only=True)
class LayoutPoint(PointRow, table="layouts"):
    """A layout that ran."""

    scale: int = column("ranks, or devices where ranks have several", "1")
    setting: str = column("what is computed: parameters that say so; empty where they do not vary")
    layout: str = column("the axes of its mesh, and the other parameters that vary")
    phase: str = column("init (first epoch), later, or run")
    value: float = column("mean of the main metric over its runs")
    per_rank: float = column("the same of one rank, or device, where the metric is of all")
    share: float = column("its share of the best of its scale (of times best over it)", "1")
    place: int = column("its place among those of its scale", "1")
    memory: float | None = column("memory of a rank, in the metric's unit")
    front: bool | None = column("whether no other layout of its scale is better with less memory")
    utilisation: float | None = column("utilisation (MFU), in the metric's unit")


def layout_rows(inputs: TableInputs) -> Iterator[BestLayout | LayoutPoint]:
    """Rows of both tables for every source and what is computed, in the order of the plan, from the
    smallest scale to the largest."""
    data = inputs.data
    study, measures = study_of(data.experiment), main_measures(data)
    if study is None or not measures:
        return
    measure = next((m for m in measures if m[1] == "later"), measures[0])
    layouts = _Layouts(data, study, measure, data.quantities[measure[0]].better == "higher")
    for source in dict.fromkeys(point.source for point in inputs.points if point.source):
        settings: dict[str, dict[int, list[Point]]] = {}
        for point in inputs.points:
            if point.source in (source, None):
                scales = settings.setdefault(study.setting_text(point.values), {})
                scales.setdefault(study.scale(point.values), []).append(point)
        for setting, scales in settings.items():
            for scale in sorted(scales):
                head = {"scale": scale, "setting": setting, "phase": measure[1]}
                ran = list(layouts.ran(head, scales[scale]))
                yield layouts.best(head, source, ran, scales[scale])
                yield from (row for row, _ in ran)


@dataclass(frozen=True)
class _Layouts:
    """The layouts of an experiment by its main measure, of which more is better if ``higher``."""

    data: ExperimentData
    study: LayoutStudy
    measure: Measure
    higher: bool

    @cached_property
    def more(self) -> dict[str, Measure | None]:
        """The metrics of the memory of a rank and of the utilisation, with their phases."""
        measures, units = self.data.measures, self.data.quantities
        memory = (each for each in measures if is_memory(each[0], units[each[0]].unit))
        mfu = (each for each in measures if _UTILISATION.search(each[0]))
        return {"memory": next(memory, None), "utilisation": next(mfu, None)}

    def ran(
        self, head: Mapping[str, Any], planned: Sequence[Point]
    ) -> Iterator[tuple[LayoutPoint, Point]]:
        """A row for each layout that ran, the best first; one with a value that is not positive did
        not run."""
        repeats = [(self.data.repeats(point, self.measure), point) for point in planned]
        known = [(float(of.mean()), point) for of, point in repeats if of.size and (of > 0).all()]
        known.sort(key=lambda each: -each[0] if self.higher else each[0])
        quantity, least = self.data.quantities[self.measure[0]], math.inf
        total = quantity.scope == "total" and quantity.unit.endswith("/s")
        for place, (value, point) in enumerate(known, 1):
            share = value / known[0][0]
            more: dict[str, Any] = {
                kind: of and (mean_of(self.data, point, of) or None)
                for kind, of in self.more.items()
            }
            memory = more["memory"]
            yield LayoutPoint(
                **point_columns(point), **head, **more, place=place, value=value,
                layout=self.study.text(point.values),
                per_rank=value / head["scale"] if total else value,
                share=share if self.higher else 1 / share,
                front=None if memory is None else memory < least,
            ), point  # fmt: skip
            least = min(least, memory or math.inf)

    def best(
        self, head: Mapping[str, Any], source: str, ran: Sequence[tuple[LayoutPoint, Point]],
        planned: Sequence[Point],
    ) -> BestLayout:  # fmt: skip
        """The row of the best layout of a scale, or of a scale at which none ran."""
        failed = [point.failed[0] for point in planned if point.failed and not point.rows.size]
        counts = sorted(Counter(failed).items(), key=lambda of: ("MEMORY" not in of[0], -of[1], of))
        shared: dict[str, Any] = {
            **head, "metric": self.measure[0], "ran": len(ran), "tried": len(planned),
            "failed": len(failed),
            "causes": ", ".join(f"{cause} {count}" for cause, count in counts),
            **{f"{kind}_metric": of and of[0] for kind, of in self.more.items()},
        }  # fmt: skip
        if not ran:
            known = {
                self.data.scale, *self.data.experiment["scale_parameters"], *self.study.workload
            }  # fmt: skip
            values = planned[0].values
            point = {name: value if name in known else None for name, value in values.items()}
            return BestLayout(
                point=point, source=source, repeats=0, planned=0, layout=None, **shared
            )
        (first, best), *others = ran
        pairs = [(best, other) if self.higher else (other, best) for _, other in others]
        ratios = [self.data.compare(*pair, self.measure) for pair in pairs]
        tested = ratios and all(ratio.known for ratio in ratios)
        return BestLayout(
            **point_columns(best), **shared,
            layout=first.layout,
            value=self.data.mean(best, self.measure),
            runs_failed=len(best.failed),
            next_layout=others[0][0].layout if others else None,
            ahead=ahead_of(ratios) if ratios else None,
            p=max(ratio.chance for ratio in ratios) if tested else None,
            median=float(np.median([row.share for row, _ in ran])),
            memory=first.memory, utilisation=first.utilisation,
        )  # fmt: skip


def ahead_of(ratios: Sequence[Ratio]) -> Estimate:
    """The best over the next one, with bounds on its being ahead of all others (multiple
    comparisons with the best: Hsu, J. Am. Stat. Assoc. 79, 1984)."""
    low, high = np.array([(ratio.low, ratio.high) for ratio in ratios], np.float64).min(axis=0)
    return Estimate.of(min(ratio.value for ratio in ratios), low, high)


MAKERS = (Maker((BestLayout, LayoutPoint), layout_rows),)


def best_layouts(results: ExperimentResults) -> Mapping[str, list[BestLayout]]:
    """By what is computed the rows of its scales: measured ones where there are any."""
    settings: dict[str, list[BestLayout]] = {}
    for row in results.of(BestLayout):
        if row.source == _source(results):
            settings.setdefault(row.setting, []).append(row)
    return settings


def layouts_that_ran(results: ExperimentResults) -> list[LayoutPoint]:
    """Layouts with a result, of the same source."""
    return [row for row in results.of(LayoutPoint) if row.source == _source(results)]


@dataclass(frozen=True)
class Held:
    """Up to which ``scale`` the best layouts of what is computed hold the target: by scale the best
    one, and its efficiency relative to that of the smallest scale."""

    setting: str
    best: Mapping[int, BestLayout]
    shares: Mapping[int, float]
    scale: int


def held_layouts(results: ExperimentResults) -> list[Held]:
    """Of all that is computed at several scales."""
    main, strong = results.main, results.entry["scaling"] == "strong"
    first = {(row.setting, row.scale): row for row in layouts_that_ran(results) if row.place == 1}
    held = []
    for setting, rows in best_layouts(results).items():
        best = {row.scale: row for row in rows if row.layout is not None}
        if main is None or len(best) < 2:
            continue
        rates = {
            scale: first[setting, scale].per_rank if main.higher
            else 1 / first[setting, scale].value / (scale if strong else 1)
            for scale in best
        }  # fmt: skip
        shares = {scale: rate / rates[min(best)] for scale, rate in rates.items()}
        above = [*takewhile(lambda scale: shares[scale] >= results.target, shares)]  # noqa: B023
        held.append(Held(setting, best, shares, above[-1]))
    return held


def _source(results: ExperimentResults) -> str | None:
    return "measured" if "measured" in results.sources else next(iter(results.sources), None)


BEST, FAILED = "best layout", "failed layouts"


def best_layout(results: ExperimentResults) -> list[Finding]:
    """The best of several layouts at each scale, those to run at and then the largest first;
    claimed where it is clear of all others."""
    rows = [row for of in best_layouts(results).values() for row in reversed(of)]
    to_run = {(held.setting, held.scale) for held in held_layouts(results)}
    rows.sort(key=lambda row: (row.setting, row.scale) not in to_run)
    return [_best(results, row, row.ahead) for row in rows if row.ahead]


def _best(results: ExperimentResults, row: BestLayout, ahead: Estimate) -> Finding:
    main = results.main
    mean, *bounds = numbers_of(row.value, main.factor if main else 1.0)
    state = CLEAR if row.p is not None and row.p <= SIGNIFICANT else OPEN
    return Finding(
        results.name, BEST, state, subject=row.layout or "",
        words=_words(results, row) | {"rival": row.next_layout or ""},
        numbers=(
            number_of("value", mean, main.unit if main else "", *bounds),
            estimate_of("ahead", ahead.less(1), "1"),
        ),
        claims=(claim_of(row.p, BEST, row.source, row.setting, row.scale),),
        reason="single runs: it may be chance" if row.p is None else "",
        flags=(HOLES,) if row.runs_failed else (), evidence=_evidence(results, row),
    )  # fmt: skip


def failed_layouts(results: ExperimentResults) -> list[Finding]:
    """Of each thing that is computed how many layouts failed at all scales."""
    findings = []
    for rows in best_layouts(results).values():
        bad = [row for row in rows if row.failed]
        failed, worst = sum(row.failed for row in bad), max(rows, key=lambda row: row.failed)
        causes = Counter(re.findall(r"[A-Z_]+", " ".join(row.causes for row in bad)))
        words = {
            "at": listed([results.scaled(row.scale) for row in bad]),
            "causes": listed([*causes]),
        }
        numbers = (
            number_of("failed", failed, "1"),
            number_of("tried", sum(row.tried for row in rows), "1"),
        )
        if failed:
            findings.append(
                Finding(
                    results.name, FAILED, NOTE, words=_words(results, worst) | words,
                    numbers=numbers,
                    evidence=_evidence(results, worst),
                )
            )  # fmt: skip
    return findings


def _words(results: ExperimentResults, row: BestLayout) -> dict[str, str]:
    of = f" of {row.setting}" if row.setting else ""
    return {"of": of, "at": results.scaled(row.scale)}


def _evidence(results: ExperimentResults, row: BestLayout) -> dict[str, object]:
    return declared_evidence(results, row) | {"setting": row.setting, "scale": row.scale}


RULES = (
    Rule(
        BEST, best_layout,
        says={CLEAR: "Best layout{of} at {at}: {subject} with {value}, {ahead:%} ahead of the "
              "next."},
        next={OPEN: "repeat the best two{of} at {at}: {subject}; {rival}"},
    ),
    Rule(
        FAILED, failed_layouts,
        says={NOTE: "{failed} of {tried} layouts{of} failed, at {at}: {causes}."},
    ),
)  # fmt: skip
