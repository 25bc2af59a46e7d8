"""Whether two sides ran on the same machine with the same software, and where they did not."""

from dataclasses import dataclass

from scalesweep.compare.joined import BASE, NEW, Joined
from scalesweep.compare.sides import Side
from scalesweep.judge.facts import Difference, differences, facts_of, other_hosts
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
    apart = other_hosts(*[[set(r.hosts) for r in f] for f in facts])
    started = [
        {key for key in of[["run_id", "started"]].itertuples(index=False, name=None) if key[1]}
        for of in own
    ]
    return Surroundings(
        [*([apart] if apart else []), *unlike],
        alike,
        len(started[0] & started[1]),
        {name: sorted(set(of["source"])) for name, of in zip((BASE, NEW), own, strict=True)},
        next((by_fact[name] for name in subjects if name in by_fact), None),
    )
