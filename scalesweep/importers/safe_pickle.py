"""Reading pickles of plain data from strangers without ever executing anything.

A pickle is a program for a stack machine that may import and call anything. This reader walks
its opcodes with ``pickletools.genops``, which only decodes, and rebuilds containers and scalars
by itself: no import, no call, no object of any class. A few names that plain data needs in old
protocols are recognised and replaced by code of this module; any other is refused by name.
"""

import io
import pickletools
import struct
from collections.abc import Callable
from typing import Any

from scalesweep.core.errors import UserError

MAX_BYTES = 1 << 20
# A configuration has some hundred values; few opcodes keep nesting, and all cost, small.
MAX_OPCODES = 10_000
KEY_TYPES = (str, int, float, bool, bytes, type(None))

_SCALARS = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE",
    "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_IGNORED = {"PROTO", "FRAME", "STOP"}
# NumPy type codes of numbers -> struct codes.
_NUMBERS = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I",
    "u8": "Q", "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip


class NotPlainError(Exception):
    """The pickle holds, or does, something other than plain data; the message says what."""


class _Mark:
    """Bottom of a group of stack entries."""


class _Name:
    """A class or function that the pickle names, never looked up."""

    def __init__(self, module: str, name: str) -> None:
        self.text = f"{module}.{name}"


class _Dtype:
    """Stand-in for the dtype of a pickled NumPy number."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.order = "<"


def _set(items: Any) -> Any:
    if not isinstance(items, list | tuple) or not all(isinstance(i, KEY_TYPES) for i in items):
        raise NotPlainError("a set of something other than scalars")
    return set(items)


def _ordered(pairs: Any = ()) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for pair in pairs if isinstance(pairs, list | tuple) else [None]:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise NotPlainError("an OrderedDict of something other than pairs")
        _put(result, pair[0], pair[1])
    return result


def _empty_bytes() -> bytes:
    return b""


def _encoded(text: Any, encoding: Any) -> bytes:
    # Short, because one memorised text could be encoded thousands of times.
    if not isinstance(text, str) or encoding != "latin1" or len(text) > 4096:
        raise NotPlainError("bytes that are long or in an unknown encoding")
    return text.encode("latin1")


def _dtype(code: Any, *flags: Any) -> _Dtype:
    if not isinstance(code, str) or code not in _NUMBERS:
        raise NotPlainError("a NumPy type other than a number's")
    return _Dtype(code)


def _number(dtype: Any, raw: Any) -> Any:
    if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes):
        raise NotPlainError("a NumPy scalar other than a number")
    return struct.unpack(dtype.order + _NUMBERS[dtype.code], raw)[0]


_SET = "builtins.set", "__builtin__.set", "builtins.frozenset", "__builtin__.frozenset"
_CALLS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_SET, _set),
    "collections.OrderedDict": _ordered,
    "builtins.bytes": _empty_bytes,
    "__builtin__.bytes": _empty_bytes,
    "_codecs.encode": _encoded,
    "numpy.dtype": _dtype,
    "numpy.core.multiarray.scalar": _number,
    "numpy._core.multiarray.scalar": _number,
}


def _put(target: Any, key: Any, value: Any) -> None:
    # Hashing a tuple walks it: nested ones could take forever.
    if type(target) is not dict or not isinstance(key, KEY_TYPES):
        raise NotPlainError("a dict key that is not a scalar")
    target[key] = value


def _check_plain(result: Any) -> None:
    """Refuse names, marks and types that were left lying in the data, at any depth."""
    seen: dict[int, Any] = {}
    waiting = [result]
    while waiting:
        value = waiting.pop()
        # Once per container: shared and circular ones must not be walked again and again.
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, _Name):
            raise NotPlainError(f"the class or function {value.text!a}")
        if isinstance(value, _Mark | _Dtype):
            raise NotPlainError("a damaged pickle")
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


class _Machine:
    """The stack machine, for plain data only."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def group(self) -> list[Any]:
        """Entries above the topmost mark, taken off together with it."""
        for position in range(len(self.stack) - 1, -1, -1):
            if isinstance(self.stack[position], _Mark):
                entries = self.stack[position + 1 :]
                del self.stack[position:]
                return entries
        raise NotPlainError("a damaged pickle (no mark)")

    def take(self, count: int) -> list[Any]:
        """The topmost ``count`` entries, taken off."""
        if len(self.stack) < count:
            raise NotPlainError("a damaged pickle (empty stack)")
        entries = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return entries

    def step(self, opcode: str, argument: Any) -> None:
        """Carry out one opcode."""
        if opcode in _IGNORED:
            return
        if opcode in _SCALARS:
            self.stack.append(argument)
        elif opcode in _CONSTANTS:
            self.stack.append(_CONSTANTS[opcode])
        elif opcode in _ACTIONS:
            _ACTIONS[opcode](self)
        elif opcode in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.top()
        elif opcode in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif opcode in ("GLOBAL", "INST"):
            self.name(*str(argument).split(" ", 1))
        else:
            raise NotPlainError(f"the pickle operation {opcode}")

    def top(self) -> Any:
        """The topmost entry, left where it is."""
        if not self.stack:
            raise NotPlainError("a damaged pickle (empty stack)")
        return self.stack[-1]

    def name(self, module: Any, name: Any) -> None:
        """Note a class or function by its name, refusing all but those of plain data."""
        if not isinstance(module, str) or not isinstance(name, str):
            raise NotPlainError("a damaged pickle (a name that is no text)")
        reference = _Name(module, name)
        if reference.text not in _CALLS:
            raise NotPlainError(f"the class or function {reference.text!a:.100}")
        self.stack.append(reference)

    def reduce(self) -> None:
        """Replace a known name and its arguments by the value that they construct."""
        function, arguments = self.take(2)
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise NotPlainError("a call of something that is not a name")
        self.stack.append(_CALLS[function.text](*arguments))

    def build(self) -> None:
        """State of a NumPy dtype (its byte order); nothing else may have one."""
        (state,) = self.take(1)
        dtype = self.top()
        if not isinstance(dtype, _Dtype) or not isinstance(state, tuple) or len(state) < 2:
            raise NotPlainError("an object with state of its own")
        dtype.order = ">" if state[1] == ">" else "<"

    def extend(self, items: list[Any]) -> None:
        """Append to the list on top."""
        target = self.top()
        if type(target) is not list:
            raise NotPlainError("a damaged pickle (appends to no list)")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        """Set items of the dict on top, from keys and values in turn."""
        target = self.top()
        if len(items) % 2:
            raise NotPlainError("a damaged pickle (a key without a value)")
        for key, value in zip(items[::2], items[1::2], strict=True):
            _put(target, key, value)

    def add(self, items: list[Any]) -> None:
        """Add to the set on top."""
        target = self.top()
        if type(target) is not set:
            raise NotPlainError("a damaged pickle (adds to no set)")
        target.update(_set(items))

    def new_dict(self, items: list[Any]) -> None:
        """Push a dict of keys and values in turn."""
        self.stack.append({})
        self.update(items)


