"""Tables of collectives: what OSU Micro-Benchmarks and nccl-tests print, and nccl-tests' JSON.

Each table becomes a run of the benchmark allreduce, whose report fits the network to it. Read are
osu_allreduce, osu_bcast and osu_allgather (mvapich.cse.ohio-state.edu/benchmarks), and
all_reduce_perf, broadcast_perf and all_gather_perf (github.com/NVIDIA/nccl-tests: src/util.cu
writes both forms). The size of an allgather is that of its result, as nccl-tests has it; OSU's is a
rank's share. OSU's other latencies are runs of a benchmark of their own (``osu_latency``).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.profile import bus_factor
from scalesweep.compute.log_lines import Line, open_packed
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.importers import osu_latency
from scalesweep.importers.imported_run import (
    GPU,
    ImportedRun,
    ImportRefusedError,
    Refusal,
    file_dates,
    shown,
)
from scalesweep.importers.launch_words import UNKNOWN, Launched, launched

BENCHMARK = "allreduce"
JSON_SIGN = re.compile(r'^\{"version":\s?\d+,\s?"start_time":\s?"')
_LABEL = r"^(?:\s{0,6}\d{1,6}: )?"  # of srun --label: the first rank prints
SIGN = re.compile(rf"{_LABEL}# (?:OSU [\w -]{{1,80}} Test(?: v|$)|\s*size\s+count\s+type\b)")
MAX_JSON = 32 << 20
OSU, NCCL = "OSU Micro-Benchmarks", "nccl-tests"

_LABELLED = re.compile(_LABEL)
_NUMBER = r"(?:\d{1,20}(?:\.\d{1,12})?(?:e[+-]?\d{1,3})?)"
_OSU_HEAD = re.compile(r"^# OSU (?P<test>[\w -]{1,80}) Test(?: v(?P<version>.*))?$")
# Behind the mean there may be others (-f, -z) and, with -c, whether the results were right.
_OSU_ROW = re.compile(
    rf"^(?P<size>\d{{1,15}})\s+(?P<time>{_NUMBER})(?:\s+{_NUMBER}){{0,8}}"
    rf"(?:\s+(?P<right>Pass|Fail)(?:\s+{_NUMBER}){{0,4}})?\s*$"
)
_OSU_TIME = re.compile(rf"^\s*(?P<time>{_NUMBER})(?:\s+{_NUMBER}){{0,8}}\s*$")  # of a barrier
_OSU_TESTS = {"Allreduce": "allreduce", "Broadcast": "broadcast", "Allgather": "allgather"}
_OSU_TEST = re.compile(r"^(?:MPI|[NRX]?CCL)[\w-]* (?P<name>\w+) Latency$")
_OSU_COMMAND = re.compile(r"\bosu_\w+")
_NCCL_TESTS = {"all_reduce": "allreduce", "broadcast": "broadcast", "all_gather": "allgather"}
_NCCL_NAME = re.compile(r"\b(?P<name>[a-z]{2,9}(?:_[a-z]{2,9}){0,2})_perf\b")
_NCCL_HEAD = re.compile(r"^#\s+size\s+count\s+type\b(?P<more>.*)$")
# What is right of its first three columns stands as many columns from the end as in the heading:
# versions print redop and root, one of them, or neither, and leave either blank.
_NCCL_ROW = re.compile(r"^\s*(?P<size>\d{1,15})\s+\d{1,15}\s+[a-z]\w{1,15}\s+(?P<more>\S.*)$")
_NCCL_CELL = re.compile(rf"N/A|{_NUMBER}")
_OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values : (?P<count>\d{1,15})\b")
# What a file may be called without the program's ending.
_NCCL_FILE = re.compile(
    r"(?<![a-z])(all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|broadcast"
    r"|send[-_]?recv|gather|scatter|reduce)(?![a-z])",
    re.IGNORECASE,
)
_FILE_NAMES = {
    "allreduce": "all_reduce", "allgather": "all_gather", "broadcast": "broadcast",
}  # fmt: skip
_NCCL_RANK = re.compile(
    r"^#\s+Rank\s+(?P<rank>\d{1,7})(?:\s+Group\s+(?P<group>\d{1,5}))?\s+Pid\s+\d{1,10}\s+on\s+"
    r"(?P<host>\S{1,200})\s+device\s+\d{1,4}\s+\[[\w:]{1,20}\]\s(?P<gpu>.{1,100})$"
)


@dataclass
class _Table:
    """A table of one collective, as far as it was read."""

    program: str
    version: str | None
    test: str  # as the program names it
    collective: str  # empty of other latencies (``osu_latency``)
    line: int
    ranks: int | None = None
    ranks_per_node: int | None = None
    options: str | None = None  # of the command
    columns: Sequence[str] = ()  # of nccl-tests, from the first time on
    hosts: list[str] = field(default_factory=list)
    gpu: str | None = None
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    repeats: list[list[float]] = field(default_factory=list)  # s, by size, where each is known
    last_line: int = 0
    stated: list[str] = field(default_factory=list)  # of other latencies, in front of the columns
    headed: bool = False  # its columns have been read
    bandwidths: tuple[float, float] | None = None  # GB/s of algorithm and bus, of the fastest row

    def add(self, size: int, microseconds: float, line: int) -> None:
        """Take a row; raises ImportRefusedError if its time or size cannot be."""
        if self.sizes and size <= self.sizes[-1]:
            raise ImportRefusedError(f"size {size} follows size {self.sizes[-1]}", line)
        if not 0 < microseconds < 1e12 or not math.isfinite(microseconds):
            raise ImportRefusedError(f"size {size}: {microseconds:g} us is no time", line)
        self.sizes.append(size)
        self.seconds.append(microseconds * 1e-6)
        self.last_line = line


def check_test(text: str) -> str | None:
    """nccl-tests' name of a test that ``--test`` names; None if it is empty.

    Raises UserError for one that is not read.
    """
    name = text.strip().removesuffix("_perf")
    if text and name not in _NCCL_TESTS:
        known = ", ".join(f"{test}_perf" for test in _NCCL_TESTS)
        raise UserError(f"--test {text}: must be one of {known}")
    return name or None


def read_runs(
    lines: Callable[[], Iterable[Line]],
    file: Path,
    ranks: int | None = None,
    test: str | None = None,
) -> Iterator[ImportedRun | Refusal]:
    """The tables of a log and the refusals in order; ``ranks`` of tables that do not state it,
    ``test`` of those of nccl-tests that do not say of which they are."""
    tables: list[_Table | ImportRefusedError] = list(_tables(lines(), file, test))
    for table in tables:
        try:
            if isinstance(table, ImportRefusedError):
                raise table
            yield _run(table, file, ranks)
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line, BENCHMARK)


def read_json(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The run of nccl-tests' JSON file (``-J``), or why there is none."""
    del lines, ranks  # one object; it states its ranks
    try:
        with open_packed(file) as content:
            text = content.read(MAX_JSON + 1)
        if len(text) > MAX_JSON:
            raise ImportRefusedError("more than 32 MiB of JSON", 1)
        try:
            report = json.loads(text)
        except (ValueError, RecursionError):
            raise ImportRefusedError("JSON that was cut or damaged", 1) from None
        yield _run(_json_table(report), file, None)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, BENCHMARK)


