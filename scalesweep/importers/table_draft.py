"""A draft of the map of a table: what names and values of its columns surely say, and the rest as
questions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from scalesweep.analysis.metrics import QUANTITIES
from scalesweep.config.formula import alias
from scalesweep.config.reserved_names import OF_RUNS, OF_TABLES
from scalesweep.core.errors import UserError
from scalesweep.importers.table_file import FAILED, Table

# What ranks are counted as, the surest first: name -> pattern of a column's name.
_SCALES = {
    "ranks": r"world_?size|(?:mpi_?)?ranks?|proc(?:s|esses)?|n?p",
    "gpus": r"gpus?", "devices": r"devices?|accelerators?|chips?",
    "workers": r"workers?", "nodes": r"nodes?", "cores": r"cores?|cpus?|tasks?",
}  # fmt: skip
_NUMBER_OF = r"(?:n|no|nr|num|number_of|total|count_of)?_?(?:{0})(?:_count)?"
_HEADING = r"(\d+)_?x?_?(?:{0})"
_RATE = re.compile(
    r"(?P<what>im(?:a?ge?s?|g)|tok(?:en)?s?|samples?|sequences?|seqs?|steps?|iter(?:ation)?s?"
    r"|batches|epochs?|items?|events?|examples?|graphs?|frames?)(?:_p?(?:er_?)?|p(?:er_?)?)"
    r"s(?:ec(?:ond)?s?)?"
    r"(?:_.*)?|(?:.*_)?throughputs?(?:_.*)?|fps"
)
_UNITS = (("im", "images/s"), ("tok", "tokens/s"), ("samp", "samples/s"), ("fps", "frames/s"))
_TIME = re.compile(
    r"(?:(?:wall|run|elapsed|total|step|epoch|train(?:ing)?|iter(?:ation)?|mean|avg|average|median"
    r"|compute|execution|solve|loop)_?)*(?:time|seconds?|secs?|elapsed|duration|runtime|walltime|s"
    r"|ms|us)(?:_(?P<unit>s|sec|seconds|ms|us|min|h))?"
)
_EACH = re.compile(r"_(?:per_)?(?:gpu|device|rank|accelerator|chip|node|core|worker|each)s?$")
_WORKLOAD = re.compile(r"model(?:_name|_size)?|network|dataset|data_set|task|workload|mode|case")
_SETTING = re.compile(
    r".*(?:batch|threads?|size|layers?|depth|width|precision|dtype|framework|backend|method|device"
    r"|gpu|machine|platform|compiler|version|strategy|optimizer|zero|seq(?:uence)?(?:_len.*)?).*"
    r"|[tpdce]p|mbs|gbs"
)


@dataclass
class Draft:
    """What a table surely says: ``content`` are a map's keys; ``open`` are questions by column."""

    content: dict[str, Any]
    open: dict[str, str] = field(default_factory=dict)

    def text(self, file: str) -> str:
        """The map as YAML, with the questions as comments."""
        lines = [f"# Draft of a map for {file}: check units and directions, then import with it."]
        if not self.content["metrics"]:
            lines.append("# No column surely is a metric: name one under metrics, such as")
            lines.append("#   rate: {column: NAME, unit: images/s, better: higher, scope: total}")
        if "ranks" not in self.content["parameters"] and "side_by_side" not in self.content:
            lines.append("# No column surely counts ranks: name it, or state ranks: {value: N}.")
        text = yaml.safe_dump(self.content, sort_keys=False, width=100, allow_unicode=True)
        if self.open:
            text += "# Open: put each under parameters, metrics or ignore, if it says something.\n"
            text += "".join(f"#   {name}: {why}\n" for name, why in self.open.items())
        return "\n".join(lines) + "\n" + text


