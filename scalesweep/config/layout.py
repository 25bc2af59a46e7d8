"""Short names of layouts: how the ranks of a point share the work, as benchmark.yaml words it.

Parameters that only mean something together (a mesh of ranks and its options) make labels of six
values. A benchmark declares which these are and how a value is written; a layout is then called
``fsdp2 2x4, tp 2``. Points that differ in these parameters never share a name.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.analysis.factors import most_values
from scalesweep.core.errors import UserError, choices
from scalesweep.core.expressions import Expression
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.layouts import LAYOUT, values_text
from scalesweep.core.plan_format import PlanLayouts

_FIELD = re.compile(r"\{([^{}]*)\}")
_RANKS = "ranks"
# Where words are written: at one count of ranks, or over several; absent: at both.
_ONE_COUNT, _SEVERAL_COUNTS = "one_count", "several_counts"


@dataclass(frozen=True)
class Words:
    """What a name says of some parameters.

    ``text``: texts and expressions in turn; ``ranks``: how many ranks the words stand for, or the
    factors of that number.
    """

    when: Expression | None
    text: tuple[str | Expression, ...]
    ranks: Expression | None
    only: str

    def at(self, point: Mapping[str, Any], one_count: bool) -> str:
        """The words for a point; empty where they do not apply, or stand for a single rank."""
        if self.only not in ("", _ONE_COUNT if one_count else _SEVERAL_COUNTS):
            return ""
        if self.when and not self.when(point):
            return ""
        text = "".join(
            part if isinstance(part, str) else text_of(part(point)) for part in self.text
        )
        if self.ranks is None or not one_count:
            return text
        value = self.ranks(point)
        factors = value if isinstance(value, list | tuple) else [value]
        if math.prod(factors) == 1:
            return ""
        while factors[0] == 1:
            factors = factors[1:]
        return f"{text} {'x'.join(map(text_of, factors))}"


@dataclass(frozen=True)
class Layout:
    """The parameters of a benchmark that lay out its ranks, and the words for their values."""

    defaults: Mapping[str, Any]  # of the parameters, in the order of their declaration
    words: tuple[Words, ...]
    doc: str

    def named(
        self, points: Sequence[Mapping[str, Any]], axes: Sequence[str], scale: str
    ) -> PlanLayouts | None:
        """The layouts of an experiment's points with their names.

        None where fewer than two of the parameters vary, or where they form a grid, whose
        directions a reader wants apart. A parameter with one value for each count of ``scale``
        does not vary: along a series a layout keeps its name.
        """
        names = [n for n in self.defaults if n in axes and most_values(points, [scale], n) > 1]
        layouts: dict[str, dict[str, Any]] = {}
        for point in points:
            values = {name: point[name] for name in names}
            layouts.setdefault(canonical_json(values), values)
        sizes = [len({canonical_json(of[name]) for of in layouts.values()}) for name in names]
        if len(names) < 2 or len(layouts) == math.prod(sizes):
            return None
        texts = unequal(layouts, self._texts(points, names))
        usual = canonical_json({name: self.defaults[name] for name in names})
        return {
            "doc": self.doc,
            "default": texts.get(usual),
            "names": [{"values": of, "name": texts[key]} for key, of in layouts.items()],
        }

    def _texts(self, points: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, str]:
        """A name for each layout, without words that all have, or that change with the count."""
        one_count = len({point[_RANKS] for point in points}) == 1
        texts: dict[str, list[set[str]]] = {}
        for point in points:
            key = canonical_json({name: point[name] for name in names})
            of = texts.setdefault(key, [set() for _ in self.words])
            for kept, words in zip(of, self.words, strict=True):
                kept.add(words.at(point, one_count))
        steady = [
            place
            for place in range(len(self.words))
            if all(len(of[place]) == 1 for of in texts.values())
        ]
        differing = [
            place for place in steady if len({min(of[place]) for of in texts.values()}) > 1
        ]
        short = {key: _joined(of, differing) for key, of in texts.items()}
        if all(short.values()):
            return short
        return {key: _joined(of, steady) for key, of in texts.items()}


def _joined(words: Sequence[set[str]], places: Sequence[int]) -> str:
    return ", ".join(text for place in places if (text := min(words[place])))


def unequal(layouts: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]) -> dict[str, str]:
    """The names, each followed by the values that it does not tell where others share it."""
    shared: dict[str, list[str]] = {}
    for key, text in texts.items():
        shared.setdefault(text, []).append(key)
    names: dict[str, str] = {}
    for text, keys in shared.items():
        differ = [
            name
            for name in layouts[keys[0]]
            if len({canonical_json(layouts[key][name]) for key in keys}) > 1
        ]
        for key in keys:
            more = values_text({name: layouts[key][name] for name in differ})
            names[key] = ", ".join(filter(None, (text, more)))
    if len(set(names.values())) == len(names) and all(names.values()):
        return names
    return {key: values_text(values) for key, values in layouts.items()}


def load_layout(content: Mapping[str, Any], defaults: Mapping[str, Any], path: Path) -> Layout:
    """The layout that benchmark.yaml declares; raises UserError for what it cannot name."""
    if LAYOUT in defaults:
        raise UserError(
            f"{path}: parameters.{LAYOUT}: with layout declared, tables have a column of this "
            "name; give the parameter another name"
        )
    parameters = content["parameters"]
    for index, name in enumerate(parameters):
        if name not in defaults or name == _RANKS:
            known = sorted(defaults.keys() - {_RANKS})
            raise UserError(
                f"{path}: layout.parameters[{index}]: {name!r} cannot lay out ranks; "
                + choices(name, known)
            )
    words = []
    for index, entry in enumerate(content["words"]):
        words.append(_words(entry, frozenset(parameters), f"{path}: layout.words[{index}]"))
    return Layout({name: defaults[name] for name in parameters}, tuple(words), content["doc"])


def _words(entry: Mapping[str, str], names: frozenset[str], where: str) -> Words:
    def expression(text: str, key: str, known: frozenset[str] = names) -> Expression:
        return Expression(text, f"{where}.{key}").check_names(known)

    parts = _FIELD.split(entry["text"])  # every second one stood in braces
    if any(brace in part for part in parts[::2] for brace in "{}"):
        raise UserError(f"{where}.text: {entry['text']!r}: a brace without its other one")
    return Words(
        when=expression(entry["when"], "when") if "when" in entry else None,
        text=tuple(
            expression(part, "text") if place % 2 else part for place, part in enumerate(parts)
        ),
        ranks=expression(entry["ranks"], "ranks", names | {_RANKS}) if "ranks" in entry else None,
        only=entry.get("only", ""),
    )