def _tables(
    lines: Iterable[Line], file: Path, test: str | None = None
) -> Iterator[_Table | ImportRefusedError]:
    """The tables of a log; in the place of a broken one what is wrong with it."""
    table: _Table | None = None
    row = _OSU_ROW
    before = _Before(named=_test_named(file.name) or _file_names(file) or test)
    for line in lines:
        text = _LABELLED.sub("", line.text.rstrip(), count=1)
        try:
            if head := _OSU_HEAD.match(text) or _NCCL_HEAD.match(text):
                if table:
                    yield table
                table, of_osu = None, head.re is _OSU_HEAD
                row = _OSU_ROW if of_osu else _NCCL_ROW
                table = (_osu_table if of_osu else _nccl_table)(head, before, line.number)
            elif table and _takes(table, row, text, line.number):
                continue
            elif table and table.sizes and (launched(text) or _test_named(text)):
                # Anything else among the rows, as of NCCL or UCX, ends no table.
                yield table
                table = None
                before.take(text)
            else:
                before.take(text)
        except ImportRefusedError as error:
            yield error
            table = None
    if table:
        yield table


def _takes(table: _Table, row: re.Pattern[str], text: str, line: int) -> bool:
    """Whether a line is a row of the table, or the verdict behind it; raises ImportRefusedError
    where its results were wrong."""
    if table.program == OSU and not table.collective and not table.headed:
        return _heads(table, text, line)
    if osu_latency.BARRIER.search(table.test) and (match := _OSU_TIME.match(text)):
        table.add(0, float(match["time"]), line)
        return True
    if match := row.match(text):
        if (size := int(match["size"])) > 0:
            table.add(size, _microseconds(table, match, line), line)
    elif (match := _OUT_OF_BOUNDS.match(text)) and int(match["count"]):
        raise ImportRefusedError(f"{match['count']} values out of bounds", line)
    return match is not None


