"""Whether two sides ran on the same machine with the same software, and where they did not."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scalesweep.compare.inputs import Side
from scalesweep.compare.machines import MachineRate, machine_rates
from scalesweep.compare.matching import Pair
from scalesweep.core.formatting import counted, listed
from scalesweep.tables.provenance import GIT, PROGRAM, STUDY, RunFacts

MACHINE, SOFTWARE, CODE, SETTINGS, HOSTS = "machine", "software", "code", "variables", "hosts"
NOT_RECORDED = "not recorded"
MAX_VALUES = 4

# Of the host of the launcher; the hardware of all hosts says the same with more detail.
_NODE = ("CPU", "cores", "governor", "memory", "GPUs")
_MACHINE = (*_NODE, "kernel", "GPU")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")

# Fact -> value -> number of runs.
_Values = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Difference:
    """A fact that is not the same on both sides; ``known``: both sides have recorded it."""

    kind: str
    fact: str
    base: str
    new: str
    known: bool


@dataclass(frozen=True)
class Surroundings:
    """What differs around the runs that are compared."""

    differences: list[Difference]
    alike: int  # facts that are the same
    shared: int  # runs that both sides have, which are one and the same
    sources: dict[str, list[str]]  # base, new -> sources of its compared runs
    machine: list[MachineRate] = field(default_factory=list)  # by canaries of both sides
    # The commit of the measured program, where the sides differ in it: what is compared.
    subject: Difference | None = None

    def of(self, *kinds: str, known: bool = True) -> list[Difference]:
        """The differences of some kinds, without the subject of the comparison."""
        return [
            difference
            for difference in self.differences
            if difference.kind in kinds
            and difference.known == known
            and difference is not self.subject
        ]


def surroundings(pairs: Iterable[Pair], base: Side, new: Side) -> Surroundings:
    """Compare where and with what the runs of joined points ran."""
    joined = list(pairs)
    rows = {
        "base": [row for pair in joined if pair.base for row in pair.base.rows],
        "new": [row for pair in joined if pair.new for row in pair.new.rows],
    }
    sides = {"base": base, "new": new}
    facts = {role: side.facts(rows[role]) for role, side in sides.items()}
    total = {role: len(set(rows[role])) for role in rows}
    kinds: dict[str, str] = {}
    values = {role: _values(facts[role], total[role], kinds) for role in facts}
    differences, alike = [], 0
    for fact, kind in kinds.items():
        mine, theirs = (
            values[role].get(fact, {NOT_RECORDED: total[role]}) for role in ("base", "new")
        )
        if mine.keys() == theirs.keys():
            alike += 1
            continue
        known = {NOT_RECORDED} not in (mine.keys(), theirs.keys())
        differences.append(Difference(kind, fact, _values_text(mine), _values_text(theirs), known))
    differences += _hosts(facts["base"], facts["new"])
    order = (MACHINE, HOSTS, SOFTWARE, CODE, SETTINGS)
    differences.sort(key=lambda difference: (order.index(difference.kind), not difference.known))
    sources = {
        role: sorted({side.runs[row].source for row in rows[role]}) for role, side in sides.items()
    }
    machine = machine_rates(joined, base, new)
    subject = _subject(differences, kinds)
    return Surroundings(differences, alike, _shared(sides, rows), sources, machine, subject)


def _subject(differences: Sequence[Difference], recorded: Iterable[str]) -> Difference | None:
    """The difference in the commit of the measured program: of an external one its repository's,
    else the study's or scalesweep's, in which the shipped benchmarks are."""
    names = (PROGRAM,) if PROGRAM in recorded else (STUDY, GIT)
    known = {
        difference.fact: difference
        for difference in differences
        if difference.kind == CODE and difference.known
    }
    return next((known[name] for name in names if name in known), None)


def _values(runs: Sequence[RunFacts], total: int, kinds: dict[str, str]) -> _Values:
    """Every fact of these runs with its values; notes the kind of each fact in ``kinds``."""
    by_fact: _Values = {}
    for run in runs:
        stated: dict[str, dict[str, None]] = {}
        for facts, _ in run.hardware:
            for name, value in facts:
                kinds.setdefault(name, MACHINE)
                stated.setdefault(name, {})[value] = None
        for name, value in run.environment:
            if run.hardware and name in _NODE:
                continue
            kinds.setdefault(name, _kind(name))
            stated.setdefault(name, {})[value] = None
        for name, several in stated.items():
            for value in several:
                values = by_fact.setdefault(name, {})
                values[value] = values.get(value, 0) + 1
    for values in by_fact.values():
        # A run on different hosts counts for each of their values.
        if (lacking := total - sum(values.values())) > 0:
            values[NOT_RECORDED] = lacking
    return by_fact


def _kind(name: str) -> str:
    if name in _MACHINE:
        return MACHINE
    if name.startswith("git commit"):  # of scalesweep, of the study
        return CODE
    return SETTINGS if _VARIABLE.fullmatch(name) else SOFTWARE


def _hosts(base: Iterable[RunFacts], new: Iterable[RunFacts]) -> list[Difference]:
    """Other hosts matter where none is common: jobs of a cluster are never on the same ones."""
    mine, theirs = ({host: None for run in runs for host in run.hosts} for runs in (base, new))
    if mine.keys() & theirs.keys() or not (mine or theirs):
        return []
    known = bool(mine and theirs)
    return [Difference(HOSTS, "hosts", _host_words(mine), _host_words(theirs), known)]


def _host_words(names: Iterable[str]) -> str:
    named = sorted(names)
    if not named:
        return NOT_RECORDED
    return f"{counted(len(named), 'host')}: {listed(named, MAX_VALUES)}"


def _values_text(values: dict[str, int]) -> str:
    if len(values) == 1:
        return next(iter(values))
    ranked = sorted(values.items(), key=lambda item: -item[1])
    return listed([f"{value} ({counted(n, 'run')})" for value, n in ranked], MAX_VALUES)


def _shared(sides: dict[str, Side], rows: dict[str, list[int]]) -> int:
    """Runs that are on both sides: the same id, started at the same moment."""
    names = [
        {(sides[role].runs[row].run_id, sides[role].runs[row].started) for row in rows[role]}
        for role in ("base", "new")
    ]
    return len({name for name in names[0] & names[1] if name[1] not in ("", "None")})
