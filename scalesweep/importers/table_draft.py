"""A draft of the map of a table: what names and values of its columns surely say, and the rest as
questions."""

import re
from collections.abc import Iterable, Mapping
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
# Plain names (``alias``: "img/s" and "Time [s]" have _s), by what their columns surely are.
_RATE = re.compile(
    r"(?P<what>im(?:a?ge?s?|g)|tok(?:en)?s?|samples?|sequences?|seqs?|steps?|iter(?:ation)?s?"
    r"|batches|epochs?|items?|events?|examples?|graphs?|frames?)(?:_p?(?:er_?)?|p(?:er_?)?)"
    r"s(?:ec(?:ond)?s?)?(?:_.*)?|(?:.*_)?throughputs?(?:_.*)?|fps"
)
_UNITS = {"im": "images/s", "tok": "tokens/s", "samp": "samples/s", "fps": "frames/s"}
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
        lines.append(yaml.safe_dump(self.content, sort_keys=False, width=100, allow_unicode=True))
        if "scale" in self.content:
            lines[-1] += "# scaling: strong   # or weak, if the work grows: gives efficiency\n"
        if self.open:
            lines[-1] += "# Open: put each under parameters, metrics or ignore."
            lines += [f"#   {name}: {why}" for name, why in self.open.items()]
        return "\n".join(lines).rstrip("\n") + "\n"


def draft_of(table: Table) -> Draft:
    """The draft of a table. Raises UserError for a table without a row."""
    if not table.rows:
        raise UserError(f"{table.file}: holds no row that can be read")
    plain = {column: alias(column).lower().strip("_") for column in table.columns}
    numbers = {column: _numbers(table, column) for column in table.columns}
    counted = {
        column: scale
        for scale, pattern in _SCALES.items()
        for column, name in plain.items()
        if re.fullmatch(_NUMBER_OF.format(pattern), name)
        and numbers[column]
        and all(n >= 1 and n.is_integer() for n in numbers[column])
    }
    ranks = next(iter(counted), None)
    scale = counted[ranks] if ranks else "ranks"
    wide = {
        column: int(match[1])
        for column, name in plain.items()
        if (match := re.fullmatch(_HEADING.format("|".join(_SCALES.values())), name)) and not ranks
    }
    wide = wide if len(wide) > 1 else {}
    parameters: dict[str, Any] = {"ranks": {"column": ranks}} if ranks else {}
    metrics: dict[str, Any] = {}
    draft = Draft({"name": _name(f"{table.file.stem}_table", ()), "parameters": parameters,
                   "metrics": metrics})  # fmt: skip
    if wide:  # columns that are scales become ranks; what their cells are only the user knows
        metrics["value"] = {"unit": "?", "better": "?", "scope": "total"}
        values = {count: {"value": column} for column, count in wide.items()}
        draft.content["side_by_side"] = {"parameter": "ranks", "values": values}
        first = plain[next(iter(wide))]
        scale = next(s for s, it in _SCALES.items() if re.fullmatch(_HEADING.format(it), first))
    if scale != "ranks":
        draft.content["scale"] = scale
    for column in table.columns:
        cells = [row.cells[column] for row in table.rows if row.cells[column] is not None]
        said = list(dict.fromkeys(str(cell) for cell in cells))
        if column == ranks or column in wide or len(said) < 2:
            continue  # what never varies tells no points apart
        name = _name(plain[column], {**metrics, **parameters})
        whole = all(number.is_integer() for number in numbers[column])
        if numbers[column] and not wide and (meaning := _meaning(plain[column])):
            metrics[name] = {"column": column, **meaning}
        elif _WORKLOAD.fullmatch(plain[column]) and not numbers[column]:
            parameters[name] = {"column": column, "workload": True}
        elif _SETTING.fullmatch(plain[column]) and whole:
            parameters[name] = {"column": column}
        else:
            few = ", ".join(value[:20] for value in said[:3]) + (", ..." if said[3:] else "")
            kind = "numbers" if numbers[column] else "texts"
            draft.open[column] = f"{len(said)} {kind}: {few}"
    return draft


def _numbers(table: Table, column: str) -> list[float]:
    """The numbers of a column; empty if a cell is none, and no word of a run that failed."""
    cells = [row.cells[column] for row in table.rows]
    try:
        numbers = [table.number(cell) for cell in cells if str(cell).strip().lower() not in FAILED]
    except ValueError:
        return []
    return [float(number) for number in numbers if number is not None]


def _meaning(plain: str) -> Mapping[str, str] | None:
    """Unit, direction and scope of a metric, as far as its name surely says them."""
    if match := _RATE.fullmatch(plain):
        what = match["what"]
        usual = (unit for start, unit in _UNITS.items() if (what or plain).startswith(start))
        unit = next(usual, f"{what.rstrip('s')}s/s" if what else "items/s")
        scope = "rank" if _EACH.search(plain) else "total"
        return {"unit": unit, "better": "higher", "scope": scope}
    if match := _TIME.fullmatch(plain):
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
