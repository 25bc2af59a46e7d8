"""Short names of layouts: how the ranks of a point share the work.

Parameters that only mean something together (a mesh of ranks and its options) make labels of six
values. A benchmark declares which these are; a layout is then called ``fsdp2, dp_shard 4, tp 2``.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from scalesweep.analysis.factors import most_values
from scalesweep.config.models import UNEQUAL, Model
from scalesweep.core.errors import UserError, choices
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.joined_experiments import LAYOUT, values_text
from scalesweep.core.plan_format import PlanLayouts

_Point = Mapping[str, Any]


class Layout(Model):
    """Short names for how ranks share the work."""

    parameters: Annotated[tuple[str, ...], Field(min_length=2), UNEQUAL]
    """the parameters that a layout consists of, without `ranks`: a name has the value of the first,
    and of the others those that are not their defaults"""
    doc: str
    """what the names mean, for the report"""

    def check(self, known: Mapping[str, Any], path: Any) -> None:
        """Raise UserError for what cannot lay out ranks."""
        if LAYOUT in known:
            raise UserError(
                f"{path}: parameters.{LAYOUT}: with layout declared, tables have a column of this "
                "name; give the parameter another name"
            )
        for index, name in enumerate(self.parameters):
            if name not in known or name == "ranks":
                raise UserError(
                    f"{path}: layout.parameters[{index}]: {name!r} cannot lay out ranks; "
                    + choices(name, sorted(known.keys() - {"ranks"}))
                )

    def named(
        self, points: Sequence[_Point], axes: Sequence[str], scale: str, defaults: _Point
    ) -> PlanLayouts | None:
        """The layouts of an experiment's points with their names, which are unequal.

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

        def called(values: _Point) -> str:
            first = self.parameters[0]
            kind = [text_of(values[first])] if first in values else []
            others = {n: v for n, v in values.items() if n != first and v != defaults[n]}
            return ", ".join(filter(None, (*kind, values_text(others)))) or values_text(values)

        usual = {name: defaults[name] for name in names}
        return {
            "doc": self.doc,
            "default": called(usual) if canonical_json(usual) in layouts else None,
            "names": [{"values": of, "name": called(of)} for of in layouts.values()],
        }
