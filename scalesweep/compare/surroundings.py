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
    subject: Difference | None


def surroundings(joined: Joined, base: Side, new: Side) -> Surroundings:
    """Compare where and with what the runs of joined points ran."""
    facts, started = [], []
    for name, side in ((BASE, base), (NEW, new)):
        runs = joined.runs[name]
        rows = side.summary.iloc[sorted(set(runs["row"][runs["pair"].isin(joined.both.index)]))]
        texts = rows[FACTS].tolist() if FACTS in rows else [None] * len(rows)
        facts.append(list(read_facts(rows["run_id"].tolist(), texts).values()))
        started.append(
            {(i, at) for i, at in zip(rows["run_id"], rows["started"], strict=True) if at}
        )
    known = [[facts_of(run) for run in side] for side in facts]
    every = {name for side in known for run in side for name in run}
    unlike = differences(known[0], known[1])
    alike = len(every) - sum(d.fact in every for d in unlike)
    # Of an external program its repository's commit, else the study's or scalesweep's.
    subjects = (PROGRAM,) if PROGRAM in every else (STUDY, GIT)
    by_fact = {difference.fact: difference for difference in unlike if difference.known}
    subject = next((by_fact[name] for name in subjects if name in by_fact), None)
    if apart := other_hosts(*[[set(run.hosts) for run in side] for side in facts]):
        unlike.insert(0, apart)
    return Surroundings(unlike, alike, len(started[0] & started[1]), subject)
