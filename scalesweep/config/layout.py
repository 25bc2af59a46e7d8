"""Short names of layouts: how the ranks of a point share the work, as benchmark.yaml words it.

Parameters that only mean something together (a mesh of ranks and its options) make labels of six
values. A benchmark declares which these are and how a value is written; a layout is then called
``fsdp2 2x4, tp 2``. Points that differ in these parameters never share a name.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from scalesweep.analysis.factors import most_values
from scalesweep.config.command_template import fill
from scalesweep.config.models import FILLED, UNEQUAL, Expr, Line, Model, Text
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.layouts import LAYOUT, values_text
from scalesweep.core.plan_format import PlanLayouts

_Point = Mapping[str, Any]


class Words(Model):
    """Words of a layout's name."""

    text: Text
    """the words; `{PARAMETER}` is replaced by its value"""
    when: Expr | None = None
    """an expression: whether a layout has them; default: always"""
    ranks: Expr | None = None
    """ranks that the words stand for, or a list of the factors of that number; it may read `ranks`.
    Written behind the words where all points have as many ranks, and words that then stand for a
    single rank are left out"""
    only: Literal["one_count", "several_counts"] | None = None
    """where the words are written: where all points have as many ranks, or where they do not;
    default: both"""

    def at(self, point: _Point, one_count: bool) -> str:
        """The words for a point; empty where they do not apply, or stand for a single rank."""
        elsewhere = self.only is not None and one_count != (self.only == "one_count")
        if elsewhere or (self.when and not self.when(point)):
            return ""
        text = self.text.format_map(point)
        if self.ranks is None or not one_count:
            return text
        value = self.ranks(point)
        factors = value if isinstance(value, list | tuple) else [value]
        if math.prod(factors) == 1:
            return ""
        while factors[0] == 1:
            factors = factors[1:]
        return f"{text} {'x'.join(map(text_of, factors))}"


class Layout(Model):
    """Short names for how ranks share the work."""

    parameters: Annotated[tuple[Line, ...], Field(min_length=2), UNEQUAL]
    """the parameters that a layout consists of, without `ranks`"""
    words: Annotated[tuple[Words, ...], FILLED]
    """what a name consists of, in this order; words that are the same for all points of an
    experiment are left out"""
    doc: Line
    """what the names mean, for the report"""

    def check(self, known: Mapping[str, Any], path: Any) -> None:
        """Raise UserError for what cannot lay out ranks."""
        if LAYOUT in known:
            raise UserError(
                f"{path}: parameters.{LAYOUT}: with layout declared, tables have a column of this "
                "name; give the parameter another name"
            )
        for index, words in enumerate(self.words):
            fill(words.text, known, f"{path}: layout.words[{index}].text")
        for index, name in enumerate(self.parameters):
            if name not in known or name == "ranks":
                raise UserError(
                    f"{path}: layout.parameters[{index}]: {name!r} cannot lay out ranks; "
                    + choices(name, sorted(known.keys() - {"ranks"}))
                )

    def named(
        self, points: Sequence[_Point], axes: Sequence[str], scale: str, defaults: _Point
    ) -> PlanLayouts | None:
        """The layouts of an experiment's points with their names.

        None where fewer than two of the parameters vary, or where they form a grid, whose
        directions a reader wants apart. A parameter with one value for each count of ``scale``
        does not vary: along a series a layout keeps its name.
        """
        names = [n for n in self.parameters if n in axes and most_values(points, [scale], n) > 1]
        layouts: dict[str, dict[str, Any]] = {}
        for point in points:
            values = {name: point[name] for name in names}
            layouts.setdefault(canonical_json(values), values)
        sizes = [len({canonical_json(of[name]) for of in layouts.values()}) for name in names]
        if len(names) < 2 or len(layouts) == math.prod(sizes):
            return None
        texts = unequal(layouts, self._texts(points, names))
        usual = canonical_json({name: defaults[name] for name in names})
        return {
            "doc": self.doc,
            "default": texts.get(usual),
            "names": [{"values": of, "name": texts[key]} for key, of in layouts.items()],
        }

    def _texts(self, points: Sequence[_Point], names: Sequence[str]) -> dict[str, str]:
        """A name for each layout, without words that all have, or that change with the count."""
        one_count = len({point["ranks"] for point in points}) == 1
        said: dict[str, list[set[str]]] = {}
        for point in points:
            key = canonical_json({name: point[name] for name in names})
            kept = said.setdefault(key, [set() for _ in self.words])
            for texts, words in zip(kept, self.words, strict=True):
                texts.add(words.at(point, one_count))
        columns = list(zip(*said.values(), strict=True))
        steady = [column for column in columns if all(len(texts) == 1 for texts in column)]
        differing = [column for column in steady if len(set.union(*column)) > 1]
        for chosen in (differing, steady):
            names_of = [
                ", ".join(text for column in chosen if (text := min(column[place])))
                for place in range(len(said))
            ]
            if all(names_of):
                break
        return dict(zip(said, names_of, strict=True))


def unequal(layouts: Mapping[str, _Point], texts: Mapping[str, str]) -> dict[str, str]:
    """The names, each followed by the values that it does not tell where others share it."""
    names: dict[str, str] = {}
    for key, text in texts.items():
        same = [layouts[other] for other, its in texts.items() if its == text]
        differ = {n: v for n, v in layouts[key].items() if any(of[n] != v for of in same)}
        names[key] = ", ".join(filter(None, (text, values_text(differ))))
    if len(set(names.values())) == len(names) and all(names.values()):
        return names
    return {key: values_text(values) for key, values in layouts.items()}
