"""Tables of collectives: what OSU Micro-Benchmarks and nccl-tests print, and nccl-tests' JSON.

A table of osu_allreduce, osu_bcast and osu_allgather (mvapich.cse.ohio-state.edu/benchmarks), or of
all_reduce_perf, broadcast_perf and all_gather_perf (github.com/NVIDIA/nccl-tests: src/util.cu
writes both forms), becomes a run of the benchmark allreduce, whose report fits the network to it.
The size of an allgather is that of its result, as nccl-tests has it; OSU's is a rank's share.

OSU's other latencies (messages between two ranks, one-sided ones, barriers, other collectives)
become runs of a benchmark that the import makes, ``osu_latency``: between tests nothing compares.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.profile import bus_factor
from scalesweep.compute.log_lines import Line, open_packed
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.visible import visible
from scalesweep.importers.collective_tables import NCCL, OSU, Table
from scalesweep.importers.imported_run import (
    GPU,
    ImportedRun,
    ImportRefusedError,
    Refusal,
    declared_metrics,
)
from scalesweep.importers.launch_words import UNKNOWN, Launched, launched
from scalesweep.importers.made_benchmark import declared, made_of

BENCHMARK, LATENCIES = "allreduce", "osu_latency"
_LABEL = r"^(?:\s{0,6}\d{1,6}: )?"  # of srun --label: the first rank prints
SIGN = re.compile(rf"{_LABEL}# (?:OSU [\w -]{{1,80}} Test(?: v|$)|\s*size\s+count\s+type\b)")
JSON_SIGN = re.compile(r'^\{"version":\s?\d+,\s?"start_time":\s?"')
_OSU_HEAD = re.compile(r"^# OSU (?P<test>[\w -]{1,80}) Test(?: v(?P<version>.*))?$")
_OSU_TEST = re.compile(r"^(?:MPI|[NRX]?CCL)[\w-]* (?P<name>\w+) Latency$")
_OSU_TESTS = {"Allreduce": "allreduce", "Broadcast": "broadcast", "Allgather": "allgather"}
# These run on two ranks, and on no other number (c/mpi/pt2pt, c/mpi/one-sided).
_OF_TWO = re.compile(
    r"^MPI(?:-\w+)? Latency$|^MPI_(?:Put|Get|Accumulate|Get_accumulate|Fetch_and_op"
    r"|Compare_and_swap)(?:-\w+)? latency$",
    re.IGNORECASE,
)
_NCCL_TESTS = {"all_reduce": "allreduce", "broadcast": "broadcast", "all_gather": "allgather"}
_NCCL_NAME = re.compile(r"(?<![a-z])(?P<name>[a-z]{2,9}(?:_[a-z]{2,9}){0,2})_perf(?![a-z])")
_NCCL_HEAD = re.compile(r"^#\s+size\s+count\s+type\b(?P<more>.*)$")
_NCCL_RANK = re.compile(
    r"^#\s+Rank\s+(?P<rank>\d{1,7})(?:\s+Group\s+(?P<group>\d{1,5}))?\s+Pid\s+\d{1,10}\s+on\s+"
    r"(?P<host>\S{1,200})\s+device\s+\d{1,4}\s+\[[\w:]{1,20}\]\s(?P<gpu>.{1,100})$"
)
_READ = ", ".join(f"{test}_perf" for test in _NCCL_TESTS)


def check_test(text: str) -> str | None:
    """nccl-tests' name of a test that ``--test`` names; None if it is empty.

    Raises UserError for one that is not read.
    """
    name = text.strip().removesuffix("_perf")
    if text and name not in _NCCL_TESTS:
        raise UserError(f"--test {text}: must be one of {_READ}")
    return name or None


def read_runs(
    lines: Callable[[], Iterable[Line]],
    file: Path,
    ranks: int | None = None,
    test: str | None = None,
) -> Iterator[ImportedRun | Refusal]:
    """The tables of a log and the refusals in order; ``ranks`` of tables that do not state it,
    ``test`` of those of nccl-tests that do not say of which they are."""
    for table in _tables(lines(), file, test):
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
    try:
        with open_packed(file) as content:
            report = json.loads(content.read())
        yield _run(_json_table(report), file, None)
    except ImportRefusedError as error:
        yield Refusal(file, str(error), error.line, BENCHMARK)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
        yield Refusal(file, f"no whole JSON of nccl-tests ({error!r:.80})", 1, BENCHMARK)


def _tables(
    lines: Iterable[Line], file: Path, test: str | None
) -> Iterator[Table | ImportRefusedError]:
    """The tables of a log; in the place of a broken one what is wrong with it."""
    table: Table | None = None
    # What the lines before a table say of it: nccl-tests' program, and by rank host and GPU; the
    # last command that starts OSU's, once or in a loop.
    named = _test_named(file.name) or test
    devices: dict[int, tuple[str, str]] = {}
    command = UNKNOWN
    for line in lines:
        text = re.sub(_LABEL, "", line.text.rstrip(), count=1)
        try:
            if head := _OSU_HEAD.match(text) or _NCCL_HEAD.match(text):
                if table:
                    yield table
                if head.re is _OSU_HEAD:
                    table = _osu_table(head, command, line.number)
                else:
                    table = _nccl_table(head, named, devices, line.number)
                continue
            if table and table.takes(text, line.number):
                continue
            if table and table.sizes and (launched(text) or _test_named(text)):
                # Anything else among the rows, as of NCCL or UCX, ends no table.
                yield table
                table = None
        except ImportRefusedError as error:
            yield error
            table = None
        if match := _NCCL_RANK.match(text):
            devices = {} if match["rank"] == "0" else devices
            if (match["group"] or "0") == "0":
                devices[int(match["rank"])] = match["host"], match["gpu"].strip()
        named = _test_named(text) or named
        if "osu_" in text:
            command = launched(text) or command
    if table:
        yield table


def _test_named(text: str) -> str | None:
    """The program of nccl-tests that a line or a file's name has; the last of several."""
    names = _NCCL_NAME.findall(text[:5000])
    return names[-1] if names else None


