"""A draft of the map of a table: what names and values of its columns surely say, and the rest as
questions; ``resources/imported/draft.yaml`` has the names."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from scalesweep.analysis.metrics import QUANTITIES
from scalesweep.config.parameter import OF_RUNS, OF_TABLES
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import alias
from scalesweep.importers.made_benchmark import declared
from scalesweep.importers.table_file import FAILED, Table

_HEAD = "# Draft of a map for {}: check units and directions, then import with it.\n"
_NO_METRIC = """\
# No column surely is a metric: name one under metrics, such as
#   rate: {column: NAME, unit: images/s, better: higher, scope: total}
"""
_NO_RANKS = "# No column surely counts ranks: name it, or state ranks: {value: N}.\n"
_MODEL = (
    "# transformer: and memory: give MFU, memory and the cost of layouts (docs/guide/layouts.md)\n"
)
_SCALING = "# scaling: strong   # or weak, if the work grows: gives efficiency\n"


@dataclass
class Draft:
    """What a table surely says: ``content`` are a map's keys; ``open`` are questions by column."""

    content: dict[str, Any]
    open: dict[str, str] = field(default_factory=dict)

    def text(self, file: str) -> str:
        """The map as YAML, with the questions as comments."""
        counted = "ranks" in self.content["parameters"] or "side_by_side" in self.content
        text = _HEAD.format(file) + ("" if self.content["metrics"] else _NO_METRIC)
        text += "" if counted else _NO_RANKS
        text += yaml.safe_dump(self.content, sort_keys=False, width=100, allow_unicode=True)
        text += _SCALING if "scale" in self.content else ""
        text += _MODEL if "mesh" in self.content else ""
        text += "# Open: put each under parameters, metrics or ignore.\n" if self.open else ""
        return text + "".join(f"#   {name}: {why}\n" for name, why in self.open.items())


def draft_of(table: Table) -> Draft:
    """The draft of a table. Raises UserError for a table without a row."""
    if not table.rows:
        raise UserError(f"{table.file}: holds no row that can be read")
    plain = {column: alias(column).lower().strip("_") for column in table.columns}
    numbers = {column: _numbers(table, column) for column in table.columns}
    parameters: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    name = _name(f"{table.file.stem}_table", ())
    draft = Draft({"name": name, "parameters": parameters, "metrics": metrics})
    done, names = _scale(draft, plain, numbers), declared("draft")
    for column in (column for column in table.columns if column not in done):
        cells = [row.cells[column] for row in table.rows if row.cells[column] is not None]
        said = list(dict.fromkeys(str(cell) for cell in cells))
        if len(said) < 2:
            continue  # what never varies tells no points apart
        name = _name(plain[column], {**metrics, **parameters})
        whole = all(number.is_integer() for number in numbers[column])
        wide = "side_by_side" in draft.content
        if numbers[column] and not wide and (meaning := _meaning(plain[column])):
            metrics[name] = {"column": column, **meaning}
        elif re.fullmatch(names["same" if numbers[column] else "workload"], plain[column]):
            parameters[name] = {"column": column, "workload": True}
        elif re.fullmatch(names["setting"], plain[column]) and whole:
            parameters[name] = {"column": column}
        else:
            few = ", ".join(value[:20] for value in said[:3]) + (", ..." if said[3:] else "")
            kind = "numbers" if numbers[column] else "texts"
            draft.open[column] = f"{len(said)} {kind}: {few}"
    _add_mesh(draft.content, numbers, len(table.rows))
    return draft


def _add_mesh(content: dict[str, Any], numbers: Mapping[str, list[float]], rows: int) -> None:
    """Add the mesh, if the ranks of every row are a multiple of its tp, pp and cp; a column dp must
    be the rest."""
    parameters = content["parameters"]
    inside = [axis for axis in ("tp", "pp", "cp") if axis in parameters]
    columns = [numbers[parameters[it]["column"]] for it in ("ranks", *inside) if it in parameters]
    if not inside or "ranks" not in parameters or {*map(len, columns)} != {rows}:
        return
    if any(number < 1 for column in columns for number in column):
        return
    rest = [ranks / math.prod(axes) for ranks, *axes in zip(*columns, strict=True)]
    stated = numbers[parameters["dp"]["column"]] if "dp" in parameters else rest
    if rest == stated and all(each >= 1 and each.is_integer() for each in rest):
        derived = {"derive": f"ranks // ({' * '.join(inside)})"}
        parameters["dp"] = {**parameters.get("dp", {}), **derived}
        content["mesh"] = {axis: axis for axis in ("dp", *inside)}


def _scale(draft: Draft, plain: dict[str, str], numbers: dict[str, list[float]]) -> set[str]:
    """Add what counts ranks, a column or the numbers in the headings; returns these columns."""
    names = declared("draft")
    for scale, pattern in names["scales"].items():
        for column, name in plain.items():
            counts = numbers[column] and all(n >= 1 and n.is_integer() for n in numbers[column])
            if counts and re.fullmatch(names["number_of"].format(pattern), name):
                draft.content["parameters"]["ranks"] = {"column": column}
                draft.content |= {"scale": scale} if scale != "ranks" else {}
                return {column}
    for scale, pattern in names["scales"].items():
        heading = names["heading"].format(pattern)
        heads = {column: re.fullmatch(heading, it) for column, it in plain.items()}
        wide = {int(match[1]): column for column, match in heads.items() if match}
        if len(wide) > 1:  # what their cells are only the user knows
            draft.content["metrics"]["value"] = {"unit": "?", "better": "?", "scope": "total"}
            values = {count: {"value": column} for count, column in wide.items()}
            draft.content["side_by_side"] = {"parameter": "ranks", "values": values}
            draft.content |= {"scale": scale} if scale != "ranks" else {}
            return set(wide.values())
    return set()


def _numbers(table: Table, column: str) -> list[float]:
    """The numbers of a column; empty if a cell is none, and no word of a run that failed."""
    cells = [row.cells[column] for row in table.rows]
    try:
        numbers = [table.number(cell) for cell in cells if str(cell).strip().lower() not in FAILED]
    except ValueError:
        return []
    return [float(number) for number in numbers if number is not None]


def _meaning(plain: str) -> dict[str, str] | None:
    """Unit, direction and scope of a metric, as far as its name surely says them."""
    names = declared("draft")
    if match := re.fullmatch(names["rate"], plain):
        what = match["what"] or ""
        usual = (it for start, it in names["units"].items() if (what or plain).startswith(start))
        unit = next(usual, f"{what.rstrip('s') or 'item'}s/s")
        scope = "rank" if re.fullmatch(names["of_each"], plain) else "total"
        return {"unit": unit, "better": "higher", "scope": scope}
    if match := re.fullmatch(names["time"], plain):
        unit = plain if plain in ("ms", "us") else match["unit"] or "s"
        unit = "s" if unit in ("sec", "seconds") else unit
        return {"unit": unit, "better": "lower", "scope": "total"}
    return None


def _name(text: str, taken: Iterable[str]) -> str:
    """A plain word made of any text, that is not taken."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    if not word[:1].isalpha() or word in {*OF_RUNS, *OF_TABLES, *QUANTITIES, "ranks_per_node"}:
        word = f"published_{word}"
    number, free = 2, word
    while free in taken:
        free, number = f"{word}_{number}", number + 1
    return free
