"""What three profilers export: Score-P's ``scorep-score -r``, HPCToolkit's ``experiment.xml`` with
sums in it (hpcprof until 2021), and JSON of ``map --export=FILE.json`` (Linaro MAP).

Times of Score-P and HPCToolkit are sums over all processes and threads, divided by the ranks that
the user names. MAP's activities are shares of the samples of the main threads.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from scalesweep.analysis.profile import NOT_LISTED, Function, Profile
from scalesweep.importers.imported_run import ImportRefusedError, metric
from scalesweep.importers.profiles.base import CLOSE, MPI, each, lines_of, text_of, unlisted

_SCOREP = re.compile(
    r"(?i)\s*flt\s+type\s+max_buf\[B\]\s+visits\s+(hits\s+)?time\[s\]\s.*region\s*"
)
_ROW = re.compile(
    r"\s*[-+*]?\s*(?P<type>[A-Z_]{2,12})\s+[\d,]+\s+(?P<visits>[\d,]+)(?:\s+[\d,]+)?"
    r"\s+(?P<time>\d+\.\d+)\s+\d+\.\d+\s+\d+\.\d+\s+(?P<region>\S.*?)\s*"
)
_BEGINS = re.compile(r"\s*[-+*]?\s*[A-Z_]{2,12}\s+[\d,]+\s")
_TIME = re.compile(
    r"(?:CPUTIME|REALTIME|WALLCLOCK)\s\((?P<unit>u?sec)\)(?::Sum)?\s\((?P<kind>[IE])\)"
)


def is_scorep(head: str) -> bool:
    """Whether a file has the heading of scorep-score near its begin."""
    return any(_SCOREP.fullmatch(line) for line in head.splitlines()[:60])


def is_hpctoolkit(head: str) -> bool:
    """Whether a file begins as a database of HPCToolkit does."""
    root = r"<HPCToolkitExperiment\s|<!DOCTYPE (?:HPCToolkit|hpc-)[Ee]xperiment"
    return head.lstrip().startswith("<?xml") and re.search(root, head) is not None


def is_map(head: str) -> bool:
    """Whether a file begins as an export of MAP does."""
    signs = ('"info"', '"number_of_processes"', '"runtime"')
    return head.lstrip().startswith("{") and all(sign in head for sign in signs)


@dataclass
class _Sums:
    """Seconds over all ranks: of procedures with their calls and what they called, of all, and of
    MPI with what it calls."""

    own: dict[str, float] = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    inclusive: dict[str, float] = field(default_factory=dict)
    whole: float = 0.0
    mpi: float = 0.0

    def profile(self, tool: str, file: Path, ranks: int | None) -> Profile:
        """The profile. Raises ImportRefusedError if the times do not add up."""
        count, own = ranks or 1, dict(self.own)
        notes = {"times": "sums over all processes and threads, divided by the ranks"}
        if rest := unlisted(self.whole, own.values()):
            notes["not_listed"] = f"{100 * rest / self.whole:.1f} % of the time is in no row"
            listed = sum(seconds for name, seconds in own.items() if MPI.match(name))
            # Of an excerpt a group still says how much of it is MPI.
            hidden = min(max(self.mpi - listed, 0), rest)
            own |= {f"MPI_* {NOT_LISTED}": hidden} if hidden else {}
            own |= {NOT_LISTED: rest - hidden} if rest > hidden else {}
        functions = []
        for name, seconds in own.items():
            calls, within = self.calls.get(name), self.inclusive.get(name)
            functions.append(
                Function(
                    name, None, "cpu", calls and calls / count, seconds / count,
                    within and max(within, seconds) / count,
                )
            )  # fmt: skip
        metrics = {
            "profiled_time": metric(self.whole / count, "s", "lower", "rank"),
            "mpi_time": metric(self.mpi / count, "s", "lower", "rank"),
        }
        return Profile(
            tool=tool, file=file, ranks=ranks, functions=tuple(functions), metrics=metrics,
            notes=notes,
        )  # fmt: skip


def _scorep(file: Path, ranks: int | None) -> Iterator[Profile]:
    """The regions of a table of scorep-score. Raises ImportRefusedError."""
    sums, groups, headed = _Sums(), dict[str, float](), False
    for line, content in enumerate(lines_of(file), 1):
        headed = headed or _SCOREP.fullmatch(content) is not None
        row = _ROW.fullmatch(content)
        if headed and row is None and _BEGINS.match(content):
            raise ImportRefusedError("a row that cannot be read: cut off?", line)
        if row is None or not headed:
            continue
        kind, region, seconds = row["type"], row["region"], float(row["time"])
        if region in (kind, f"{kind}-FLT", "FLT"):
            groups[region] = seconds
            continue
        sums.own[region] = sums.own.get(region, 0.0) + seconds
        visits = float(row["visits"].replace(",", ""))
        sums.calls[region] = sums.calls.get(region, 0.0) + visits
        sums.mpi += seconds if kind == "MPI" else 0.0
    sums.whole, sums.mpi = groups.get("ALL", 0.0), max(sums.mpi, groups.get("MPI", 0.0))
    if not sums.whole or not sums.own:
        raise ImportRefusedError(
            "no row of ALL (cut off?), or lists groups only: import what `scorep-score -r` prints"
        )
    yield sums.profile("scorep", file, ranks)


def _hpctoolkit(file: Path, ranks: int | None) -> Iterator[Profile]:
    """The procedures of an experiment.xml; what a call of MPI calls counts for it, and recursion
    once. Raises ImportRefusedError."""
    text = text_of(file)
    try:
        if "<!ENTITY" in text:  # which may fill the memory
            raise ValueError("it defines entities")
        sums = _walked(ElementTree.fromstring(text))
    except ElementTree.ParseError as error:
        words = f"not whole XML: cut off? ({error.msg})"
        raise ImportRefusedError(words, error.position[0]) from None
    except ValueError as error:
        raise ImportRefusedError(f"a value is no number: damaged ({error})") from None
    if not sums.own:
        raise ImportRefusedError("no values in it: they are in binary files next to it")
    yield sums.profile("hpctoolkit", file, ranks)


def _walked(root: ElementTree.Element) -> _Sums:
    kinds: dict[str, tuple[str, float]] = {}  # inclusive (I) or exclusive (E), and its unit in s
    for element in root.iter("Metric"):
        match = _TIME.fullmatch(element.get("n", ""))
        # The first kind of time that has both; more would be added up.
        if match and match["kind"] not in {kind for kind, _ in kinds.values()}:
            kinds[element.get("i", "")] = match["kind"], 1e-6 if match["unit"] == "usec" else 1.0
    if len(kinds) < 2:
        raise ImportRefusedError("no sum of CPUTIME, REALTIME or WALLCLOCK over the ranks in it")
    names = {it.get("i", ""): it.get("n", "") for it in root.iter("Procedure")}
    sums = _Sums()
    # Elements with what is around them: the procedure that time counts for, and all names.
    stack: list[tuple[ElementTree.Element, str, frozenset[str]]] = [(root, "", frozenset())]
    while stack:
        element, owner, around = stack.pop()
        inside, name = owner, ""
        if element.tag == "PF":
            name = names.get(element.get("n", ""), element.get("n", "")) or "unknown"
            inside = owner if MPI.fullmatch(owner) else name
        for value in (it for it in element.findall("M") if it.get("n") in kinds):
            kind, unit = kinds[value.get("n", "")]
            seconds = float(value.get("v", "")) * unit
            if element.tag == "SecCallPathProfileData":
                sums.whole += seconds if kind == "I" else 0.0
            elif name and kind == "E":
                sums.own[inside] = sums.own.get(inside, 0.0) + seconds
            elif name and name not in around:
                sums.inclusive[name] = sums.inclusive.get(name, 0.0) + seconds
            if name and kind == "I" and inside != owner and MPI.fullmatch(inside):
                sums.mpi += seconds
        stack += [(child, inside, around | {name} if name else around) for child in element]
    return sums


def _map(file: Path, ranks: int | None) -> Iterator[Profile]:
    """The activities of the main threads as seconds of a process. Raises ImportRefusedError."""
    try:
        content: Any = json.loads(text_of(file))
        info = content["info"]
        activity: Mapping[str, list[float]] = content["samples"]["activity"]["main_thread"]
        count, runtime = int(info["number_of_processes"]), float(info["runtime"]) / 1000
        most = max(sum(window) for window in zip(*activity.values(), strict=True))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImportRefusedError(f"not a whole export of MAP ({error!r:.80}): cut off?") from None
    whole = 100.0 if most > 1 + CLOSE else 1.0
    if most > whole * (1 + CLOSE):
        raise ImportRefusedError(
            f"the activities of a window add up to {most:.4g}, not 1 or 100 %: damaged"
        )
    own = {name: runtime * sum(it) / len(it) / whole for name, it in activity.items()}
    if rest := unlisted(runtime, own.values()):
        own[NOT_LISTED] = rest
    mpi = sum(seconds for name, seconds in own.items() if "_mpi" in name)
    yield Profile(
        tool="map", file=file, ranks=count,
        functions=tuple(
            Function(name, None, "cpu", None, seconds, None)
            for name, seconds in own.items() if seconds > 0
        ),
        metrics={
            "runtime": metric(runtime, "s", "lower"),
            "mpi_time": metric(mpi, "s", "lower", "rank"),
        },
        notes={"times": "shares of the main threads' samples times the run time"},
    )  # fmt: skip


READERS = ((is_scorep, each(_scorep)), (is_hpctoolkit, each(_hpctoolkit)), (is_map, each(_map)))
