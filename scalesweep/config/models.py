"""What the models of YAML files share: strict values, and a line for each mistake. The text below a
field is its entry on the reference page (``tools/keys.py``)."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import core_schema

from scalesweep.core.errors import UserError, choices, did_you_mean
from scalesweep.core.expressions import Expression
from scalesweep.core.formatting import written

_Value = TypeVar("_Value")
_Model = TypeVar("_Model", bound="Model")


class Model(BaseModel):
    """A mapping of a file. ``FORM``: what may stand in its place, in words; empty: nothing else.
    ``SOME``: keys of which it must have some, in words."""

    # Built when it is first used: a model within others is not built for itself as well.
    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True
    )
    FORM: ClassVar[str] = ""
    SOME: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, given: Any) -> Any:
        allowed = sorted(field.alias or name for name, field in cls.model_fields.items())
        if not isinstance(given, Mapping):
            raise ValueError(_is_not(given, cls.FORM or f"a mapping ({', '.join(allowed)})"))
        if cls.SOME and not given:
            raise ValueError(f"is empty; write {cls.SOME}")
        if unknown := sorted(map(str, given.keys() - set(allowed))):
            names = ", ".join(map(repr, unknown))
            near = "".join(did_you_mean(key, allowed) for key in unknown[:-1])
            raise ValueError(f"unknown key {names}; {near}{choices(unknown[-1], allowed)}")
        return given


class WrongKeyError(ValueError):
    """``(key, text)``: what is wrong with a key, of a model that looks at several."""


def checked(check: Callable[[Any], str | None]) -> AfterValidator:
    """A value of which ``check`` says what is wrong; None: nothing."""

    def validate(value: Any) -> Any:
        if fault := check(value):
            raise ValueError(fault)
        return value

    return AfterValidator(validate)


def matching(pattern: str, wanted: str) -> AfterValidator:
    """A text must match a pattern as a whole; ``wanted``: what that is, in words."""
    fits = re.compile(pattern).fullmatch
    return checked(lambda text: None if fits(text) else f"{short(text)} is not allowed: {wanted}")


def one_of(allowed: Iterable[str]) -> AfterValidator:
    """A text must be one of these."""
    names = list(allowed)
    return checked(lambda text: None if text in names else _not_among(text, names))


def is_pattern(text: str) -> str | None:
    """What is wrong with a regular expression."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"'{text}' is not a regular expression ({error})"
    return None


