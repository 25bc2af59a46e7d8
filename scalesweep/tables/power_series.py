"""Power over time of a run, from power.csv in its folder.

The first row of an energy counter has no watts, as nothing is known of the time before; each later
one holds the mean since the row before, so the counter's joules are kept whatever is done with the
series. A power sensor has watts from the first row on; between two values its power goes in a line.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.types import Floats
from scalesweep.compute.power.counters import SLACK, SLACK_S, WATCHED
from scalesweep.core.files import content_digest
from scalesweep.core.record_check import BadRecordError


@dataclass(frozen=True)
class Channel:
    """A domain of a host: ``joules[i]`` were used from ``times[0]`` to ``times[i]`` (Unix seconds).

    ``unknown[i]`` of these seconds nothing is known of, and their joules are not in there;
    ``counted`` if the domain is part of the total (others lie within one that is).
    """

    host: str
    domain: str
    counted: bool
    times: Floats
    joules: Floats
    unknown: Floats

    def between(self, edges: Floats) -> Floats:
        """Joules between consecutive moments; NaN where not all of the time was watched."""
        seconds = np.diff(edges)
        watched = np.diff(np.clip(edges, self.times[0], self.times[-1]))
        watched = watched - np.diff(np.interp(edges, self.times, self.unknown))
        used = np.diff(np.interp(edges, self.times, self.joules))
        return np.where(seconds - watched <= SLACK_S + SLACK * seconds, used, np.nan)


def read_power(path: Path, energy: Mapping[str, Any]) -> list[Channel]:
    """The channels of power.csv; ``energy`` is that of the record, which says what is counted.

    Raises BadRecordError if the file is no such table, or not the one that the record tells of.
    """
    import pandas as pd  # a third of a second, which runs without power are spared

    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadRecordError(f"{path.name} cannot be read ({error})") from None
    table = energy.get("table")
    if table is not None and content_digest(content) != table["blake2b"]:
        raise BadRecordError(f"{path.name} was changed: checksum differs")
    try:
        frame = pd.read_csv(
            io.BytesIO(content), usecols=["time", "host", "domain", "watts"],
            dtype={"host": str, "domain": str, "watts": float},
        )  # fmt: skip
        stamps = pd.to_datetime(frame["time"], utc=True, format="ISO8601")
    except ValueError:
        raise BadRecordError(f"{path.name} is not a table of time, host, domain, watts") from None
    frame["time"] = stamps.astype("datetime64[ns, UTC]").astype("int64") / 1e9
    counts = _counted(energy)
    return [
        _channel(
            (str(host), str(domain), (host, domain) in counts),
            *rows[["time", "watts"]].to_numpy().T,
        )
        for (host, domain), rows in frame.sort_values("time").groupby(["host", "domain"])
        if len(rows) > 1
    ]


def _counted(energy: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Hosts and domains that are part of the total."""
    domains = energy.get("domains") or {}
    return {(host, name) for host, of in domains.items() for name in of if of[name]["counted"]}


def _channel(names: tuple[str, str, bool], times: Floats, watts: Floats) -> Channel:
    seconds = np.diff(times)
    counter = not np.isfinite(watts[0])
    steps = (watts[1:] if counter else (watts[1:] + watts[:-1]) / 2) * seconds
    unwatched = ~np.isfinite(steps)
    if not counter:
        unwatched |= seconds > WATCHED * max(float(np.median(seconds)), 0.5)

    def summed(values: Floats) -> Floats:
        return np.concatenate([[0.0], np.cumsum(values)])

    joules = summed(np.where(unwatched, 0.0, steps))
    return Channel(*names, times, joules, summed(np.where(unwatched, seconds, 0.0)))


def mean_power(channels: Iterable[Channel], edges: Floats) -> Floats:
    """Mean watts of the sum of channels between consecutive ``edges`` (Unix seconds).

    NaN where one of them was not watched.
    """
    used = np.zeros(edges.size - 1)
    for channel in channels:
        used = used + channel.between(edges)
    return np.asarray(used / np.diff(edges), np.float64)
