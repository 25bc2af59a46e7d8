"""Whether JSON that a program has written is as a type declares it."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def check(value, declared, where="native"):
    """Return what differs, one line each: keys missing and unknown, values of other types."""
    origin, inner = get_origin(declared), get_args(declared)
    if is_typeddict(declared):
        parts = [_check_keys(value, declared, where)]
    elif origin in (types.UnionType, Union):
        wrong = [check(value, each, where) for each in inner]
        parts = [] if [] in wrong else wrong[:1]
    elif origin is dict and isinstance(value, dict):
        parts = [check(each, inner[1], f"{where}.{key}") for key, each in value.items()]
    elif origin is list and isinstance(value, list):
        parts = [check(each, inner[0], f"{where}[{n}]") for n, each in enumerate(value)]
    elif origin is tuple and isinstance(value, list) and len(value) == len(inner):
        pairs = enumerate(zip(value, inner, strict=True))
        parts = [check(each, kind, f"{where}[{n}]") for n, (each, kind) in pairs]
    else:
        fits = value in inner if origin is Literal else _is_of(value, origin or declared)
        parts = [] if fits else [[f"{where}: {value!r} is no {declared}"]]
    return [line for part in parts for line in part]


def _check_keys(value, declared, where):
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    hints = get_type_hints(declared)
    lines = [f"{where}.{key} is missing" for key in declared.__required_keys__ - value.keys()]
    lines += [f"{where}.{key} is not declared" for key in value.keys() - hints.keys()]
    for key in value.keys() & hints.keys():
        lines += check(value[key], hints[key], f"{where}.{key}")
    return sorted(lines)


def _is_of(value, declared):
    """Whether a value is of a type; an integer is a float as well, and true is none."""
    if declared is Any or isinstance(value, bool):
        return declared in (Any, bool)
    return isinstance(value, (int, float) if declared is float else declared)
