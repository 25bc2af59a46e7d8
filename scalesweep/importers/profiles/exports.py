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
from scalesweep.importers.profiles.base import CLOSE, MPI, each, lines_of, text_of

_SCOREP = re.compile(
    r"(?i)\s*flt\s+type\s+max_buf\[B\]\s+visits\s+(hits\s+)?time\[s\]\s.*region\s*"
)
_ROW = re.compile(
    r"\s*[-+*]?\s*(?P<type>[A-Z_]{2,12})\s+[\d,]+\s+(?P<visits>[\d,]+)(?:\s+[\d,]+)?"
    r"\s+(?P<time>\d+\.\d+)\s+(?P<share>\d+\.\d+)\s+\d+\.\d+\s+(?P<region>\S.*?)\s*"
)
_BEGINS = re.compile(r"\s*[-+*]?\s*[A-Z_]{2,12}\s+[\d,]+\s")
_TIME = re.compile(
    r"(?P<what>CPUTIME|REALTIME|WALLCLOCK)\s\((?P<unit>u?sec)\)(?::Sum)?\s\((?P<kind>[IE])\)"
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


def _summed(
    tool: str, file: Path, ranks: int | None, whole: float, functions: list[Function], mpi: float
) -> Profile:
    """A profile of sums over all ranks. Raises ImportRefusedError where they do not add up."""
    counted = sum(function.exclusive_s for function in functions)
    if whole <= 0 or not functions:
        raise ImportRefusedError("no time was spent in any function, or none is listed")
    if counted > (1 + CLOSE) * whole + 0.005 * len(functions):
        raise ImportRefusedError(
            f"functions take {counted:.2f} s, more than all ({whole:.2f} s): damaged, or twice"
        )
    count = ranks or 1
    notes: dict[str, object] = {
        "times": "sums over all processes and threads, divided by the ranks"
    }
    if (rest := whole - counted) > CLOSE * whole:
        notes["not_listed"] = f"{100 * rest / whole:.1f} % of the time is in no row"
        listed = sum(it.exclusive_s for it in functions if MPI.match(it.name))
        # Of an excerpt a group still says how much of it is MPI.
        hidden = min(max(mpi - listed, 0), rest)
        others = {f"MPI_* {NOT_LISTED}": hidden, NOT_LISTED: rest - hidden}
        functions += [Function(n, None, "cpu", None, s, None) for n, s in others.items() if s > 0]
    each = tuple(
        Function(
            it.name, None, "cpu", None if it.calls is None else it.calls / count,
            it.exclusive_s / count, None if it.inclusive_s is None else it.inclusive_s / count,
        )
        for it in functions
    )  # fmt: skip
    metrics = {
        "profiled_time": metric(whole / count, "s", "lower", "rank"),
        "mpi_time": metric(mpi / count, "s", "lower", "rank"),
    }
    return Profile(tool=tool, file=file, ranks=ranks, functions=each, metrics=metrics, notes=notes)


def _scorep(file: Path, ranks: int | None) -> Iterator[Profile]:
    """The regions of a table of scorep-score. Raises ImportRefusedError."""
    groups: dict[str, float] = {}
    functions: list[Function] = []
    shares: list[tuple[float, float, int]] = []
    mpi, headed = 0.0, False
    for line, content in enumerate(lines_of(file), 1):
        row = _ROW.fullmatch(content)
        if _SCOREP.fullmatch(content):
            if headed:
                raise ImportRefusedError("a second table: one file a profile", line)
            headed = True
        elif headed and row is None and _BEGINS.match(content):
            raise ImportRefusedError("a row that cannot be read: cut off?", line)
        elif headed and row:
            kind, region, seconds = row["type"], row["region"], float(row["time"])
            shares.append((seconds, float(row["share"]), line))
            if region in (kind, f"{kind}-FLT", "FLT"):
                groups[region] = seconds
                continue
            visits = float(row["visits"].replace(",", ""))
            functions.append(Function(region, None, "cpu", visits, seconds, None))
            mpi += seconds if kind == "MPI" else 0.0
    whole = groups.get("ALL")
    if whole is None:
        raise ImportRefusedError("no row of ALL: cut off?")
    if not functions:
        raise ImportRefusedError("lists groups only: import what `scorep-score -r` prints")
    for seconds, share, line in shares:
        if whole and abs(100 * seconds / whole - share) > 0.06 + 0.6 / whole:
            words = f"states {share} % of all, which its time is not: lines are missing or swapped"
            raise ImportRefusedError(words, line)
    yield _summed("scorep", file, ranks, whole, functions, max(mpi, groups.get("MPI", 0.0)))


def _hpctoolkit(file: Path, ranks: int | None) -> Iterator[Profile]:
    """The procedures of an experiment.xml; what a call of MPI calls counts for it, and recursion
    once. Raises ImportRefusedError."""
    text = text_of(file)
    if "<!ENTITY" in text:
        raise ImportRefusedError("it defines entities, which no database of HPCToolkit does")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        words = f"not whole XML: cut off? ({error.msg})"
        raise ImportRefusedError(words, error.position[0]) from None
    metrics: dict[str, tuple[str, float]] = {}
    for element in root.iter("Metric"):
        match = _TIME.fullmatch(element.get("n", ""))
        # The first kind of time that has both; more would be added up.
        if match and match["kind"] not in {kind for kind, _ in metrics.values()}:
            metrics[element.get("i", "")] = match["kind"], 1e-6 if match["unit"] == "usec" else 1.0
    if len(metrics) < 2:
        raise ImportRefusedError("no sum of CPUTIME, REALTIME or WALLCLOCK over the ranks in it")
    tree = _walked(root, metrics)
    functions = [
        Function(name, None, "cpu", None, own, max(tree.inclusive.get(name, own), own))
        for name, own in tree.own.items()
    ]
    if not functions:
        raise ImportRefusedError("no values in it: they are in binary files next to it")
    yield _summed("hpctoolkit", file, ranks, tree.total, functions, tree.mpi)


@dataclass
class _Tree:
    """Seconds of procedures, of all, and of MPI with what it calls."""

    own: dict[str, float] = field(default_factory=dict)
    inclusive: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    mpi: float = 0.0


def _walked(root: ElementTree.Element, metrics: Mapping[str, tuple[str, float]]) -> _Tree:
    names = {it.get("i", ""): it.get("n", "") for it in root.iter("Procedure")}
    tree = _Tree()
    # Elements with what is around them: the procedure that time counts for, and all names.
    stack: list[tuple[ElementTree.Element, str, frozenset[str]]] = [(root, "", frozenset())]
    while stack:
        element, owner, around = stack.pop()
        inside, name = owner, ""
        if element.tag == "PF":
            key = element.get("n", "")
            name = names.get(key, key) or "unknown"
            inside = owner if MPI.fullmatch(owner) else name
        for kind, seconds in _values(element, metrics):
            if element.tag == "SecCallPathProfileData":
                tree.total += seconds if kind == "I" else 0.0
            elif name and kind == "E":
                tree.own[inside] = tree.own.get(inside, 0.0) + seconds
            elif name and name not in around:
                tree.inclusive[name] = tree.inclusive.get(name, 0.0) + seconds
            if name and kind == "I" and inside != owner and MPI.fullmatch(inside):
                tree.mpi += seconds
        stack += [(child, inside, around | {name} if name else around) for child in element]
    return tree


def _values(
    element: ElementTree.Element, metrics: Mapping[str, tuple[str, float]]
) -> list[tuple[str, float]]:
    """The times of an element: inclusive (I) or exclusive (E), in seconds."""
    values = []
    for it in element.findall("M"):
        kind, unit = metrics.get(it.get("n", ""), ("", 0.0))
        if kind:
            try:
                seconds = float(it.get("v", "")) * unit
            except ValueError:
                seconds = -1.0
            if not 0 <= seconds < float("inf"):
                raise ImportRefusedError(f"a value of {it.get('v', '')[:20]!a}: damaged")
            values.append((kind, seconds))
    return values


def _map(file: Path, ranks: int | None) -> Iterator[Profile]:
    """The activities of the main threads as seconds of a process. Raises ImportRefusedError."""
    try:
        content = json.loads(text_of(file))
        info, activity = content["info"], content["samples"]["activity"]["main_thread"]
        count, runtime = int(info["number_of_processes"]), float(info["runtime"]) / 1000
        series = {str(name): [float(value) for value in of] for name, of in activity.items()}
        windows = [sum(window) for window in zip(*series.values(), strict=True)]
    except (ValueError, RecursionError):
        raise ImportRefusedError("not JSON: damaged, or windows of unequal number") from None
    except (KeyError, TypeError, AttributeError):
        raise ImportRefusedError("no info or samples.activity.main_thread: not whole?") from None
    if not windows or count < 1 or not 0 < runtime < float("inf"):
        raise ImportRefusedError("no samples, no processes, or no run time")
    if ranks and ranks != count:
        raise ImportRefusedError(f"has {count} processes, but --ranks {ranks}")
    whole = 100.0 if max(windows) > 1 + CLOSE else 1.0
    sound = all(0 <= value < 1e9 for values in series.values() for value in values)
    if not sound or max(windows) > whole * (1 + CLOSE):
        raise ImportRefusedError(
            f"the activities of a window add up to {max(windows):.4g}, not 1 or 100 %: damaged"
        )
    shares = {name: sum(values) / len(values) / whole for name, values in series.items()}
    if (rest := 1 - sum(shares.values())) > CLOSE:
        shares[NOT_LISTED] = rest
    functions = [
        Function(name, None, "cpu", None, share * runtime, None)
        for name, share in shares.items()
        if share > 0
    ]
    mpi = sum(share for name, share in shares.items() if "_mpi" in name)
    metrics: dict[str, dict[str, Any]] = {
        "runtime": metric(runtime, "s", "lower"),
        "mpi_time": metric(mpi * runtime, "s", "lower", "rank"),
    }
    yield Profile(
        tool="map", file=file, ranks=count, elapsed_s=runtime, functions=tuple(functions),
        metrics=metrics,
        notes={"times": "shares of the main threads' samples times the run time"},
    )  # fmt: skip


read_scorep, read_hpctoolkit, read_map = each(_scorep), each(_hpctoolkit), each(_map)