def _heads(table: _Table, text: str, line: int) -> bool:
    """Whether a line belongs to the heading of a table of other latencies."""
    if osu_latency.COLUMNS.match(text):
        table.headed = True
    elif text.startswith("# Size") or _OSU_TIME.match(text):
        raise ImportRefusedError(f"OSU {table.test} Test: columns other than a latency", line)
    elif text.startswith("#") and not osu_latency.PLAIN.match(text):
        table.stated.append(shown(text.lstrip("# "))[:100])
    else:
        return not text.strip()
    return True


def _microseconds(table: _Table, row: re.Match[str], line: int) -> float:
    """The time of a row; raises ImportRefusedError where its results were wrong, or it is cut."""
    if table.program == OSU:
        if row["right"] == "Fail":
            raise ImportRefusedError(f"size {row['size']}: wrong results", line)
        return float(row["time"])
    words = row["more"].split()[-len(table.columns) :]
    if len(words) < len(table.columns) or not all(map(_NCCL_CELL.fullmatch, words)):
        raise ImportRefusedError(
            f"size {row['size']}: not {len(table.columns)} numbers: a cut line?", line
        )
    cells = dict(zip(reversed(table.columns), reversed(words), strict=True))  # the first of each
    # Older versions print the largest deviation as error, and at the end what is out of bounds.
    wrong = cells.get("#wrong", cells.get("wrong", "N/A"))
    if wrong != "N/A" and float(wrong) > 0:
        raise ImportRefusedError(f"size {row['size']}: {wrong} wrong results", line)
    if cells["time"] == "N/A":
        raise ImportRefusedError(f"size {row['size']}: no time", line)
    printed = cells.get("algbw", "N/A"), cells.get("busbw", "N/A")
    if "N/A" not in printed:
        algorithm, bus = map(float, printed)
        if algorithm > (table.bandwidths or (0.0, 0.0))[0]:
            table.bandwidths = algorithm, bus
    return float(cells["time"])


@dataclass
class _Before:
    """What the lines before a table say of it."""

    named: str | None  # nccl-tests' program
    command: Launched = UNKNOWN  # the last that starts OSU's, once or in a loop
    ranks: dict[int, tuple[str, str]] = field(default_factory=dict)  # host and GPU by rank

    def take(self, text: str) -> None:
        """Look at a line."""
        if match := _NCCL_RANK.match(text):
            rank = int(match["rank"])
            if rank == 0:
                self.ranks = {}
            if (match["group"] or "0") == "0":
                self.ranks[rank] = (match["host"], match["gpu"].strip())
        elif named := _test_named(text):
            self.named = named
        if _OSU_COMMAND.search(text) and (command := launched(text)):
            self.command = command


def _test_named(text: str) -> str | None:
    """The program of nccl-tests that a line or a file's name has; the last of several."""
    names = _NCCL_NAME.findall(text[:5000])
    return names[-1] if names else None


def _file_names(file: Path) -> str | None:
    """nccl-tests' test that a file's name has without ``_perf``; None if it has none, or two."""
    names = {re.sub(r"[-_]", "", name.lower()) for name in _NCCL_FILE.findall(file.name[:500])}
    name = names.pop() if len(names) == 1 else ""
    return _FILE_NAMES.get(name, name) or None


def _osu_table(head: re.Match[str], before: _Before, line: int) -> _Table:
    test = _OSU_TEST.match(head["test"])
    collective = _OSU_TESTS.get(test["name"], "") if test else ""
    if not (collective or osu_latency.is_latency(head["test"])):
        raise ImportRefusedError(f"OSU {head['test']} Test: only latencies are read", line)
    version = shown(head["version"] or "")[:20] or None
    ranks, per_node, options = before.command
    if not collective and (always := osu_latency.ranks_of(head["test"])):
        ranks = always
    return _Table(
        OSU, version, head["test"], collective, line, ranks=ranks, ranks_per_node=per_node,
        options=options and shown(options),
    )  # fmt: skip


def _nccl_table(head: re.Match[str], before: _Before, line: int) -> _Table:
    if before.named is None:
        raise ImportRefusedError(
            "neither the log nor its name says which test of nccl-tests it is: add "
            "--test all_reduce_perf, broadcast_perf or all_gather_perf",
            line,
        )
    columns = head["more"].split()
    if "time" not in columns:
        raise ImportRefusedError("a table without times (nccl-tests -C reports the CPU's)", line)
    table = _nccl(before.named, None, line)
    table.columns = columns[columns.index("time") :]
    table.ranks = len(before.ranks) or None
    table.hosts = [host for host, _ in before.ranks.values()]
    table.ranks_per_node = _on_each(table.hosts)
    table.gpu = next((gpu for _, gpu in before.ranks.values()), None)
    return table


