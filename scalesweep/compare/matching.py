"""Which points of two sides are the same: benchmark, version and the value of every parameter."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalesweep.compare.inputs import Run, Side
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import plain
from scalesweep.core.status import Status

# Benchmark and version.
Kind = tuple[str, int]


@dataclass
class SidePoint:
    """The finished runs that one side has of a point, all of one source."""

    kind: Kind
    values: dict[str, Any]  # every parameter
    assumed: tuple[str, ...]  # those that its records do not have, at their defaults
    source: str
    experiments: tuple[str, ...]
    rows: list[int] = field(default_factory=list)  # of the side's summary


@dataclass
class Pair:
    """A point that one side or both have; ``why``: what became of it on the side without it."""

    experiment: str
    base: SidePoint | None
    new: SidePoint | None
    why: str = ""

    @property
    def point(self) -> SidePoint:
        """The point on a side that has it."""
        point = self.base or self.new
        assert point is not None
        return point

    @property
    def source(self) -> str:
        """``measured``, or where the sides differ ``imported, new: measured``."""
        if self.base and self.new and self.base.source != self.new.source:
            return f"{self.base.source}, new: {self.new.source}"
        return self.point.source


@dataclass(frozen=True)
class Assumption:
    """A parameter that a side's runs of a benchmark do not have, and what it counts as there."""

    role: str
    kind: Kind
    name: str
    known: bool  # whether a plan has its default
    default: Any
    stated_by: str


@dataclass
class Joined:
    """The points of two sides, matched."""

    both: list[Pair]
    unmatched: list[Pair]  # of one side only
    versions: list[Pair]  # equal in all but the version of the benchmark
    assumptions: list[Assumption]
    apart: list[str]  # why benchmarks of both sides have no point in common, in words


def join(base: Side, new: Side) -> Joined:
    """Match the points of two sides.

    A parameter that the runs of one side lack counts as its default, where a plan has it. Sources
    are never mixed: a point with several on one side is matched by source, and across sources only
    where the sides have none in common.
    """
    defaults = _Defaults(base, new)
    here, there = _points(base, defaults), _points(new, defaults)
    both: list[Pair] = []
    alone: list[tuple[SidePoint | None, SidePoint | None]] = []
    for key in dict.fromkeys([*here, *there]):
        mine, theirs = here.get(key, {}), there.get(key, {})
        common = [source for source in mine if source in theirs]
        if common:
            matched = [(source, source) for source in common]
        else:
            matched = [(source, other) for source in mine for other in theirs]
        both += [_pair(mine[source], theirs[other]) for source, other in matched]
        alone += [(p, None) for s, p in mine.items() if not theirs or (common and s not in common)]
        alone += [(None, p) for s, p in theirs.items() if not mine or (common and s not in common)]
    unmatched, versions = [], []
    other_versions = _Versions(here, there)
    fates = {"base": _fates(base, defaults), "new": _fates(new, defaults)}
    for mine_only, theirs_only in alone:
        twin = other_versions.twin(mine_only, theirs_only)
        if twin is not None:
            if twin not in versions:
                versions.append(twin)
            continue
        pair = _pair(mine_only, theirs_only)
        missing = "new" if pair.new is None else "base"
        pair.why = fates[missing].get(_key(pair.point.kind, pair.point.values), "not planned there")
        if (pair.base and there.get(_key(pair.point.kind, pair.point.values))) or (
            pair.new and here.get(_key(pair.point.kind, pair.point.values))
        ):
            pair.why = "there from another source only"
        unmatched.append(pair)
    apart = _apart(here, there, {pair.point.kind for pair in both})
    return Joined(both, unmatched, versions, defaults.assumptions, apart)


_Key = tuple[Kind, str]
_Points = dict[_Key, dict[str, SidePoint]]


def _key(kind: Kind, values: Mapping[str, Any]) -> _Key:
    return kind, canonical_json({name: plain(value) for name, value in values.items()})


