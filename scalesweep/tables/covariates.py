"""The canary as covariate of ratios: which kind is used for a quantity, if any is."""

import json
import math
from collections.abc import Hashable, Mapping

import numpy as np

from scalesweep.analysis.blocks import Layout
from scalesweep.analysis.covariate import Covariate, choose
from scalesweep.analysis.types import Floats, Places
from scalesweep.tables.canary_rates import CANARY, KINDS
from scalesweep.tables.points import ExperimentData, Measure


def covariates(data: ExperimentData, measure: Measure) -> dict[Hashable, Covariate]:
    """By ``place_of`` a point the covariate of its repeats of a quantity, where one is used.

    Only runs that form blocks and have a canary before each of them.
    """
    rates = _before(data)
    if not rates:
        return {}
    values = data.numbers(measure[0], "mean", measure[1])
    covariates: dict[Hashable, Covariate] = {}
    for layout in data.layouts:
        blocks = layout.blocks(values)
        if blocks is None:
            continue
        kinds = {
            kind: logs
            for kind, of_runs in rates.items()
            if np.isfinite(logs := of_runs[_rows(layout, blocks.places)]).all()
        }
        if covariate := choose(blocks, kinds):
            covariates.update(dict.fromkeys(blocks.places, covariate))
    return covariates


def _rows(layout: Layout, places: Mapping[Hashable, int]) -> Places:
    """Rows of the summary ``[point, block]`` in the order of the blocks' places."""
    where = {point: number for number, point in enumerate(layout.points)}
    return layout.runs[[where[point] for point in sorted(places, key=places.__getitem__)]]


def _before(data: ExperimentData) -> dict[str, Floats]:
    """By kind the logarithm of its rate before each run of the summary; NaN where there is none."""
    texts = data.texts(CANARY)
    if not any(texts):
        return {}
    looks = [json.loads(text).get("before", {}) if text else {} for text in texts]
    return {
        kind: np.array([math.log(float(of[kind][1])) if kind in of else math.nan for of in looks])
        for kind in KINDS
        if any(kind in of for of in looks)
    }