def _osu_table(head: re.Match[str], command: Launched, line: int) -> Table:
    test = _OSU_TEST.match(head["test"])
    collective = _OSU_TESTS.get(test["name"], "") if test else ""
    plain = head["test"].lower()
    if not plain.endswith(" latency") or "non-blocking" in plain:
        raise ImportRefusedError(f"OSU {head['test']} Test: only latencies are read", line)
    of_two = not collective and _OF_TWO.match(head["test"])
    return Table(
        OSU, head["test"], collective, line, visible(head["version"] or "")[:20] or None,
        ranks=2 if of_two else command.ranks, per_node=command.ranks_per_node,
        options=command.options and visible(command.options), headed=bool(collective),
    )  # fmt: skip


def _nccl_table(
    head: re.Match[str], named: str | None, devices: dict[int, tuple[str, str]], line: int
) -> Table:
    if named is None:
        raise ImportRefusedError(
            "neither the log nor its name says which test of nccl-tests it is: add --test, one of "
            f"{_READ}",
            line,
        )
    columns = head["more"].split()
    if "time" not in columns:
        raise ImportRefusedError("a table without times (nccl-tests -C reports the CPU's)", line)
    table = _nccl(named, None, line)
    table.columns = columns[columns.index("time") :]
    table.ranks = len(devices) or None
    table.hosts = [host for host, _ in devices.values()]
    table.per_node = _on_each(table.hosts)
    table.gpu = next((gpu for _, gpu in devices.values()), None)
    return table


def _nccl(name: str, version: str | None, line: int) -> Table:
    if name not in _NCCL_TESTS:
        raise ImportRefusedError(f"{name}_perf: only {_READ} are read", line)
    return Table(NCCL, f"{name}_perf", _NCCL_TESTS[name], line, version)


def _on_each(hosts: Sequence[str], each: int = 1) -> int | None:
    """Ranks on a host, where all hosts have as many; ``each`` per entry."""
    counts = set(Counter(hosts).values())
    return counts.pop() * each if len(counts) == 1 else None


def _json_table(report: Any) -> Table:
    """The table of nccl-tests' JSON; raises ImportRefusedError for what is not to be trusted."""
    config = report["config"]
    # One entry for each process, however many GPUs it drives.
    devices = [it for it in config["devices"] if it["group"] == config["devices"][0]["group"]]
    each = int(config["nthreads"]) * int(config["ngpus"])
    name = _test_named(str(report["args"][0])) or "an unnamed test"
    table = _nccl(name, f"NCCL {report['nccl_version']}", 1)
    table.ranks, table.gpu = len(devices) * each, str(devices[0]["device_info"])[:100]
    table.hosts = [str(device["hostname"])[:200] for device in devices]
    table.per_node = _on_each(table.hosts, each)
    for result in report["results"]:
        way = "out_of_place" if result["out_of_place"] else "in_place"
        timed = result[way]
        if result["size"] <= 0:
            continue
        if "cpu_time" in timed or timed["nwrong"] not in (None, 0):
            what = f"size {result['size']}: wrong results, or times of the CPU (nccl-tests -C)"
            raise ImportRefusedError(what, 1)
        # Of each iteration, where the file has them, that of the slowest process.
        kept = result.get(f"{way}_per_iter")
        times = [float(it) for it in (kept["times_us"] if kept else [timed["time"]])]
        table.add(int(result["size"]), times, 1)
    return table