class _Defaults:
    """The parameters that runs of either side have, and what a missing one counts as."""

    def __init__(self, base: Side, new: Side) -> None:
        self._names: dict[Kind, dict[str, None]] = {}
        self._filled: dict[tuple[str, Kind], dict[str, Assumption]] = {}
        known: dict[str, dict[Kind, Mapping[str, Any]]] = {}
        for side in (base, new):
            for run in side.runs:
                names = self._names.setdefault((run.benchmark, run.version), {})
                names.update(dict.fromkeys(run.point))
            plans = known.setdefault(side.role, {})
            for entry in side.experiments:
                kind = (str(entry["benchmark"]), int(entry["version"]))
                plans[kind] = {**plans.get(kind, {}), **entry["parameters"]}
        self._known = known

    @property
    def assumptions(self) -> list[Assumption]:
        """What the runs of one side lack, but not what runs of both sides lack."""
        assumptions = [
            assumption for by_name in self._filled.values() for assumption in by_name.values()
        ]
        roles = Counter((assumption.kind, assumption.name) for assumption in assumptions)
        return [
            assumption for assumption in assumptions if roles[assumption.kind, assumption.name] == 1
        ]

    def completed(self, role: str, run: Run) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Every parameter of a run, and the names of those that its record does not have."""
        return self.fill(role, (run.benchmark, run.version), run.point)

    def fill(
        self, role: str, kind: Kind, point: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """A point with the defaults of what it lacks, and the names of those."""
        lacking = self._names.get(kind, {}).keys() - point.keys()
        if not lacking:
            return dict(point), ()
        known = {name: self._assume(role, kind, name) for name in sorted(lacking)}
        filled = {
            name: assumption.default for name, assumption in known.items() if assumption.known
        }
        return {**point, **filled}, tuple(filled)

    def _assume(self, role: str, kind: Kind, name: str) -> Assumption:
        assumed = self._filled.setdefault((role, kind), {})
        if name not in assumed:
            other = "new" if role == "base" else "base"
            for plan in (role, other):
                parameters = self._known[plan].get(kind, {})
                if name in parameters:
                    default = parameters[name].get("default")
                    assumed[name] = Assumption(role, kind, name, True, default, plan)
                    break
            else:
                assumed[name] = Assumption(role, kind, name, False, None, "")
        return assumed[name]


def _points(side: Side, defaults: _Defaults) -> _Points:
    """Points of a side by what they are, and by source."""
    experiments: dict[str, dict[str, None]] = {}
    for entry in side.experiments:
        for planned in entry["runs"]:
            experiments.setdefault(planned["run_id"], {})[str(entry["name"])] = None
    points: _Points = {}
    for run in side.runs:
        values, assumed = defaults.completed(side.role, run)
        kind = (run.benchmark, run.version)
        names = tuple(experiments.get(run.run_id, ()))
        by_source = points.setdefault(_key(kind, values), {})
        fresh = SidePoint(kind, values, assumed, run.source, names)
        by_source.setdefault(run.source, fresh).rows.append(run.row)
    return points


def _pair(base: SidePoint | None, new: SidePoint | None) -> Pair:
    """A pair under the experiment that both have it in, else base's, else new's."""
    first = base.experiments if base else ()
    second = new.experiments if new else ()
    common = [name for name in first if name in second]
    pair = Pair("", base, new)
    # Runs that no plan names are listed under their benchmark.
    pair.experiment = next(iter([*common, *first, *second]), pair.point.kind[0])
    return pair


def _fates(side: Side, defaults: _Defaults) -> dict[_Key, str]:
    """What became of the points that a side planned and did not finish."""
    fates: dict[_Key, str] = {}
    for entry in side.planned:
        kind = (str(entry["benchmark"]), int(entry["version"]))
        # Devices follow from other parameters, quantities are the campaign's: no record has them.
        derived = {str(entry["scale"])} - set(entry["scale_parameters"])
        derived |= set(entry.get("quantities", ()))

        def key(point: Mapping[str, Any], kind: Kind = kind, out: set[str] = derived) -> _Key:
            kept = {name: value for name, value in point.items() if name not in out}
            return _key(kind, defaults.fill(side.role, kind, kept)[0])

        for run in entry["runs"]:
            if run["status"] != Status.DONE:
                word = (
                    "pending" if run["status"] == Status.NEW else str(run["cause"] or run["status"])
                )
                fates.setdefault(key(run["point"]), f"planned there: {word}")
        for left_out in entry["excluded"]:
            fates.setdefault(key(left_out["point"]), f"excluded there: {left_out['reason']}")
    return fates


class _Versions:
    """Points by benchmark and parameters, whatever the version."""

    def __init__(self, here: _Points, there: _Points) -> None:
        self._sides = [self._index(points) for points in (here, there)]

    @staticmethod
    def _index(points: _Points) -> dict[tuple[str, str], SidePoint]:
        return {
            (kind[0], values): point
            for (kind, values), by_source in points.items()
            for point in by_source.values()
        }

    def twin(self, base: SidePoint | None, new: SidePoint | None) -> Pair | None:
        """A point of one side with that of the other which differs in the version only."""
        mine = base or new
        assert mine is not None
        name = (mine.kind[0], _key(mine.kind, mine.values)[1])
        other = self._sides[1 if base else 0].get(name)
        if other is None or other.kind == mine.kind:
            return None
        return _pair(base or other, new or other)


def _apart(here: _Points, there: _Points, joined: Iterable[Kind]) -> list[str]:
    """Why benchmarks that both sides have run share no point, where one parameter explains it."""
    reasons = []
    kinds = {key[0] for key in here} & {key[0] for key in there}
    for kind in sorted(kinds - set(joined)):
        mine, theirs = (_values(points, kind) for points in (here, there))
        unlike = [
            f"{name} ({_first_values(mine[name])} in base, {_first_values(theirs[name])} in new)"
            for name in mine
            if name in theirs and not mine[name].keys() & theirs[name].keys()
        ]
        lacking = sorted(mine.keys() ^ theirs.keys())
        unlike += [f"{name} (on one side only, no plan has its default)" for name in lacking]
        why = f"no common value of {'; '.join(unlike)}" if unlike else "no common combination"
        reasons.append(f"{kind[0]}, version {kind[1]}: {why}")
    return reasons


def _values(points: _Points, kind: Kind) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {}
    for (other, _), by_source in points.items():
        for point in by_source.values() if other == kind else ():
            for name, value in point.values.items():
                values.setdefault(name, {})[canonical_json(plain(value))] = value
    return values


def _first_values(values: Mapping[str, Any]) -> str:
    named = list(values)[:4]
    return ", ".join(named) + (f" and {len(values) - 4} more" if len(values) > 4 else "")


def varying(pairs: Sequence[Pair]) -> list[str]:
    """Parameters that are not the same in all of these points, ``ranks`` first."""
    values_of: dict[str, dict[str, None]] = {}
    for pair in pairs:
        for name, value in pair.point.values.items():
            values_of.setdefault(name, {})[canonical_json(plain(value))] = None
    lacking = {name for pair in pairs for name in values_of.keys() - pair.point.values.keys()}
    names = [name for name in values_of if len(values_of[name]) > 1 or name in lacking]
    return sorted(names, key=lambda name: name != "ranks")


def by_experiment(pairs: Iterable[Pair]) -> Iterator[tuple[str, list[Pair]]]:
    """Pairs by the experiment that lists them, in their order."""
    pairs_of: dict[str, list[Pair]] = {}
    for pair in pairs:
        pairs_of.setdefault(pair.experiment, []).append(pair)
    yield from pairs_of.items()
