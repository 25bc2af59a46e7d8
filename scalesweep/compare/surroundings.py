"""Whether two sides ran on the same machine with the same software, and where they did not."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scalesweep.compare.joined import BASE, NEW, Joined
from scalesweep.compare.sides import Side
from scalesweep.judge.facts import Difference, differences, facts_of, machine_moved, other_hosts
from scalesweep.tables.bookkeeping import CANARY, CANARY_WORDS
from scalesweep.tables.provenance import FACTS, GIT, PROGRAM, STUDY, read_facts


@dataclass(frozen=True)
class Surroundings:
    """What differs around the runs that are compared; ``alike``: facts that are the same;
    ``shared``: runs that both sides have, which are one and the same.

    ``subject``: the commit of the measured program, if the sides differ in it.
    """

    differences: list[Difference]
    alike: int
    shared: int
    sources: dict[str, list[str]]
    subject: Difference | None


def surroundings(joined: Joined, base: Side, new: Side) -> Surroundings:
    """Compare where and with what the runs of joined points ran."""
    both = joined.both.index
    runs = {name: of[of["pair"].isin(both)] for name, of in joined.runs.items()}
    own = [
        side.summary.iloc[sorted(set(runs[name]["row"]))]
        for name, side in ((BASE, base), (NEW, new))
    ]
    facts = [
        list(read_facts(of["run_id"].tolist(), of[FACTS].tolist()).values()) if FACTS in of else []
        for of in own
    ]
    known = [[facts_of(run) for run in side] for side in facts]
    every = {name for side in known for run in side for name in run}
    unlike = differences(known[0], known[1])
    alike = len(every) - sum(d.fact in every for d in unlike)
    # Of an external program its repository's commit, else the study's or scalesweep's.
    subjects = (PROGRAM,) if PROGRAM in every else (STUDY, GIT)
    by_fact = {difference.fact: difference for difference in unlike if difference.known}
    around = [*_moved(runs, base, new), other_hosts(*[[set(r.hosts) for r in f] for f in facts])]
    started = [
        {key for key in of[["run_id", "started"]].itertuples(index=False, name=None) if key[1]}
        for of in own
    ]
    return Surroundings(
        [*(difference for difference in around if difference), *unlike],
        alike,
        len(started[0] & started[1]),
        {name: sorted(set(of["source"])) for name, of in zip((BASE, NEW), own, strict=True)},
        next((by_fact[name] for name in subjects if name in by_fact), None),
    )


def _moved(runs: Mapping[str, pd.DataFrame], base: Side, new: Side) -> list[Difference | None]:
    """That the machine's own speed changed, by the canaries of points that have it on both sides;
    each point counts relative to its own mean, as ranks and nodes differ between points."""
    if not all(CANARY in side.summary for side in (base, new)):
        return []
    old, now = (_looks(runs[name], side) for name, side in ((BASE, base), (NEW, new)))
    means = old.groupby(["kind", "pair"])["log"].mean().rename("middle").reset_index()
    old, now = old.merge(means), now.merge(means)
    old = old.merge(now[["kind", "pair"]].drop_duplicates())
    moved: list[Difference | None] = []
    for kind in CANARY_WORDS:
        level = old.loc[old["kind"] == kind, "middle"].mean()
        rates = [
            np.exp(of["log"] - of["middle"] + level)[of["kind"] == kind].tolist()
            for of in (old, now)
        ]
        moved.append(machine_moved(kind, *rates))
    return moved


def _looks(runs: pd.DataFrame, side: Side) -> pd.DataFrame:
    """The logarithm of each run's rate by kind of canary: the mean over its looks."""
    texts = side.summary[CANARY].iloc[runs["row"]]
    rows = [
        (pair, row, kind, np.log(look[kind][1]))
        for pair, row, text in zip(runs["pair"], runs["row"], texts, strict=True)
        if isinstance(text, str)
        for look in json.loads(text).values()
        for kind in look
    ]
    looks = pd.DataFrame(rows, columns=["pair", "row", "kind", "log"])
    return looks.groupby(["pair", "row", "kind"])["log"].mean().reset_index()