def _on_each(hosts: Sequence[str], each: int = 1) -> int | None:
    """Ranks on a host, where all hosts have as many; ``each`` per entry."""
    counts = set(Counter(hosts).values())
    return counts.pop() * each if len(counts) == 1 else None


def _nccl(name: str, version: str | None, line: int) -> _Table:
    if name not in _NCCL_TESTS:
        known = ", ".join(f"{test}_perf" for test in _NCCL_TESTS)
        raise ImportRefusedError(f"{name}_perf: only {known} are read", line)
    return _Table(NCCL, version, f"{name}_perf", _NCCL_TESTS[name], line)


def _json_table(report: Any) -> _Table:
    """The table of nccl-tests' JSON; raises ImportRefusedError where it is not as src/util.cu
    writes it."""
    try:
        config, devices = report["config"], report["config"]["devices"]
        name = _test_named(str(report["args"][0]))
        version = report["nccl_version"]
        # One entry for each process, however many GPUs it drives.
        groups = [int(device["group"]) for device in devices]
        processes = groups.count(groups[0])
        ranks = processes * int(config["nthreads"]) * int(config["ngpus"])
        table = _nccl(name or "an unnamed test", f"NCCL {version}", 1)
        table.ranks, table.gpu = ranks, str(devices[0]["device_info"])[:100]
        table.hosts = [str(device["hostname"])[:200] for device in devices[:processes]]
        each = int(config["nthreads"]) * int(config["ngpus"])
        table.ranks_per_node = _on_each(table.hosts, each)
        for result in report["results"]:
            timed = result["out_of_place"] or result["in_place"]
            if result["size"] > 0:
                if (wrong := timed["nwrong"]) not in (None, 0):
                    raise ImportRefusedError(f"size {result['size']}: {wrong:g} wrong results", 1)
                if "cpu_time" in timed:
                    raise ImportRefusedError("times of the CPU (nccl-tests -C)", 1)
                table.add(int(result["size"]), float(timed["time"]), 1)
                table.repeats.append(_iterations(result))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ImportRefusedError(f"not the JSON of nccl-tests ({error!r:.80})", 1) from None
    return table


def _iterations(result: Any) -> list[float]:
    """Seconds of each iteration, where the file has them: that of the slowest process."""
    way = "out_of_place" if result["out_of_place"] else "in_place"
    kept = result.get(f"{way}_per_iter")
    times = [float(time) * 1e-6 for time in kept["times_us"]] if kept else []
    if not all(0 < time < 1e6 for time in times):
        raise ImportRefusedError(f"size {result['size']}: an iteration whose time is none", 1)
    return times


def _fits(table: _Table, count: int) -> bool:
    """Whether the printed bus bandwidth is that of so many ranks: ``bus_factor`` times the
    algorithm's, both printed with two decimals. Tables without either fit any."""
    factor = bus_factor(table.collective, count)
    if table.bandwidths is None or factor is None:
        return True
    algorithm, bus = table.bandwidths
    return abs(bus - factor * algorithm) <= 0.005 * (1 + factor) + 1e-3 * bus