_ACTIONS: dict[str, Callable[[_Machine], Any]] = {
    "MARK": lambda m: m.stack.append(_Mark()),
    "POP": lambda m: m.take(1),
    "POP_MARK": lambda m: m.group(),
    "DUP": lambda m: m.stack.append(m.top()),
    "MEMOIZE": lambda m: m.memo.__setitem__(len(m.memo), m.top()),
    "EMPTY_LIST": lambda m: m.stack.append([]),
    "EMPTY_TUPLE": lambda m: m.stack.append(()),
    "EMPTY_DICT": lambda m: m.stack.append({}),
    "EMPTY_SET": lambda m: m.stack.append(set()),
    "LIST": lambda m: m.stack.append(m.group()),
    "TUPLE": lambda m: m.stack.append(tuple(m.group())),
    "TUPLE1": lambda m: m.stack.append(tuple(m.take(1))),
    "TUPLE2": lambda m: m.stack.append(tuple(m.take(2))),
    "TUPLE3": lambda m: m.stack.append(tuple(m.take(3))),
    "FROZENSET": lambda m: m.stack.append(_set(m.group())),
    "DICT": lambda m: m.new_dict(m.group()),
    "APPEND": lambda m: m.extend(m.take(1)),
    "APPENDS": lambda m: m.extend(m.group()),
    "SETITEM": lambda m: m.update(m.take(2)),
    "SETITEMS": lambda m: m.update(m.group()),
    "ADDITEMS": lambda m: m.add(m.group()),
    "STACK_GLOBAL": lambda m: m.name(*m.take(2)),
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}


def load_plain(content: bytes, name: str) -> Any:
    """Data of the pickle ``content``: dict (also for OrderedDict), list, tuple, set, str, bytes,
    int, float, bool and None; NumPy numbers become Python's.

    Raises UserError beginning with ``name`` (a file) for anything else, and for what is damaged
    or larger than a configuration can be.
    """
    if len(content) > MAX_BYTES:
        raise UserError(f"{name}: {len(content)} bytes, a configuration has at most {MAX_BYTES}")
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(io.BytesIO(content))):
            if count >= MAX_OPCODES:
                raise NotPlainError(f"more than {MAX_OPCODES} operations")
            machine.step(opcode.name, argument)
        (result,) = machine.take(1)
        if machine.stack:
            raise NotPlainError("a damaged pickle (no single value)")
        _check_plain(result)
    except NotPlainError as error:
        raise UserError(f"{name}: refused, it holds {error}") from None
    except (ValueError, TypeError, LookupError, OverflowError, struct.error) as error:
        # Arguments that do not decode, calls with a wrong number of arguments, unknown memos.
        raise UserError(f"{name}: not a pickle that can be read ({error!s:.100})") from None
    return result
