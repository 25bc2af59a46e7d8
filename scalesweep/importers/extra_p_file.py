"""Files of Extra-P: its text, JSON (new and old), JSON lines and TaLPas formats.

As github.com/extra-p/extrap describes them (docs/file-formats.md). Each becomes a table: a row for
each repeat of a point and call path, with a column for each parameter and each metric.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

CALLPATH, REPEAT = "callpath", "repeat"
# The metric of files that name none.
UNNAMED = "value"

_TEXT = re.compile(r"\s*(?:PARAMETER|POINTS|METRIC|REGION)[ \t]+\S")
_LINE = re.compile(r'\s*\{(?=.*"params"\s*:\s*\{)(?=.*"value"\s*:)')
_TALPAS = re.compile(r'\s*\{\s*"parameters"\s*:\s*\{[^{}]*\}\s*;')
_NEW = re.compile(r'"(?:point|measurements)"\s*:')
_GROUP = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")


class Measured(NamedTuple):
    """The values of one metric at a point of a call path, with where they are in the file."""

    place: int
    point: Mapping[str, float]
    callpath: str
    metric: str
    values: Sequence[float]


class Unread(NamedTuple):
    """What cannot be read, and where it is."""

    place: int
    reason: str


class DamagedFileError(ValueError):
    """The file as a whole cannot be read; says why, with the line where there is one."""

    def __init__(self, reason: str, place: int | None = None) -> None:
        super().__init__(reason)
        self.place = place


Item = Measured | Unread


def begins(text: str) -> bool:
    """Whether the first lines of a file are those of a text or TaLPas file, or of JSON lines."""
    first = _first_line(text)
    return any(kind.match(first) for kind in (_TEXT, _TALPAS, _LINE))


def _first_line(text: str) -> str:
    """The first line that is neither empty nor a comment."""
    lines = (line.lstrip("\ufeff \t") for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def measurements(text: str) -> Iterator[Item] | None:
    """What a file of Extra-P holds; None where the text is none.

    Raises DamagedFileError, on reading too, if nothing in the file can be trusted.
    """
    if begins(text):
        return _text(text) if _TEXT.match(_first_line(text)) else _lines(text)
    if text.lstrip()[:1] == "{" and _NEW.search(text):
        try:
            held = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if isinstance(held, dict) and "measurements" in held and "parameters" in held:
            return _old(held) if "callpaths" in held else _new(held)
    return None


def _number(value: Any) -> float | int:
    """A finite number; whole ones stay so. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("not a number")
    number = float(value)
    if not math.isfinite(number) or abs(number) >= 2**63:
        raise ValueError("not a finite number of 64 bits")
    return int(number) if number.is_integer() and not isinstance(value, float) else number


