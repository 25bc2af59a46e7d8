"""A campaign of training and of the probes of its machine, made up: summary, plan and tables."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.network_fit import RING, predicted_seconds
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.plan_format import Plan
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import as_text, exchange_of, sweep_of
from scalesweep.tables.layers import LAYERS, LayerTimes
from tests.fakes.plan import whole_plan

SIZES = [4**n for n in range(1, 14)]  # 4 B to 64 MiB


def note(values: Sequence[Any], amounts: Sequence[float], **more: Any) -> dict[str, Any]:
    """What a record's notes say of a sweep."""
    return {
        "by": "size", "unit": None, "amount_unit": "bytes", "values": list(values),
        "amounts": list(amounts), "calls": [1] * len(values), "left_out": {}, **more,
    }  # fmt: skip


def exchange(tensors: Sequence[int], fusion: float | None) -> str:
    """What the summary keeps of a run that exchanges such tensors."""
    said = {"by": "horovod", "tensor_bytes": list(tensors), "bucket_bytes": fusion}
    made = exchange_of({"notes": {"exchange": said}})
    assert made is not None and made.total == sum(tensors)
    return str(as_text(made))


class Campaign:
    """Experiments whose runs are given by what their rows of the summary hold."""

    def __init__(self, seed: int = 3) -> None:
        self.rows: list[dict[str, Any]] = []
        self.experiments: list[dict[str, Any]] = []
        self.draw = np.random.default_rng(seed)

    def add(
        self, name: str, runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], **entry: Any
    ) -> "Campaign":
        """An experiment of runs, each with its varying parameters and its row."""
        planned = []
        for number, (point, row) in enumerate(runs):
            run_id = f"{name}-{number}"
            planned.append({"run_id": run_id, "repeat": number, "point": point, "status": "done"})
            plain = {"source": "measured", "started": "2026-01-01", "repeat": number,
                     "samples": pd.NA, "bytes": pd.NA, "warnings": None, "benchmark": "b",
                     "_metrics": "{}"}  # fmt: skip
            self.rows.append({"run_id": run_id, **plain, **row})
        axes = list(runs[0][0])
        self.experiments.append({"name": name, "axes": axes, "runs": planned, **entry})
        return self

    def network(
        self, latency: float, bandwidth: float, repeats: int = 3,
        ranks: Sequence[int] = (2, 4), **fixed: Any,
    ) -> "Campaign":  # fmt: skip
        """Allreduces on a ring of such latency (s) and bandwidth (bytes/s)."""
        said = note(SIZES, SIZES, by="message size", unit="bytes", collective="allreduce")
        runs = []
        for count in ranks:
            ideal = predicted_seconds(RING, count, np.array(SIZES, float), latency, bandwidth)
            for _ in range(repeats):
                seconds = ideal * (1 + 0.01 * self.draw.standard_normal(len(SIZES)))
                arrays = {"sweep_seconds": seconds[:, None, None]}
                swept = sweep_of({"notes": {"sweep": said}}, arrays)
                runs.append(({"ranks": count}, {"_sweep": as_text(swept)}))
        more = {"ceiling": "network", "main_metric": "rate", "fixed": {"tensors": 1, **fixed}}
        return self.add("network", runs, **more)

    def rates(self, name: str, kind: str, values: Sequence[float], **fixed: Any) -> "Campaign":
        """A probe of one point with the main metric of its repeats."""
        runs = [({}, {"rate_mean_run": value}) for value in values]
        more = {"ranks": 1, "ranks_per_node": 1, **fixed}
        return self.add(name, runs, ceiling=kind, main_metric="rate", fixed=more)

    def layers(self, layers: Sequence[Any], weights: int, **fixed: Any) -> "Campaign":
        """Layers of a model: name, kind, FLOP and bytes of both passes, all of them once."""
        every = [*layers, ("update", "update", 2.0 * weights, 12.0 * weights)]
        names, kinds, flop, moved = (list(column) for column in zip(*every, strict=True))
        ones = [1] * len(every)
        text = LayerTimes(
            names, kinds, ones, flop, [0.0] * len(every), moved, [0.0] * len(every),
            [1e-3] * len(every), [1e-3] * len(every), 1.0, 1e-6,
        )  # fmt: skip
        parameters = {"model": {"workload": True}}
        return self.add(
            "layers", [({}, {LAYERS: json.dumps(text.__dict__)})], parameters=parameters,
            fixed={"ranks": 1, "ranks_per_node": 1, **fixed},
        )  # fmt: skip

    def done(self, **more: Any) -> tuple[pd.DataFrame, Plan]:
        """Summary and plan, with more of its keys."""
        summary = pd.DataFrame(self.rows)
        meaning = {"unit": "bytes/s", "better": "higher", "scope": "total"}
        weights = {"unit": "parameters", "better": "lower", "scope": "rank"}
        summary.attrs["metrics"] = {"b": {"rate": meaning, "model_parameters": weights}}
        return summary, whole_plan({"experiments": self.experiments, **more})

    def study(self, name: str = "training", **more: Any) -> ExperimentResults:
        """An experiment with its tables."""
        summary, plan = self.done(**more)
        tables = make_tables(summary, plan)
        (entry,) = [one for one in plan["experiments"] if one["name"] == name]
        return ExperimentResults(entry, tables[name])
