"""The table `links`: the latency between every two ranks, and which links are slow."""

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.arrays import Arrays
from scalesweep.analysis.slow_links import judge_links
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.files import content_digest, read_regular
from scalesweep.core.npy import MAX_ARCHIVE, NO_USE, NOT_ARRAYS
from scalesweep.core.rank_columns import by_rank, machine_column
from scalesweep.core.record import RECORD, SAMPLES, BadRecordError, checksums
from scalesweep.core.record_content import MAX_NUMBER
from scalesweep.planning.record_reader import read_record
from scalesweep.tables.points import ExperimentData, Point

_log = logging.getLogger(__name__)

SECONDS = "link_seconds"  # array of the samples, [repeat, rank, rank]
SLOWEST_METRIC = ("slowest_latency", "run")  # only runs that have it are read
MAX_ROWS = 200_000
WITHIN, BETWEEN = "within a host", "between hosts"
NAMES = (
    *("rank_a", "rank_b", "host_a", "host_b", "link", "latency", "typical", "times", "score"),
    *("threshold", "slow"),
)


def link_column(name: str, axes: Sequence[str]) -> str:
    """Column of the table: its name, unless a varying parameter has it."""
    return f"link_{name}" if name in axes else name


def link_table(
    data: ExperimentData, points: Sequence[Point], runs: Path | None
) -> pd.DataFrame | None:
    """A row per run and pair of ranks, the lower one first.

    Columns: varying parameters, ``source``, ``run_id``, ``repeat``, ``rank_a``, ``rank_b`` and
    their hosts (missing where the record does not tell), ``link`` (the class: within a host or
    between hosts), ``latency`` (s, the best repeat), ``typical`` (the median of the run's links of
    that class), ``times`` (latency over it), ``score`` and ``threshold`` (``analysis.slow_links``;
    no threshold where there are too few links) and ``slow``. At most 200,000 rows; a run whose
    files are damaged is left out, with a line. None without any.
    """
    if runs is None or SLOWEST_METRIC not in data.measures:
        return None
    frames: list[dict[str, Any]] = []
    rows = 0
    for point in points:
        ranks = int(point.values.get("ranks") or data.experiment["fixed"].get("ranks") or 1)
        for row in point.rows.tolist():
            pairs = ranks * (ranks - 1) // 2
            if rows + pairs > MAX_ROWS:
                break
            run_id = str(data.summary["run_id"].iloc[row])
            try:
                links = _links(runs / run_id, ranks)
            except (UserError, *NOT_ARRAYS, *NO_USE) as error:
                data.unread.append(run_id)
                _log.warning("%s: %s: left out of the table of links", run_id, error)
                continue
            if links:
                repeat = int(data.summary["repeat"].iloc[row])
                head = {"source": point.source, "run_id": run_id, "repeat": repeat}
                rows += pairs
                frames.append({**point.values, **head, **links})
    if not frames:
        return None
    table = {}
    columns = [(name, name) for name in (*data.axes, "source", "run_id", "repeat")]
    for name, title in columns + [(name, link_column(name, data.axes)) for name in NAMES]:
        parts = [_column(frame, name) for frame in frames]
        table[title] = typed_values([value for part in parts for value in part])
    result = pd.DataFrame(table)
    result.attrs["units"] = {}
    return result


def _column(frame: Mapping[str, Any], name: str) -> list[Any]:
    value = frame[name]
    return value if isinstance(value, list) else [value] * len(frame["rank_a"])


def _links(folder: Path, ranks: int) -> dict[str, Any]:
    """Columns of a run's links; empty where it has timed none."""
    record = read_record(folder / RECORD)
    expected = checksums(record).get(SAMPLES)
    if expected is None:
        return {}
    content = read_regular(folder / SAMPLES, MAX_ARCHIVE)
    if content_digest(content) != expected:
        raise BadRecordError(f"{SAMPLES} was changed: checksum differs")
    arrays = Arrays(content, verified=True)
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
    latency = seconds[first, second]
    kinds = [_kind(hosts[a], hosts[b]) for a, b in zip(first, second, strict=True)]
    columns: dict[str, Any] = {
        "rank_a": first.tolist(), "rank_b": second.tolist(),
        "host_a": [hosts[rank] for rank in first], "host_b": [hosts[rank] for rank in second],
        "link": kinds, "latency": latency.tolist(),
    }  # fmt: skip
    size = len(kinds)
    typical, times, score, threshold = (np.full(size, math.nan) for _ in range(4))
    slow = np.zeros(size, np.bool_)
    for kind in set(kinds):
        places = np.array([place for place, key in enumerate(kinds) if key == kind], np.intp)
        judged = judge_links(latency[places])
        typical[places], threshold[places] = judged.typical, judged.threshold
        times[places], score[places] = latency[places] / judged.typical, judged.score
        slow[places] = judged.slow
    numbers = {"typical": typical, "times": times, "score": score, "threshold": threshold}
    return {**columns, **{n: v.tolist() for n, v in numbers.items()}, "slow": slow.tolist()}


def _kind(host: str | None, other: str | None) -> str:
    """The class of a link; where hosts are not known all links are of one."""
    return WITHIN if host is not None and host == other else BETWEEN