def _lines(text: str) -> Iterator[Item]:
    """JSON lines, and TaLPas, whose lines have semicolons between their parts."""
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            plain = re.sub(r';\s*(?=")', ",", line) if _TALPAS.match(line) else line
            held = json.loads(plain)
            point = held["params"] if "params" in held else held["parameters"]
            values = held["value"] if isinstance(held["value"], list) else [held["value"]]
            yield Measured(
                place,
                {str(name): _json(value) for name, value in dict(point).items()},
                str(held.get("callpath", "")),
                str(held.get("metric", UNNAMED)),
                [_json(value) for value in values],
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            yield Unread(place, "not a measurement as Extra-P reads it")


def _json(value: Any) -> float | int:
    if isinstance(value, str):
        raise ValueError("not a number")
    return _number(value)


def _new(held: Mapping[str, Any]) -> Iterator[Item]:
    """``{"parameters": [...], "measurements": {callpath: {metric: [{point, values}]}}}``."""
    names, paths = held["parameters"], held["measurements"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DamagedFileError("'parameters' is no list of names")
    if not isinstance(paths, dict) or not all(isinstance(path, dict) for path in paths.values()):
        raise DamagedFileError("'measurements' does not name call paths and metrics")
    place = 0
    for callpath, metrics in paths.items():
        for metric, every in metrics.items():
            for measurement in every if isinstance(every, list) else [every]:
                place += 1
                where = f"measurement {place} ({callpath[:40]!r}, {metric[:40]!r})"
                try:
                    point = [_json(value) for value in measurement["point"]]
                    values = [_json(value) for value in measurement["values"]]
                except (ValueError, KeyError, TypeError):
                    yield Unread(place, f"{where}: no point and values of numbers")
                    continue
                if len(point) != len(names):
                    count = f"{len(point)} coordinates, {len(names)} parameters"
                    yield Unread(place, f"{where}: {count}")
                    continue
                yield Measured(
                    place, dict(zip(names, point, strict=True)), callpath, metric, values
                )


def _old(held: Mapping[str, Any]) -> Iterator[Item]:
    """The older JSON: parameters, call paths, metrics and coordinates by their ids."""
    try:
        names, callpaths, metrics = (
            {entry["id"]: str(entry["name"]) for entry in held[key]}
            for key in ("parameters", "callpaths", "metrics")
        )
        points = {
            coordinate["id"]: {
                names[pair["parameter_id"]]: _number(pair["parameter_value"])
                for pair in coordinate["parameter_value_pairs"]
            }
            for coordinate in held["coordinates"]
        }
        every = list(held["measurements"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(f"not whole: {type(error).__name__} {str(error)[:40]}") from None
    for place, measurement in enumerate(every, 1):
        try:
            yield Measured(
                place,
                points[measurement["coordinate_id"]],
                callpaths[measurement["callpath_id"]],
                metrics[measurement["metric_id"]],
                [_number(measurement["value"])],
            )
        except (ValueError, KeyError, TypeError):
            yield Unread(place, f"measurement {place}: names what the file does not have")


def _text(text: str) -> Iterator[Item]:
    """``PARAMETER``, ``POINTS``, then for each call path and metric a ``DATA`` line by point."""
    names: list[str] = []
    points: list[dict[str, float]] = []
    callpath, metric = "", UNNAMED
    block: list[Item] = []
    began = 1
    for place, line in enumerate(text.splitlines(), 1):
        field, _, rest = line.strip().partition(" ") if " " in line.strip() else _tabbed(line)
        rest = rest.strip()
        if not field or field.startswith("#"):
            continue
        if field == "PARAMETER":
            names += rest.split()
        elif field == "POINTS":
            if not names:
                raise DamagedFileError(
                    "POINTS before any PARAMETER: nothing names the coordinates", place
                )
            points += _points(rest, names, place)
        elif field in ("METRIC", "REGION"):
            yield from _whole(block, points, callpath, metric, began)
            block, began = [], place
            callpath, metric = (rest, metric) if field == "REGION" else (callpath, rest)
        elif field == "DATA":
            if not points:
                raise DamagedFileError("DATA before any POINTS", place)
            point = points[len(block)] if len(block) < len(points) else {}
            try:
                values = [_number(word) for word in rest.split()]
                block.append(Measured(place, point, callpath, metric, values))
            except ValueError:
                block.append(Unread(place, f"DATA {rest[:40]!a}: not all of it are numbers"))
        else:
            yield Unread(place, f"{field[:40]!a} is no field of Extra-P's text format")
    yield from _whole(block, points, callpath, metric, began)
    if not points:
        raise DamagedFileError("holds no POINTS")


def _tabbed(line: str) -> tuple[str, str, str]:
    """Field and value of a line that has no space between them."""
    return line.strip().partition("\t")


def _whole(
    block: Sequence[Item],
    points: Sequence[Mapping[str, float]],
    callpath: str,
    metric: str,
    began: int,
) -> Iterator[Item]:
    """A block with a DATA line for each point; what it is short of could belong to any of them."""
    if block and len(block) != len(points):
        yield Unread(
            began,
            f"{len(block)} DATA lines of {callpath[:40]!r}, {metric[:40]!r} for {len(points)} "
            "points: which belongs to which cannot be told",
        )
        return
    yield from block


def _points(text: str, names: Sequence[str], place: int) -> Iterator[dict[str, float]]:
    """The points of a line: ``(1 2) (3 4)``, ``((1) (2)) ((3) (4))``, or numbers alone."""
    groups = [match[1] for match in _GROUP.finditer(text)] if "(" in text else text.split()
    if "(" in text and _GROUP.sub("", text).strip():
        raise DamagedFileError(
            "POINTS with a bracket that is not closed, or a number outside of any", place
        )
    for group in groups:
        try:
            point = [_number(number) for number in re.sub(r"[()]", " ", group).split()]
        except ValueError:
            raise DamagedFileError(
                f"POINTS ({group[:40]}): not all of it are numbers", place
            ) from None
        if len(point) != len(names):
            raise DamagedFileError(
                f"POINTS ({group[:40]}): {len(point)} coordinates, {len(names)} parameters", place
            )
        yield dict(zip(names, point, strict=True))
