"""The table `links`: the latency between every two ranks, and which links are slow."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.arrays import open_arrays
from scalesweep.analysis.slow_links import judge_links
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.rank_columns import by_rank, machine_column
from scalesweep.core.record import RECORD, read_record, read_samples
from scalesweep.core.record_check import MAX_NUMBER
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import Maker, TableInputs

_log = logging.getLogger(__name__)

SECONDS = "link_seconds"  # array of the samples, [repeat, rank, rank]
SLOWEST_METRIC = ("slowest_latency", "run")  # only runs that have it are read
MAX_ROWS = 200_000
WITHIN, BETWEEN = "within a host", "between hosts"


@dataclass(frozen=True, kw_only=True)
class Pair(DeclaredRow, table="links"):
    """Two ranks of a run, the lower one first."""

    source: str | None = column("measured, simulated or imported")
    run_id: str = column("the run")
    repeat: int = column("its repeat")
    rank_a: int = column("the lower rank")
    rank_b: int = column("the other rank")
    host_a: str | None = column("host of `rank_a`; missing where the record does not tell")
    host_b: str | None = column("host of `rank_b`")
    link: str = column(f"the class of the link: `{WITHIN}` or `{BETWEEN}`")
    latency: float = column("half the time of a message to and fro, the best repeat", "s")
    typical: float = column("the median of the run's links of that class", "s")
    times: float = column("`latency` / `typical`", "1")
    score: float = column("robust standard deviations of the logarithm above the median", "1")
    threshold: float | None = column(
        "the `score` above which a link is slow; missing where there are too few links", "1"
    )
    slow: bool = column("whether it is")

    @property
    def ends(self) -> tuple[str, str]:
        """What it is a link of: hosts, or ranks where they share one or it is not known."""
        if self.host_a is None or self.host_b is None or self.host_a == self.host_b:
            on = f" on {self.host_a}" if self.host_a else ""
            return f"rank {self.rank_a}{on}", f"rank {self.rank_b}{on}"
        first, second = sorted((self.host_a, self.host_b))
        return first, second


def pair_rows(inputs: TableInputs) -> Iterator[Pair]:
    """The pairs of every run that timed its links, at most 200,000.

    A run whose files are damaged is left out, with a line.
    """
    data, runs = inputs.data, inputs.runs
    if runs is None or SLOWEST_METRIC not in data.measures:
        return
    rows = 0
    for point in inputs.points:
        ranks = int(point.values.get("ranks") or data.experiment["fixed"].get("ranks") or 1)
        for row in point.rows.tolist():
            pairs = ranks * (ranks - 1) // 2
            if rows + pairs > MAX_ROWS:
                break
            run_id = str(data.summary["run_id"].iloc[row])
            try:
                columns = _links(runs / run_id, ranks)
            except (UserError, *NOT_ARRAYS, *NO_USE) as error:
                data.unread.append(run_id)
                _log.warning("%s: %s: left out of the table of links", run_id, error)
                continue
            repeat = int(data.summary["repeat"].iloc[row])
            for values in zip(*columns.values(), strict=True):
                rows += 1
                yield Pair(
                    point=point.values, source=point.source, run_id=run_id, repeat=repeat,
                    **dict(zip(columns, values, strict=True)),
                )  # fmt: skip


def _links(folder: Path, ranks: int) -> dict[str, Any]:
    """Columns of a run's links; empty where it has timed none."""
    record = read_record(folder / RECORD)
    if record["samples"] is None:
        return {}
    arrays = open_arrays(read_samples(folder, record))
    if SECONDS not in arrays:
        return {}
    seconds = _best(arrays[SECONDS], ranks)
    names = by_rank(machine_column(record["resources"]), ranks)
    hosts = [str(host) for host in names] if names and all(names) else [None] * ranks
    return links_of(seconds, hosts)


def _best(array: Any, ranks: int) -> Floats:
    """The best repeat of each pair, ``[rank, rank]``."""
    if array.ndim != 3 or array.dtype.kind != "f" or array.shape[1:] != (ranks, ranks):
        raise UserError(f"{SECONDS} is {array.dtype} of shape {array.shape}")
    best = np.asarray(array.astype(np.float64).min(axis=0), np.float64)
    pairs = best[np.triu_indices(ranks, 1)]
    if not (pairs.size and pairs.min() > 0 and pairs.max() < MAX_NUMBER):
        raise UserError(f"{SECONDS} holds what is no positive time")
    return best


def links_of(seconds: Floats, hosts: Sequence[str | None]) -> dict[str, Any]:
    """Columns of the links of one run: ``seconds`` ``[rank, rank]``, the host of each rank."""
    first, second = np.triu_indices(len(seconds), 1)
    ends = [(hosts[a], hosts[b]) for a, b in zip(first, second, strict=True)]
    frame = pd.DataFrame({"rank_a": first, "rank_b": second, "latency": seconds[first, second]})
    frame["host_a"], frame["host_b"] = [a for a, _ in ends], [b for _, b in ends]
    frame["link"] = [_kind(*pair) for pair in ends]
    parts = []
    for kind in dict.fromkeys(frame["link"]):
        own = frame[frame["link"] == kind]
        judged = judge_links(own["latency"].to_numpy())
        names = ("typical", "threshold", "score", "slow")
        parts.append(own.assign(**{name: getattr(judged, name) for name in names}))
    frame = pd.concat(parts).sort_index()
    frame["times"] = frame["latency"] / frame["typical"]
    return {str(name): own.tolist() for name, own in frame.items()}


def _kind(first: str | None, second: str | None) -> str:
    """The class of a link; where hosts are not known all links are of one."""
    return WITHIN if first is not None and first == second else BETWEEN


MAKERS = (Maker(Pair, pair_rows),)