def _run(table: Table, file: Path, ranks: int | None) -> ImportedRun:
    """The run of one table, its times ``[size, repeat, 1]`` in seconds.

    ``ranks`` is used where the log states no number. Raises ImportRefusedError if the table has no
    row, no number of ranks or only one, or if its bus bandwidth is not that of so many ranks.
    """
    count = table.ranks or ranks
    if table.ranks and ranks and not table.fits(table.ranks):
        # A list that was cut says neither how many ranks there are nor where.
        count, table.hosts, table.per_node = ranks, [], None
    if not table.sizes:
        raise ImportRefusedError("a header without a row", table.line)
    if count is None:
        what = f"{table.program} does not state the number of ranks: --ranks N"
        raise ImportRefusedError(what, table.line)
    if count < 2:
        raise ImportRefusedError("a single rank exchanges nothing", table.line)
    if table.bandwidths and not table.fits(count):
        algorithm, bus = table.bandwidths
        raise ImportRefusedError(
            f"the bus bandwidth is {bus / algorithm:.4g} times the algorithm's, which is not that "
            f"of {table.collective} on {count} ranks: was the list of devices cut? add --ranks N",
            table.line,
        )
    per_node = table.per_node if table.ranks else None
    sizes = [size for size in table.sizes if size]  # a barrier has none
    if table.program == OSU and table.collective == "allgather":
        sizes = [size * count for size in sizes]
    fewest = min(map(len, table.seconds))
    seconds = np.array([times[:fewest] for times in table.seconds])
    variant = {"program": table.program} | ({GPU: table.gpu} if table.gpu else {})
    # A node and several are two networks, and no series over both.
    on_each = "one node" if (per_node or 0) >= count else f"{per_node} on each node"
    variant |= {"placement": on_each if per_node else "nodes not stated"}
    variant |= {"stated": "; ".join(table.stated)} if table.stated else {}
    of = {"operation": table.collective, "sizes": None}
    sweep = {
        "by": "message size", "unit": "bytes", "amount_unit": "bytes",
        "collective": table.collective or None, "values": sizes, "amounts": sizes,
    }  # fmt: skip
    return ImportedRun(
        benchmark=BENCHMARK if table.collective else LATENCIES,
        made=None if table.collective else made_of(declared(LATENCIES)),
        point={
            "ranks": count, **(of if table.collective else {"test": visible(table.test)}),
            **({"ranks_per_node": per_node} if per_node else {}),
            **({"launch_options": table.options} if table.options else {}),
        },
        file=file,
        line=table.line,
        source_digest=digest_of(
            [table.program, table.test, count, table.sizes, repr(table.seconds), table.line]
        ),
        variant=variant,
        samples={"sweep_seconds": seconds[:, :, None]} if sizes else {},
        metrics=_metrics(table.collective, count, np.array(sizes, np.float64), seconds),
        notes={
            "importer": f"{table.program} table",
            "lines": [table.line, table.last_line],
            "test": table.test,
            "version": table.version,
            "hosts": sorted(set(table.hosts)),
            **({"sweep": sweep} if sizes else {}),
        },
    )  # fmt: skip


def _metrics(collective: str, ranks: int, sizes: Any, seconds: Any) -> dict[str, dict[str, Any]]:
    """Metrics of the times [size, repeat]; of one repeat the best is the median."""
    latency = float(np.median(seconds[0]))
    if not collective:
        largest = float(np.median(seconds[-1])) if sizes.size else None
        return declared_metrics(LATENCIES, {"latency": latency, "largest_time": largest})
    rates = sizes[:, None] / seconds
    algorithm, factor = float(rates.max()), bus_factor(collective, ranks) or math.nan
    median = float(np.median(rates[rates.max(axis=1).argmax()]))
    return declared_metrics(BENCHMARK, {
        "bus_bandwidth": algorithm * factor, "bus_bandwidth_median": median * factor,
        "algorithm_bandwidth": algorithm, "latency": latency,
    })  # fmt: skip
