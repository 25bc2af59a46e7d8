"""What tables, figures and report take for granted of a record's content, checked in one place.

A record can be whole (its digest is right) and still hold what no table can use: text for a
number, a date that is none, a million metrics. Such a run is a hole with its cause. The launcher
checks before it writes a record, readers before they use one: what passes here breaks nothing
further on. Standard library only, for compute nodes.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scalesweep.core.errors import UserError

# A record of 1,024 ranks has some 100 kB.
MAX_BYTES = 1 << 25
# The widest tables have ten columns for each.
MAX_METRICS = 2000
MAX_PHASES = 1000
MAX_SPANS = 100_000
MAX_PARAMETERS = 1000
_MAX_NAME, _MAX_UNIT = 200, 64
# Of an imported profile; names of templates in C++ are long.
MAX_FUNCTIONS, _MAX_FUNCTION_NAME = 1000, 1000
_OF_FUNCTION = frozenset(
    ("name", "kind", "part", "calls", "own_s", "total_s", "min_s", "max_s", "share")
)
_MAX_COUNT = 2**31
# The squares of quotients of two such numbers are finite, and sums of many of them.
MAX_NUMBER = 1e60
_LATEST = 9000  # year; later ones overflow in other time zones
_INFINITE = float("inf")
_NUMBERS = frozenset((int, float))
_TIMES = frozenset(("s", "ms", "us", "µs", "ns", "min", "h"))
# Names that need no look.
_PHASES = frozenset(
    (
        *("import", "init", "data_staging", "data_loading", "preprocessing", "build", "broadcast"),
        *("warmup", "training", "timed", "validation", "evaluation", "teardown"),
    )
)


class UnusableRecordError(UserError):
    """A whole record whose content no table can use; the message names no run."""


def check_content(record: Mapping[str, Any]) -> None:
    """Raise UnusableRecordError naming the key unless tables can be made of a record.

    ``record`` has the keys and types of ``core.record.REQUIRED``, with what it says of ranks by
    column.
    """
    # Ten thousand records are checked in a report: what nearly all hold takes no call.
    if not (0 < record["version"] < _MAX_COUNT and 0 <= record["repeat"] < _MAX_COUNT):
        raise UnusableRecordError("version and repeat are not small numbers")
    if not 0 <= record["attempt"] < _MAX_COUNT:
        raise UnusableRecordError(f"attempt is {_shown(record['attempt'])}, out of range")
    if len(record["benchmark"]) > _MAX_NAME or len(record["site"]) > _MAX_NAME:
        raise UnusableRecordError(f"benchmark or site has more than {_MAX_NAME} characters")
    measured = record["source"] == "measured"
    _check_moment("started", record["started"], measured)
    _check_moment("ended", record["ended"], measured)
    _check_amounts("", record, ("wall_s",))
    if not isinstance(record.get("unsupported", ""), str):
        raise UnusableRecordError(f"unsupported is {_shown(record['unsupported'])}, not text")
    _check_point(record["point"])
    phases = record["phases"]
    _check_phases("phases", phases)
    if spans := record.get("phase_spans"):
        _check_spans(spans, phases)
    if metrics := record["metrics"]:
        _check_metrics(metrics)
    work = record["work"]
    _check_amounts("work.", work, ("samples_per_epoch", "bytes_per_epoch"))
    for name in ("samples_per_epoch", "bytes_per_epoch"):
        if work.get(name) == 0:
            raise UnusableRecordError(f"work.{name} is 0, not a positive number")
    if (energy := record.get("energy")) is not None:
        _check_energy(energy)
    if (load := record.get("load")) is not None:
        _check_load(load)
    if functions := record.get("functions"):
        _check_functions(functions)


def _check_point(point: Mapping[str, Any]) -> None:
    if len(point) > MAX_PARAMETERS:
        raise UnusableRecordError(
            f"point has {len(point):,} parameters, at most {MAX_PARAMETERS:,}"
        )
    if type(ranks := point.get("ranks")) is not int or not 0 < ranks < _MAX_COUNT:
        raise UnusableRecordError(f"point.ranks is {_shown(ranks)}, not a number of ranks")
    for name, value in point.items():
        if type(value) in _NUMBERS and not -MAX_NUMBER < value < MAX_NUMBER:
            raise UnusableRecordError(f"point.{name} is {_shown(value)}, out of range")


def _check_phases(where: str, phases: Any) -> None:
    if not isinstance(phases, dict):
        raise UnusableRecordError(f"{where} is {_shown(phases)}, not seconds by phase")
    if len(phases) > MAX_PHASES:
        raise UnusableRecordError(f"{where} has {len(phases):,} entries, at most {MAX_PHASES:,}")
    for name, value in phases.items():
        if not (type(value) is float and 0.0 <= value < MAX_NUMBER and name in _PHASES):
            _check_name(where, name)
            if value is not None:
                _check_number(f"{where}.{name}", value, 0)


def _check_spans(spans: Any, phases: Mapping[str, Any]) -> None:
    if not isinstance(spans, list) or len(spans) > MAX_SPANS:
        raise UnusableRecordError(f"phase_spans is not a list of at most {MAX_SPANS:,} spans")
    for span in spans:
        if not isinstance(span, list) or len(span) != 3 or type(span[0]) is not str:
            raise UnusableRecordError(f"phase_spans: {_shown(span)} is not [phase, begin, end]")
        name, begin, end = span
        if not (type(begin) is type(end) is float and -MAX_NUMBER < begin <= end < MAX_NUMBER):
            _check_number("phase_spans", begin)
            _check_number("phase_spans", end)
        if name not in phases:  # whose names have been checked
            _check_name("phase_spans", name)


def _check_metrics(metrics: Mapping[str, Any]) -> None:
    if len(metrics) > MAX_METRICS:
        raise UnusableRecordError(f"metrics has {len(metrics):,} entries, at most {MAX_METRICS:,}")
    for name, metric in metrics.items():
        _check_name("metrics", name)
        if not isinstance(metric, dict):
            raise UnusableRecordError(f"metric '{name}' is {_shown(metric)}, not an object")
        if not {"value", "unit", "better", "scope"} <= metric.keys():
            lacks = sorted({"value", "unit", "better", "scope"} - metric.keys())
            raise UnusableRecordError(f"metric '{name}' lacks '{lacks[0]}'")
        if metric["value"] is not None:
            _check_number(f"metric '{name}'", metric["value"])
        unit = metric["unit"]
        if type(unit) is not str or len(unit) > _MAX_UNIT or not unit.isprintable():
            raise UnusableRecordError(
                f"metric '{name}': its unit {_shown(unit)} is not text of up to "
                f"{_MAX_UNIT} characters"
            )
        if metric["better"] not in ("higher", "lower") or metric["scope"] not in ("rank", "total"):
            raise UnusableRecordError(
                f"metric '{name}': better is higher or lower, scope rank or total"
            )
        if metric["value"] is not None and metric["value"] <= 0:
            _check_sign(name, metric)


def _check_sign(name: str, metric: Mapping[str, Any]) -> None:
    """Refuse a time below 0, and a rate that no work was done at: a run that says so went wrong.

    A time may be 0 (nothing was waited for), and so may a rate of which less is better (errors/s).
    """
    value, unit = metric["value"], metric["unit"]
    _, slash, per = unit.rpartition("/")
    if per not in _TIMES or (value == 0 and not (slash and metric["better"] == "higher")):
        return
    kind, least = ("rate", "above 0") if slash else ("time", "0 or more")
    raise UnusableRecordError(f"metric '{name}' is {_shown(value)} {unit}: a {kind} is {least}")


def _check_load(load: Any) -> None:
    if not isinstance(load, dict):
        raise UnusableRecordError(f"load is {_shown(load)}, not an object")
    others = load.get("others")
    if others is not None and not (type(others) in _NUMBERS and 0 <= others <= 1):
        raise UnusableRecordError(f"load.others is {_shown(others)}, not a share from 0 to 1")


def _check_functions(functions: Any) -> None:
    rows = functions.get("rows") if isinstance(functions, dict) else None
    if not isinstance(rows, list) or len(rows) > MAX_FUNCTIONS:
        raise UnusableRecordError(f"functions.rows is not a list of at most {MAX_FUNCTIONS:,}")
    if type(ranks := functions.get("ranks")) is not int or not 0 < ranks < _MAX_COUNT:
        raise UnusableRecordError(f"functions.ranks is {_shown(ranks)}, not a number of ranks")
    for entry in rows:
        if not isinstance(entry, dict) or not entry.keys() >= _OF_FUNCTION:
            raise UnusableRecordError(f"functions: {_shown(entry)} is not a function")
        words = entry["name"], entry["kind"], entry["part"] or ""
        if any(type(word) is not str or len(word) > _MAX_FUNCTION_NAME for word in words):
            raise UnusableRecordError(f"functions: {_shown(words)} are not names")
        _check_number("functions.own_s", entry["own_s"], 0)
        _check_amounts("functions.", entry, ("calls", "total_s", "min_s", "max_s", "share"))


def _check_energy(energy: Any) -> None:
    if not isinstance(energy, dict):
        raise UnusableRecordError(f"energy is {_shown(energy)}, not an object")
    if phases := energy.get("phases"):
        _check_phases("energy.phases", phases)
    _check_amounts("energy.", energy, ("joules", "seconds", "interval_s", "sampler_cpu_s"))
    for key in ("sources", "hosts", "notes"):
        if (value := energy.get(key)) and not isinstance(value, list):
            raise UnusableRecordError(f"energy.{key} is {_shown(energy[key])}, not a list")
    domains = energy.get("domains")
    if not domains:
        return
    if not isinstance(domains, dict) or not all(isinstance(d, dict) for d in domains.values()):
        raise UnusableRecordError("energy.domains is not an object of objects")


def _check_moment(key: str, text: str, needed: bool) -> None:
    if not text and not needed:
        return
    try:
        year = datetime.fromisoformat(text).year
    except ValueError:
        year = 0
    if not 1900 < year < _LATEST:
        raise UnusableRecordError(
            f"{key} is {_shown(text)}, not a date such as 2026-03-01T08:00:00Z"
        )


def _check_amounts(where: str, values: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Numbers of an object that are 0 or more, or not known."""
    for name in names:
        value = values.get(name)
        if value is None or (type(value) in _NUMBERS and 0 <= value < MAX_NUMBER):
            continue
        _check_number(f"{where}{name}", value, 0)


def _check_number(where: str, value: Any, least: float = -_INFINITE) -> None:
    """A number that sums and squares of which are finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):  # NumPy's floats too
        raise UnusableRecordError(f"{where} is {_shown(value)}, not a number")
    if not (least <= value and -MAX_NUMBER < value < MAX_NUMBER):
        raise UnusableRecordError(f"{where} is {_shown(value)}, out of range")


def _check_name(where: str, name: str) -> None:
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise UnusableRecordError(f"{where}: {_shown(name)} is not a name")


def _shown(value: Any) -> str:
    """A value in a message: on one line, and not all of a long one."""
    try:
        text = ascii(value)
    except ValueError:  # an integer of too many digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