@dataclass(frozen=True)
class Short:
    """Values of these types, and these words, are short for something: ``make`` it of them."""

    make: Callable[[Any], Any]
    kinds: tuple[type | str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:  # noqa: D105
        def whole(given: Any) -> Any:
            short_form = type(given) in self.kinds or given in self.kinds
            return self.make(given) if short_form else given

        return core_schema.no_info_before_validator_function(whole, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:  # noqa: D105
        types: list[Any] = [it if isinstance(it, type) else Literal[it] for it in self.kinds]
        return {"anyOf": [handler(schema), *(TypeAdapter(it).json_schema() for it in types)]}


def instead_of(key: str, *kinds: type) -> Short:
    """A value of these types is short for a mapping with this one key."""
    return Short(lambda given: {key: given}, kinds)


_TAGS: dict[type, str] = {str: "#text", bool: "#flag", dict: "#map", list: "#list"}
_TAGS |= dict.fromkeys((int, float), "#number")


def kind(given: Any) -> str:
    """The tag of a value's kind, for fields that may have several (``either``)."""
    return _TAGS.get(type(given), "#null")


def either(wanted: str) -> Discriminator:
    """A value of one of the kinds that are tagged; ``wanted``: these in words."""
    return Discriminator(
        kind, custom_error_type="form", custom_error_message="{wanted}",
        custom_error_context={"wanted": wanted},
    )  # fmt: skip


def _share(given: Any) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", str(given))
    if match is None or not 0 < float(match[1]) <= 100:
        raise ValueError(_is_not(given, "a share with its sign, above 0 % and up to 100 %: 3 %"))
    return float(match[1]) / 100


def _expression(given: Any) -> Expression:
    """An expression; ``settled`` finds it, for what only its file's model can check."""
    if kind(given) not in ("#text", "#number", "#flag"):
        raise ValueError(_is_not(given, "an expression"))
    try:
        return Expression(str(given), "")
    except UserError as error:
        raise ValueError(str(error).removeprefix(": ")) from None


# Not the length of a field: an item that is wrong would not be told then.
FILLED = checked(lambda given: None if given else "is empty")
LISTED = Short(lambda text: [text], (str,))
Real = Annotated[  # 4 stays 4
    Any, checked(lambda given: None if kind(given) == "#number" else _is_not(given, "a number"))
]
Text = Annotated[str, Field(min_length=1)]
Pattern = Annotated[Text, checked(is_pattern)]
Flag = StrictBool
Whole = StrictInt
Count = Annotated[StrictInt, Field(ge=1)]
Positive = Annotated[StrictFloat, Field(gt=0, allow_inf_nan=False)]
Minutes = Annotated[StrictFloat, Field(gt=0, le=1_000_000)]
FileName = Annotated[
    str, matching(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "letters, digits, '.', '_' and '-'")
]
Name = Annotated[
    str, matching(r"[a-z][a-z0-9_]*", "lower-case letters, digits and '_', a letter first")
]
Variable = Annotated[str, matching(r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and '_'")]
Expr = Annotated[
    Expression,
    BeforeValidator(_expression),
    WithJsonSchema({"type": ["string", "number", "boolean"], "format": "expression"}),
]
# Of 1, written in percent.
Share = Annotated[float, BeforeValidator(_share), WithJsonSchema({"type": "string"})]


def settled(value: _Value, where: str, known: Collection[str] | None = None) -> _Value:
    """A value whose expressions say where they are. Raises UserError if they read other names."""
    parts: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Expression):
        value.where = where
        if known is not None:
            value.check_names(known)
    elif isinstance(value, Model):
        names = ((field.alias or name, name) for name, field in type(value).model_fields.items())
        parts = ((f".{key}", getattr(value, name)) for key, name in names)
    elif isinstance(value, Mapping):
        parts = ((f".{key}", part) for key, part in value.items())
    elif isinstance(value, tuple):
        parts = ((f"[{index}]", part) for index, part in enumerate(value))
    for step, part in parts:
        settled(part, f"{where}{step}".replace(": .", ": ").removeprefix("."), known)
    return value


def read(model: type[_Model], content: Any, path: Path | str, key: str = "") -> _Model:
    """The content of a file, or of its ``key``, as a model. Raises UserError with each mistake."""
    if content is None:
        raise UserError(f"{path}: the file is empty")
    try:
        return model.model_validate(content, context={"file": path})
    except ValidationError as error:
        lines = []
        for where, text in map(_mistake, error.errors(include_url=False)):
            steps = [f"[{it}]" if isinstance(it, int) else f".{it}" for it in where]
            place = f"{key}{''.join(steps)}".lstrip(".")
            between = "" if not place else " " if text.startswith("is ") else ": "
            lines.append(f"{path}: {place}{between}{text}")
        raise UserError(*lines) from None


_LIST = "a list ([value, value])"
_KINDS = {
    "dict": "a mapping (key: value)", "mapping": "a mapping (key: value)", "list": _LIST,
    "tuple": _LIST, "string": "text", "path": "text", "int": "a whole number",
    "float": "a number", "bool": "true or false",
}  # fmt: skip


def _mistake(error: Any) -> tuple[tuple[Any, ...], str]:
    """Place and sentence of an error of pydantic."""
    what, given, where = error["type"], error["input"], error["loc"]
    about = error.get("ctx", {})
    where = tuple(part for part in where if not str(part).startswith("#"))
    if where and where[-1] == "[key]":
        where = where[:-2]
    if what == "form":
        return where, _is_not(given, about["wanted"])
    if what == "missing":
        return where[:-1], f"the key {where[-1]!r} is missing"
    if what == "value_error":
        *key, text = about["error"].args
        return (*where, *key), text
    if what == "literal_error":
        allowed = re.findall(r"'([^']*)'", about["expected"]) or [about["expected"]]
        return where, _not_among(given, allowed)
    if given is None or what.endswith(("_type", "_from_float", "_parsing")):
        return where, _is_not(given, _KINDS.get(what.partition("_")[0], "a value"))
    # Of bounds: such as "should be greater than 0".
    return where, f"{short(given)} {error['msg'].partition(' ')[2]}"


def _not_among(given: Any, allowed: Sequence[str]) -> str:
    near = f"; {did_you_mean(given, allowed)}".rstrip("; ")
    return f"{short(given)} is not one of {', '.join(allowed)}{near}"


def _is_not(given: Any, wanted: str) -> str:
    """What was given, and what is wanted instead."""
    if given is None:
        return f"is empty; write {wanted}"
    if wanted == "text" and isinstance(given, bool | int | float):
        return f'{short(given)} is not text; write "{short(given)}" in quotes'
    return f"{short(given)} is not {wanted}"


def short(value: Any) -> str:
    """A value for a message: true, false and null as in YAML, else its ``repr``, cut short."""
    text = written(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