def _run(table: _Table, file: Path, ranks: int | None) -> ImportedRun:
    """The run of one table of a collective test, its metrics over ``[size, repeat]`` seconds.

    ``ranks`` is used where the log states no number. Raises ImportRefusedError if the table has no
    row, no number of ranks or only one, or if its bus bandwidth is not that of so many ranks.
    """
    count = table.ranks or ranks
    if table.ranks and ranks and not _fits(table, table.ranks):
        # A list that was cut says neither how many ranks there are nor where.
        count, table.ranks, table.hosts = ranks, None, []
    if not table.sizes:
        raise ImportRefusedError("a header without a row", table.line)
    if count is None:
        raise ImportRefusedError(
            f"{table.program} does not state the number of ranks: --ranks N", table.line
        )
    if count < 2:
        raise ImportRefusedError("a single rank exchanges nothing", table.line)
    if table.bandwidths and not _fits(table, count):
        algorithm, bus = table.bandwidths
        article = "a" if table.collective == "broadcast" else "an"
        raise ImportRefusedError(
            f"the bus bandwidth is {bus / algorithm:.4g} times the algorithm's, which is not that "
            f"of {article} {table.collective} of {count} ranks: was the list of devices cut? add "
            "--ranks N",
            table.line,
        )
    if table.program == OSU and not table.collective:
        return _latency_run(table, file, count)
    share = table.program == OSU and table.collective == "allgather"
    sizes = [size * count for size in table.sizes] if share else table.sizes
    seconds = np.array(table.seconds)[:, None]
    if fewest := min(map(len, table.repeats), default=0):
        seconds = np.array([times[:fewest] for times in table.repeats])
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    per_node = table.ranks_per_node if table.ranks else None
    variant = {"program": table.program} | ({GPU: table.gpu} if table.gpu else {})
    variant["placement"] = _placement(count, per_node)
    stated = [table.program, table.test, count, sizes, repr(table.seconds), table.line]
    return ImportedRun(
        benchmark=BENCHMARK,
        point={
            "ranks": count, "operation": table.collective, "sizes": None,
            **({"ranks_per_node": per_node} if per_node else {}),
            **({"launch_options": table.options} if table.options else {}),
        },
        file=file,
        line=table.line,
        source_digest=digest_of(stated),
        started=modified,
        ended=modified,
        variant=variant,
        samples={"sweep_seconds": seconds[:, :, None]},
        samples_per_epoch=0,
        metrics=_metrics(table.collective, count, np.array(sizes, np.float64), seconds),
        notes={
            "importer": f"{table.program} table",
            "lines": [table.line, table.last_line],
            "test": table.test,
            "version": table.version,
            "hosts": sorted(set(table.hosts)),
            "dates": file_dates("the log"),
            "sweep": {
                "by": "message size", "unit": "bytes", "amount_unit": "bytes",
                "collective": table.collective, "values": sizes, "amounts": sizes,
            },
        },
    )  # fmt: skip


def _latency_run(table: _Table, file: Path, ranks: int) -> ImportedRun:
    """A table of other latencies; a barrier has a single time and no sizes."""
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    sizes = [size for size in table.sizes if size]
    per_node = table.ranks_per_node if table.ranks else None
    variant = {"program": table.program, "placement": _placement(ranks, per_node)}
    variant |= {"stated": "; ".join(table.stated)} if table.stated else {}
    sweep = {
        "by": "message size", "unit": "bytes", "amount_unit": "bytes", "collective": None,
        "values": sizes, "amounts": sizes,
    }  # fmt: skip
    stated = [table.program, table.test, ranks, table.sizes, repr(table.seconds), table.line]
    return ImportedRun(
        benchmark=osu_latency.BENCHMARK,
        made=osu_latency.MADE,
        point={
            "ranks": ranks, "test": shown(table.test),
            **({"ranks_per_node": per_node} if per_node else {}),
            **({"launch_options": table.options} if table.options else {}),
        },
        file=file,
        line=table.line,
        source_digest=digest_of(stated),
        started=modified,
        ended=modified,
        variant=variant,
        samples={"sweep_seconds": np.array(table.seconds)[:, None, None]} if sizes else {},
        samples_per_epoch=0,
        metrics=osu_latency.metrics_of(table.seconds, sizes),
        notes={
            "importer": f"{table.program} table",
            "lines": [table.line, table.last_line],
            "version": table.version,
            "dates": file_dates("the log"),
            **({"sweep": sweep} if sizes else {}),
        },
    )  # fmt: skip


def _placement(ranks: int, per_node: int | None) -> str:
    """Where ranks are, in words: a node and several are two networks, and no series over both."""
    if per_node is None:
        return "nodes not stated"
    return "one node" if per_node >= ranks else f"{per_node} on each node"


def _metrics(collective: str, ranks: int, sizes: Any, seconds: Any) -> dict[str, dict[str, Any]]:
    """The metrics of the benchmark allreduce; of one repeat the best is the median."""
    rates = sizes[:, None] / seconds
    algorithm, factor = float(rates.max()), bus_factor(collective, ranks) or math.nan
    median = float(np.median(rates[rates.max(axis=1).argmax()]))
    values = {
        "bus_bandwidth": (algorithm * factor, "bytes/s", "higher"),
        "bus_bandwidth_median": (median * factor, "bytes/s", "higher"),
        "algorithm_bandwidth": (algorithm, "bytes/s", "higher"),
        "latency": (float(np.median(seconds[0])), "s", "lower"),
    }
    return {
        name: {"value": value, "unit": unit, "better": better, "scope": "total"}
        for name, (value, unit, better) in values.items()
    }
