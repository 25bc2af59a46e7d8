"""HPCToolkit's ``experiment.xml`` (versions 2.x), where hpcprof wrote sums over all ranks into it.

A metric such as ``CPUTIME (usec):Sum`` comes inclusive and exclusive; each ``PF`` (procedure frame)
of the calling contexts has its values as ``M`` (the DTD at the begin of the file; databases in
LLNL/hatchet, hatchet/tests/data). Frames below a call of MPI count for that call. Databases whose
numbers are in binary files have no ``M``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from scalesweep.analysis.profile import NOT_LISTED, Function, Profile
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import ReadResult, metric, number, read_each, text_of

TOOL = "hpctoolkit"
_ROOT = re.compile(r"<HPCToolkitExperiment\s|<!DOCTYPE (?:HPCToolkit|hpc-)[Ee]xperiment")
_TIME = re.compile(
    r"(?P<what>CPUTIME|REALTIME|WALLCLOCK)\s\((?P<unit>u?sec)\)(?::Sum)?\s\((?P<kind>[IE])\)"
)
_UNITS = {"usec": 1e-6, "sec": 1.0}
_MPI = re.compile(r"P?MPI_\w+")
_MAX_DEPTH = 100_000
_LEFT = 0.001  # of the time: what values of six digits may lack


def recognise(head: str) -> bool:
    """Whether a file begins as a database of HPCToolkit does."""
    return head.lstrip().startswith("<?xml") and _ROOT.search(head) is not None


def read(files: Sequence[Path], ranks: int | None = None) -> ReadResult:
    """A profile of each file; ``ranks``, as no file says how many there were."""
    return read_each(files, lambda file: [_profile(file, ranks)])


@dataclass
class _Frame:
    """An open procedure frame: its name, and the function that its time counts for."""

    name: str
    owner: str
    outermost: bool  # no frame of the same name is around it


@dataclass
class _Tree:
    """What is read of a file while its elements come by."""

    ids: dict[str, tuple[str, float]] = field(default_factory=dict)  # metric -> I or E, unit
    names: dict[str, str] = field(default_factory=dict)  # of procedures
    total: float = 0.0
    own: dict[str, float] = field(default_factory=dict)
    inclusive: dict[str, float] = field(default_factory=dict)
    mpi: float = 0.0
    _open: list[tuple[str, _Frame | None]] = field(default_factory=list)
    _frames: list[_Frame] = field(default_factory=list)
    _around: dict[str, int] = field(default_factory=dict)

    def begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        frame = None
        if tag == "Metric":
            self._metric(attributes)
        elif tag == "Procedure":
            self.names[attributes.get("i", "")] = attributes.get("n", "")
        elif tag == "PF":
            frame = self._enter(attributes.get("n", ""))
        elif tag == "M" and self._open:
            self._value(attributes)
        if len(self._open) >= _MAX_DEPTH:
            raise ImportRefusedError(f"more than {_MAX_DEPTH:,} elements within each other")
        self._open.append((tag, frame))

    def end(self, _tag: str) -> None:
        """The innermost element ends."""
        if (frame := self._open.pop()[1]) is not None:
            self._frames.pop()
            self._around[frame.name] -= 1

    def _metric(self, attributes: Mapping[str, str]) -> None:
        match = _TIME.fullmatch(attributes.get("n", ""))
        # The first kind of time that has both; more would be added up.
        if match and match["kind"] not in {kind for kind, _ in self.ids.values()}:
            self.ids[attributes.get("i", "")] = match["kind"], _UNITS[match["unit"]]

    def _enter(self, key: str) -> _Frame:
        name = self.names.get(key, key) or "unknown"
        owner = name
        if self._frames and _MPI.fullmatch(self._frames[-1].owner):
            owner = self._frames[-1].owner
        frame = _Frame(name, owner, not self._around.get(name))
        self._around[name] = self._around.get(name, 0) + 1
        self._frames.append(frame)
        return frame

    def _value(self, attributes: Mapping[str, str]) -> None:
        tag, frame = self._open[-1]
        kind, unit = self.ids.get(attributes.get("n", ""), ("", 0.0))
        if not kind or (frame is None and tag != "SecCallPathProfileData"):
            return
        seconds = number(attributes.get("v", ""), "a value") * unit
        if seconds < 0:
            raise ImportRefusedError("a time below 0")
        if frame is None:
            self.total += seconds if kind == "I" else 0.0
        elif kind == "E":
            self.own[frame.owner] = self.own.get(frame.owner, 0.0) + seconds
        else:
            if frame.outermost:
                self.inclusive[frame.name] = self.inclusive.get(frame.name, 0.0) + seconds
            around = self._frames[-2].owner if len(self._frames) > 1 else ""
            if _MPI.fullmatch(frame.owner) and not _MPI.fullmatch(around):
                self.mpi += seconds


def _profile(file: Path, ranks: int | None) -> Profile:
    """The procedures of a file as means over ``ranks``. Raises ImportRefusedError."""
    tree = _parsed(text_of(file))
    if {kind for kind, _ in tree.ids.values()} != {"I", "E"}:
        raise ImportRefusedError("no sum of CPUTIME, REALTIME or WALLCLOCK over the ranks in it")
    if not tree.own or tree.total <= 0:
        raise ImportRefusedError(
            "no values in it: they are in binary files next to it, which are not read"
        )
    counted = sum(tree.own.values())
    if counted > (1 + _LEFT) * tree.total:
        raise ImportRefusedError("procedures take more time than all together: damaged")
    count = ranks or 1
    functions = [
        Function(name, None, "cpu", None, own / count, _inclusive(tree, name, own) / count)
        for name, own in tree.own.items()
    ]
    notes: dict[str, object] = {
        "times": "sums over all processes and threads, divided by the ranks; sampled",
        "mpi": "procedures below a call of MPI count for it",
    }
    if (rest := tree.total - counted) > _LEFT * tree.total:
        functions.append(Function(NOT_LISTED, None, "cpu", None, rest / count, rest / count))
        notes["not_listed"] = f"{100 * rest / tree.total:.1f} % of the time is in no procedure"
    return Profile(
        tool=TOOL,
        file=file,
        ranks=ranks,
        functions=tuple(functions),
        metrics={
            "profiled_time": metric(tree.total / count, "s", "lower", "rank"),
            "mpi_time": metric(tree.mpi / count, "s", "lower", "rank"),
        },
        notes=notes,
    )


def _inclusive(tree: _Tree, name: str, own: float) -> float:
    """Time with all that was called; values of six digits never make it less than the own one."""
    return max(tree.inclusive.get(name, own), own)


def _parsed(text: str) -> _Tree:
    if "<!ENTITY" in text:
        raise ImportRefusedError("it defines entities, which no database of HPCToolkit does")
    tree = _Tree()
    parser = expat.ParserCreate()
    parser.StartElementHandler = tree.begin
    parser.EndElementHandler = tree.end
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        words = f"not whole XML: cut off? ({expat.ErrorString(error.code)})"
        raise ImportRefusedError(words, error.lineno) from None
    except ImportRefusedError as error:
        raise ImportRefusedError(str(error), parser.CurrentLineNumber) from None
    return tree