def draft_of(table: Table) -> Draft:
    """The draft of a table. Raises UserError for a table without a row."""
    if not table.rows:
        raise UserError(f"{table.file}: holds no row that can be read")
    ranks, scale = _ranks(table)
    parameters: dict[str, Any] = {"ranks": {"column": ranks}} if ranks else {}
    metrics: dict[str, Any] = {}
    draft = Draft(
        {
            "name": _name(f"{table.file.stem}_table", {}),
            "parameters": parameters,
            "metrics": metrics,
            **({"scale": scale} if scale not in ("", "ranks") else {}),
        }
    )
    wide = {} if ranks else _wide(table)
    for column in table.columns:
        cells = [row.cells[column] for row in table.rows if row.cells[column] is not None]
        values = list(dict.fromkeys(str(cell) for cell in cells))
        plain = alias(column).lower().strip("_")
        if column == ranks or column in wide or len(values) < 2:
            continue  # what never varies tells no points apart
        numbers = _numbers(table, column)
        if numbers and (meaning := _meaning(column, plain)):
            metrics[_name(plain, {**metrics, **parameters})] = {"column": column, **meaning}
        elif _WORKLOAD.fullmatch(plain) and not numbers:
            entry = {"column": column, "workload": True}
            parameters[_name(plain, {**metrics, **parameters})] = entry
        elif _SETTING.fullmatch(plain) and (not numbers or all(n.is_integer() for n in numbers)):
            parameters[_name(plain, {**metrics, **parameters})] = {"column": column}
        else:
            kind = "numbers" if numbers else "texts"
            few = ", ".join(value[:20] for value in values[:3])
            draft.open[column] = f"{len(values)} {kind}: {few}{', ...' if values[3:] else ''}"
    if wide:
        _add_wide(draft.content, wide)
    return draft


def _ranks(table: Table) -> tuple[str | None, str]:
    """The column that counts ranks, and what it counts."""
    for scale, pattern in _SCALES.items():
        for column in table.columns:
            plain = alias(column).lower().strip("_")
            if re.fullmatch(_NUMBER_OF.format(pattern), plain):
                numbers = _numbers(table, column)
                if numbers and all(n >= 1 and n.is_integer() for n in numbers):
                    return column, scale
    return None, ""


def _wide(table: Table) -> dict[str, tuple[int, str]]:
    """Columns whose headings are a scale, as ``4 GPUs``: by column the count and what is
    counted."""
    wide = {}
    for column in table.columns:
        plain = alias(column).lower().strip("_")
        for scale, pattern in _SCALES.items():
            if match := re.fullmatch(_HEADING.format(pattern), plain):
                wide[column] = int(match[1]), scale
    return wide if len(wide) > 1 else {}


def _add_wide(content: dict[str, Any], wide: Mapping[str, tuple[int, str]]) -> None:
    """Columns that are scales become ranks; what their cells are nobody says but the user."""
    content["metrics"] = {"value": {"unit": "?", "better": "?", "scope": "total"}}
    values = {count: {"value": column} for column, (count, _) in wide.items()}
    content["side_by_side"] = {"parameter": "ranks", "values": values}
    if (scale := next(iter(wide.values()))[1]) != "ranks":
        content["scale"] = scale


def _numbers(table: Table, column: str) -> list[float]:
    """The numbers of a column; empty if a cell is none, and no word of a run that failed."""
    cells = [row.cells[column] for row in table.rows]
    try:
        numbers = [table.number(cell) for cell in cells if str(cell).strip().lower() not in FAILED]
    except ValueError:
        return []
    return [float(number) for number in numbers if number is not None]


def _meaning(column: str, plain: str) -> dict[str, str] | None:
    """Unit, direction and scope of a metric, as far as its name surely says them."""
    scope = "rank" if _EACH.search(plain) else "total"
    # "img/s" and "Time [s]" say what "_s" may not.
    if match := _RATE.fullmatch(plain):
        words = match["what"] or plain
        unit = next((unit for start, unit in _UNITS if words.startswith(start)), None)
        unit = unit or (f"{words.rstrip('s')}s/s" if match["what"] else "items/s")
        return {"unit": unit, "better": "higher", "scope": scope}
    if match := _TIME.fullmatch(plain):
        unit = {"sec": "s", "seconds": "s"}.get(match["unit"] or "s", match["unit"] or "s")
        unit = plain if plain in ("ms", "us") else unit
        return {"unit": unit, "better": "lower", "scope": "total"}
    return None


def _name(text: str, taken: Sequence[str] | Mapping[str, Any]) -> str:
    """A plain word made of any text, that is not taken."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    if not word[:1].isalpha() or word in {*OF_RUNS, *OF_TABLES, *QUANTITIES, "ranks_per_node"}:
        word = f"published_{word}"
    number, free = 2, word
    while free in taken:
        free, number = f"{word}_{number}", number + 1
    return free
