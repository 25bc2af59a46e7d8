"""What the probes of a campaign found of the network: the exchange of gradients, at any count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.network_fit import predicted_seconds
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import finite, plain
from scalesweep.core.plan_format import Plan
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.sweep_text import SWEEP
from scalesweep.tables.sweeps import sweep_column, sweep_tables

# What a probe and a program must have in common, for the one to tell of the other.
SHARED = ("ranks_per_node", "hierarchical_allreduce")


@dataclass(frozen=True)
class Network:
    """The best fit of a series of allreduces in one range of sizes (``analysis.network_fit``).

    ``parameters`` are those of the probe; ``bandwidth`` is None where no size takes longer than
    another.
    """

    source: str
    parameters: Mapping[str, Any]
    low_bytes: float
    high_bytes: float
    algorithm: str
    latency: float
    bandwidth: float | None

    def seconds(self, ranks: Floats, size: float) -> Floats:
        """How long an allreduce of ``size`` bytes takes on each number of ranks."""
        one = np.array([size])
        found = [
            predicted_seconds(self.algorithm, int(count), one, self.latency, self.bandwidth)[0]
            for count in ranks
        ]
        return np.array(found, np.float64)


def measured_networks(summary: pd.DataFrame, plan: Plan) -> list[Network]:
    """The networks that the probes of a plan's experiments have measured."""
    found: list[Network] = []
    if SWEEP not in summary or not summary[SWEEP].notna().any():
        return found
    for experiment in plan["experiments"]:
        data = ExperimentData(summary, experiment)
        frame = sweep_tables(data, data.points()).get("network")
        axes = [name for name in data.axes if name != "ranks"]
        names = {
            name: sweep_column(name, axes, "network")
            for name in (*Network.__annotations__, "best")
            if name not in ("source", "parameters")
        }
        for row in [] if frame is None else frame.to_dict("records"):
            values = {name: row[title] for name, title in names.items()}
            if not values.pop("best"):
                continue
            values["bandwidth"] = values["bandwidth"] if finite(values["bandwidth"]) else None
            own = {**experiment["fixed"], **{name: plain(row[name]) for name in axes}}
            found.append(Network(str(row["source"]), own, **values))
    return found


def networks_asked_for(summary: pd.DataFrame, plan: Plan) -> list[Network]:
    """The same; none where no experiment asks for predictions, because fits take their time."""
    asked = any(experiment.get("predict") for experiment in plan["experiments"])
    return measured_networks(summary, plan) if asked else []


def network_of(
    networks: Sequence[Network], source: str, parameters: Mapping[str, Any], size: float
) -> Network | None:
    """The network that exchanges of ``size`` bytes in runs of these parameters go through.

    Of those of the same source and the same ``SHARED`` parameters the one that agrees in most other
    parameters too, in the range of sizes that is nearest. None where nothing was probed so.
    """

    def agreeing(one: Network) -> int:
        both = one.parameters.keys() & parameters.keys()
        return sum(one.parameters[name] == parameters[name] for name in both)

    def away(one: Network) -> float:
        return max(one.low_bytes / size, size / one.high_bytes, 1.0)

    same = [
        one
        for one in networks
        if one.source == source
        and all(one.parameters.get(name) == parameters.get(name) for name in SHARED)
    ]
    return min(same, key=lambda one: (-agreeing(one), away(one)), default=None)
