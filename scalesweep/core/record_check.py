"""What a record must be: its keys, their types, and numbers that tables can be made of.

``write_record`` checks before it writes, readers before they use what they have read. A program
whose result will not do has failed; a record that will not do is damaged.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.profilers import KINDS, NONE, folder_name

# Of records. One with another number is refused: results of other versions are in other folders.
SCHEMA = 3
# A record of 1,024 ranks has some 100 kB.
MAX_BYTES = 1 << 25
# The widest tables have ten columns for each.
MAX_METRICS = 2000
# The squares of quotients of two such numbers are finite, and sums of many of them.
MAX_NUMBER = 1e60
SOURCES = ("measured", "simulated", "imported")

_NUMBER = (int, float, type(None))
# Key -> types of its value. What is not known is null, not missing; of those that a run may lack
# (``_OPTIONAL``) docs/reference/files.md says which runs have them.
_REQUIRED: dict[str, tuple[type, ...]] = {
    "schema": (int,), "run_id": (str,), "benchmark": (str,), "version": (int,), "point": (dict,),
    "repeat": (int,), "site": (str,), "source": (str,), "started": (str,), "ended": (str,),
    "wall_s": _NUMBER, "attempt": (int,), "phases": (dict,), "metrics": (dict,), "work": (dict,),
    "resources": (dict,), "environment": (dict,), "notes": (dict,), "git": (dict, type(None)),
    "command": (list,), "samples": (dict, type(None)),
}  # fmt: skip
_OPTIONAL: dict[str, type] = {
    "phase_spans": list, "parts": dict, "functions": dict, "energy": dict, "load": dict,
    "profile": dict, "unsupported": str,
}  # fmt: skip
_METRIC = frozenset(("value", "unit", "better", "scope"))
_FUNCTION = ("own_s", "calls", "total_s", "min_s", "max_s", "share")
_METRIC_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}")
_TIMES = frozenset(("s", "ms", "us", "µs", "ns", "min", "h"))
_MAX_COUNT, _MAX_NAME, _MAX_UNIT = 2**31, 200, 64
_LATEST = 9000  # year; later ones overflow in other time zones


class BadRecordError(UserError):
    """A record that cannot be used: cut, edited, of another run, or not what a record must be."""


class _WrongError(Exception):
    """What is wrong with a value."""


def check_record(record: Any, run_id: str) -> None:
    """Raise BadRecordError unless ``record`` is one of the run in the folder ``run_id``.

    What it says of ranks is by column. Raises UserError for one of another schema.
    """
    if not isinstance(record, dict):
        raise BadRecordError(f"{run_id}: the record is not a JSON object")
    schema = record.get("schema")
    if type(schema) is int and schema != SCHEMA:
        raise UserError(
            f"{run_id}: another version of scalesweep wrote the record (schema {schema}, this one "
            f"reads {SCHEMA}): name another folder with --config results=FOLDER"
        )
    try:
        _check_keys(record)
        kind = record.get("profile", {}).get("kind", NONE)
        if kind not in (NONE, *KINDS) or folder_name(record["run_id"], kind) != run_id:
            raise _WrongError(f"the record is of run {_shown(record['run_id'])}")
        _check_values(record)
    except _WrongError as error:
        raise BadRecordError(f"{run_id}: {error}") from None


def _check_keys(record: Mapping[str, Any]) -> None:
    for key, types in _REQUIRED.items():
        if key not in record:
            raise _WrongError(f"the record lacks '{key}'")
        if not isinstance(record[key], types) or isinstance(record[key], bool):
            raise _WrongError(f"the record's '{key}' has the wrong type")
    for key, kind in _OPTIONAL.items():
        if not isinstance(record.get(key, kind()), kind):
            raise _WrongError(f"the record's '{key}' has the wrong type")
    samples = record["samples"]
    if samples is not None and not (
        type(samples.get("bytes")) is int and type(samples.get("blake2b")) is str
    ):
        raise _WrongError("what the record says of its samples is not whole")
    if record["source"] not in SOURCES:
        raise _WrongError(f"source {_shown(record['source'])}, allowed: {', '.join(SOURCES)}")


def _check_values(record: Mapping[str, Any]) -> None:
    if not 0 < record["version"] < _MAX_COUNT or not 0 <= record["repeat"] < _MAX_COUNT:
        raise _WrongError("version and repeat are not small numbers")
    if not 0 <= record["attempt"] < _MAX_COUNT:
        raise _WrongError(f"attempt is {_shown(record['attempt'])}, out of range")
    for key in ("started", "ended"):
        _check_moment(key, record[key], record["source"] == "measured")
    _check_amount("wall_s", record["wall_s"])
    _check_point(record["point"])
    for where, amounts in (
        ("phases", record["phases"]),
        ("parts", record.get("parts", {})),
        ("energy.phases", record.get("energy", {}).get("phases") or {}),
    ):
        _check_names(where, amounts)
        for name, value in amounts.items():
            _check_amount(f"{where}.{name}", value)
    for span in record.get("phase_spans", ()):
        _check_span(span)
    if len(record["metrics"]) > MAX_METRICS:
        raise _WrongError(f"metrics has more than {MAX_METRICS:,} entries")
    for name, metric in record["metrics"].items():
        _check_metric(name, metric)
    for name in ("samples_per_epoch", "bytes_per_epoch"):
        _check_amount(f"work.{name}", record["work"].get(name), above=True)
    _check_energy(record.get("energy", {}))
    _check_amount("load.others", record.get("load", {}).get("others"), 1)
    for row in record.get("functions", {}).get("rows", ()):
        if not isinstance(row, dict) or not row.keys() >= {"name", "kind", "part", *_FUNCTION}:
            raise _WrongError(f"functions: {_shown(row)} is not a function")
        for key in _FUNCTION:
            _check_amount(f"functions.{key}", row[key])


def _check_point(point: Mapping[str, Any]) -> None:
    if type(ranks := point.get("ranks")) is not int or not 0 < ranks < _MAX_COUNT:
        raise _WrongError(f"point.ranks is {_shown(ranks)}, not a number of ranks")
    for name, value in point.items():
        if type(value) in (int, float) and not -MAX_NUMBER < value < MAX_NUMBER:
            raise _WrongError(f"point.{name} is {_shown(value)}, out of range")


def _check_span(span: Any) -> None:
    if not isinstance(span, list | tuple) or len(span) != 3 or type(span[0]) is not str:
        raise _WrongError(f"phase_spans: {_shown(span)} is not [phase, begin, end]")
    for value in span[1:]:
        _check_amount("phase_spans", value)


def _check_metric(name: str, metric: Any) -> None:
    """Refuse a time below 0, and a rate that no work was done at: a run that says so went wrong.

    A time may be 0 (nothing was waited for), and so may a rate of which less is better (errors/s).
    """
    if not _METRIC_NAME.fullmatch(name):
        raise _WrongError(f"metric {_shown(name)}: names are letters, digits and _ . -")
    if not isinstance(metric, dict) or not metric.keys() >= _METRIC:
        raise _WrongError(f"metric '{name}' lacks one of {', '.join(sorted(_METRIC))}")
    value, unit, better = metric["value"], metric["unit"], metric["better"]
    if type(unit) is not str or len(unit) > _MAX_UNIT or not unit.isprintable():
        raise _WrongError(
            f"metric '{name}': its unit {_shown(unit)} is not text of up to {_MAX_UNIT} characters"
        )
    if better not in ("higher", "lower") or metric["scope"] not in ("rank", "total"):
        raise _WrongError(f"metric '{name}': better is higher or lower, scope rank or total")
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _WrongError(f"metric '{name}' is {_shown(value)}, not a number")
    if not -MAX_NUMBER < value < MAX_NUMBER:
        raise _WrongError(f"metric '{name}' is {_shown(value)}, out of range")
    _, slash, per = unit.rpartition("/")
    if per in _TIMES and (value < 0 or (value == 0 and slash and better == "higher")):
        kind, least = ("rate", "above 0") if slash else ("time", "0 or more")
        raise _WrongError(f"metric '{name}' is {_shown(value)} {unit}: a {kind} is {least}")


def _check_energy(energy: Mapping[str, Any]) -> None:
    for key in ("joules", "seconds", "interval_s", "sampler_cpu_s"):
        _check_amount(f"energy.{key}", energy.get(key))
    domains = energy.get("domains") or {}
    if not isinstance(domains, dict) or not all(isinstance(d, dict) for d in domains.values()):
        raise _WrongError("energy.domains is not an object of objects")


def _check_names(where: str, values: Any) -> None:
    if not isinstance(values, dict) or len(values) > MAX_METRICS:
        raise _WrongError(f"{where} is not an object of at most {MAX_METRICS:,} entries")
    for name in values:
        if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
            raise _WrongError(f"{where}: {_shown(name)} is not a name")


def _check_moment(key: str, text: str, needed: bool) -> None:
    if not text and not needed:
        return
    try:
        year = datetime.fromisoformat(text).year
    except ValueError:
        year = 0
    if not 1900 < year < _LATEST:
        raise _WrongError(f"{key} is {_shown(text)}, not a date such as 2026-03-01T08:00:00Z")


def _check_amount(where: str, value: Any, most: float = MAX_NUMBER, above: bool = False) -> None:
    """A number of 0 or more (``above``: above 0), or null."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):  # NumPy's floats too
        raise _WrongError(f"{where} is {_shown(value)}, not a number")
    if not 0 <= value <= most or (above and value == 0):
        raise _WrongError(f"{where} is {_shown(value)}, out of range")


def _shown(value: Any) -> str:
    """A value in a message: on one line, and not all of a long one."""
    try:
        text = ascii(value)
    except ValueError:  # an integer of too many digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
