"""What a record must be: its keys, their types, and numbers that tables can be made of.

``write_record`` checks before it writes, readers before they use what they have read. A program
whose result will not do has failed; a record that will not do is damaged.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.profilers import KINDS, NONE, folder_name

# Of records. One with another number is refused: results of other versions are in other folders.
SCHEMA = 4
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
    "profile": dict, "container": dict, "unsupported": str,
}  # fmt: skip
_METRIC = frozenset(("value", "unit", "better", "scope"))
_TIMES = frozenset(("s", "ms", "us", "µs", "ns", "min", "h"))


class BadRecordError(UserError):
    """A record that cannot be used: cut, edited, of another run, or not what a record must be."""


def check_record(record: Any, run_id: str) -> None:
    """Raise BadRecordError unless ``record`` is one of the run in the folder ``run_id``.

    What it says of ranks is by column. Raises UserError for one of another schema.
    """
    schema = record.get("schema")
    if type(schema) is int and schema != SCHEMA:
        raise UserError(
            f"{run_id}: another version of scalesweep wrote the record (schema {schema}, this one "
            f"reads {SCHEMA}): name another folder with --config results=FOLDER"
        )
    if wrong := next(_wrong(record, run_id), ""):
        raise BadRecordError(f"{run_id}: {wrong}")


def _wrong(record: Mapping[str, Any], run_id: str) -> Iterator[str]:
    """What is wrong with a record; each step relies on those before it."""
    yield from _wrong_types(record)
    profile = record.get("profile", {}).get("kind", NONE)
    if profile not in (NONE, *KINDS) or folder_name(record["run_id"], profile) != run_id:
        yield f"the record is of run {_shown(record['run_id'])}"
    if record["source"] not in SOURCES:
        yield f"source {_shown(record['source'])}, allowed: {', '.join(SOURCES)}"
    if type(ranks := record["point"].get("ranks")) is not int or ranks < 1:
        yield f"point.ranks is {_shown(ranks)}, not a number of ranks"
    for key in ("started", "ended"):
        if (record[key] or record["source"] == "measured") and not _is_date(record[key]):
            yield f"{key} is {_shown(record[key])}, not a date such as 2026-03-01T08:00:00Z"
    for where, value in _amounts(record):
        yield from _wrong_number(where, value)
    if len(record["metrics"]) > MAX_METRICS:
        yield f"metrics has more than {MAX_METRICS:,} entries"
    for name, metric in record["metrics"].items():
        yield from _wrong_metric(name, metric)


def _wrong_types(record: Mapping[str, Any]) -> Iterator[str]:
    for key, types in _REQUIRED.items():
        if key not in record:
            yield f"the record lacks '{key}'"
        elif not isinstance(record[key], types) or isinstance(record[key], bool):
            yield f"the record's '{key}' has the wrong type"
    for key, kind in _OPTIONAL.items():
        if not isinstance(record.get(key, kind()), kind):
            yield f"the record's '{key}' has the wrong type"


def _amounts(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Numbers that are 0 or more, or null, with their places."""
    yield "wall_s", record["wall_s"]
    yield "load.others", record.get("load", {}).get("others")
    energy = record.get("energy", {})
    for where, of, names in (
        ("work", record["work"], ("samples_per_epoch", "bytes_per_epoch")),
        ("energy", energy, ("joules", "seconds", "interval_s")),
        ("phases", record["phases"], record["phases"]),
        ("parts", record.get("parts", {}), record.get("parts", {})),
        ("energy.phases", energy.get("phases"), energy.get("phases") or ()),
    ):
        yield from ((f"{where}.{name}", of.get(name)) for name in names)


def _wrong_number(where: str, value: Any, least: float = 0) -> Iterator[str]:
    """What is wrong with a number, or null; of those that NumPy gives too."""
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        yield f"{where} is {_shown(value)}, not a number"
    elif value is not None and not least <= value <= MAX_NUMBER:
        yield f"{where} is {_shown(value)}, out of range"


def _wrong_metric(name: str, metric: Any) -> Iterator[str]:
    """Refuse a time below 0, and a rate that no work was done at: a run that says so went wrong.

    A time may be 0 (nothing was waited for), and so may a rate of which less is better (errors/s).
    """
    if not isinstance(metric, dict) or not metric.keys() >= _METRIC:
        yield f"metric {name!r} lacks one of {', '.join(sorted(_METRIC))}"
        return
    value, unit, better = metric["value"], metric["unit"], metric["better"]
    if not isinstance(unit, str) or not unit.isprintable():
        yield f"metric {name!r}: its unit {_shown(unit)} is not text"
    elif better not in ("higher", "lower") or metric["scope"] not in ("rank", "total"):
        yield f"metric {name!r}: better is higher or lower, scope rank or total"
    yield from _wrong_number(f"metric {name!r}", value, -MAX_NUMBER)
    _, slash, per = unit.rpartition("/")
    below = value is not None and (value < 0 or (value == 0 and slash and better == "higher"))
    if per in _TIMES and below:
        kind, least = ("rate", "above 0") if slash else ("time", "0 or more")
        yield f"metric {name!r} is {_shown(value)} {unit}: a {kind} is {least}"


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _shown(value: Any) -> str:
    """A value in a message: not all of a long one."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
