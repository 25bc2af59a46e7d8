"""Write the reference pages of YAML keys and of commands, which are in no commit (`make docs`).

    python tools/keys.py [FOLDER]

With a FOLDER: the JSON Schemas of the files instead, by which editors check and complete them.
Types, bounds and defaults of keys are those of the models' JSON Schemas, their words are the texts
below the fields.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.commands.interface import COMMANDS, parser_of
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import CampaignKeys
from scalesweep.config.models import Model
from scalesweep.config.overrides import OVERRIDES, VERBS
from scalesweep.config.reserved_names import OF_RUNS, OF_TABLES
from scalesweep.config.site import Site
from scalesweep.importers.table_map import MapFile

PAGES: dict[str, tuple[type[BaseModel], str]] = {
    "campaign": (CampaignKeys, "Keys of a campaign"),
    "site": (Site, "Keys of a site"),
    "benchmark": (Benchmark, "Keys of benchmark.yaml"),
    "table_map": (MapFile, "Keys of a map of a table"),
}
WORDS = {
    "integer": "integer", "number": "number", "string": "text", "boolean": "true or false",
    "array": "list", "object": "map", "null": "null",
}  # fmt: skip
HEAD = "| key | type | default | meaning |\n|---|---|---|---|\n"


def models_of(model: type[Model]) -> Iterator[type[Model]]:
    """All models below a model."""
    for each in model.__subclasses__():
        yield each
        yield from models_of(each)


def texts_of(models: Iterable[type[Model]]) -> dict[tuple[str, str], str]:
    """The texts below the fields of models, by model and field."""
    texts = {}
    for file in sorted({inspect.getfile(model) for model in models}):
        for node in ast.parse(Path(file).read_text()).body:
            for field, text in pairwise(node.body if isinstance(node, ast.ClassDef) else []):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    words = ast.literal_eval(text.value)
                    texts[node.name, ast.unparse(field.target)] = " ".join(words.split())
    return texts


def kind_of(schema: dict[str, Any]) -> str:
    """The type of a value in words, with its bounds."""
    if several := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(map(kind_of, several)))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{value}`" for value in values)
    text = WORDS.get(str(schema.get("type")), "map" if "$ref" in schema else "value")
    text = schema.get("format", text)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None:
        return f"{text}, {low:g} to {high:g}" if high is not None else f"{text}, {low:g} or more"
    above = schema.get("exclusiveMinimum")
    return text if above is None else f"{text} above {above:g}"


def within(schema: Any, place: str) -> list[tuple[str, str]]:
    """The models that a value holds: place and name."""
    if not isinstance(schema, dict):
        return []
    if "$ref" in schema:
        return [(place, schema["$ref"].rpartition("/")[2])]
    inner = [(part, place) for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))]
    inner += [(schema.get("additionalProperties"), f"{place}.NAME")]
    inner += [(schema.get("items"), f"{place}[]")]
    return [each for part, at in inner for each in within(part, at)]


def page(model: type[BaseModel], title: str) -> str:
    """The page of the keys of a kind of file."""
    schema = model.model_json_schema(by_alias=True)
    # Models of other packages may have the same names.
    own = ("scalesweep.config.", f"{model.__module__.rpartition('.')[0]}.")
    models = [each for each in models_of(Model) if each.__module__.startswith(own)]
    texts = texts_of(models)
    fields = {
        (each.__name__, field.alias or name): name
        for each in models
        for name, field in each.model_fields.items()
    }
    lines = [f"# {title}\n\n{' '.join((model.__doc__ or '').split())}\n"]
    later = [("", schema, model.__name__)]
    for place, content, owner in later:
        if place:
            lines.append(f"## `{place}`\n")
        lines.append(HEAD.rstrip())
        for key, value in content["properties"].items():
            default = value.get("default")
            plain = isinstance(default, bool | int | float | str) and default != ""
            shown = f"`{yaml.safe_dump(default).split()[0]}`" if plain else ""
            shown = "required" if key in content.get("required", ()) else shown
            text = texts.get((owner, fields.get((owner, key), key))) or value.get("description", "")
            cells = (f"`{key}`", kind_of(value), shown, text)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            for at, name in within(value, f"{place}.{key}".lstrip(".")):
                if "properties" in schema["$defs"][name]:
                    later.append((at, schema["$defs"][name], name))
        lines.append("")
    return "\n".join(lines)


def reserved() -> str:
    """The names that parameters of a benchmark cannot have."""

    def listed(names: frozenset[str]) -> str:
        return ", ".join(f"`{name}`" for name in sorted(names))

    return (
        "\n## Names that parameters cannot have\n\n"
        "A parameter is a column of the tables, next to what they say of runs and quantities. "
        f"Refused when benchmark.yaml is read: {listed(OF_RUNS)}, and names of quantities such as "
        "`loss_mean_run` (`<metric>_<statistic>_<phase>`).\n\n"
        f"Refused when a campaign varies the parameter: {listed(OF_TABLES)}.\n"
    )


def options() -> str:
    """Keys of --config, by the calls of Snakemake that read them."""
    lines = ["| key | read by | meaning |", "|---|---|---|"]
    for key, override in OVERRIDES.items():
        calls = "all" if override.verbs == VERBS else ", ".join(f"`{x}`" for x in override.verbs)
        lines.append(f"| `{key}` | {calls} | {override.text} |")
    return "\n".join(lines) + "\n"


def arguments() -> str:
    """The commands of scalesweep, with their arguments and examples."""
    lines = []
    for name, command in COMMANDS.items():
        lines += [f"### scalesweep {name}\n", f"{command.text[0].upper()}{command.text[1:]}.\n"]
        lines += ["| argument | meaning |", "|---|---|"]
        for cells in parser_of(name).described():
            typed, text = (cell.replace("|", "\\|") for cell in cells)
            lines.append(f"| `{typed}` | {text} |")
        lines += ["", "```", *command.examples, "```", ""]
    return "\n".join(lines)


def commands() -> str:
    """The page of commands."""
    return f"""\
# Commands

`snakemake` runs what is missing and writes the report, `snakemake plan` lists what is missing,
`snakemake report` reports on the results so far. `--configfile FILE` names the campaign,
`--profile slurm` submits jobs. `scalesweep` has a command for each question beyond that.

## Commands of scalesweep

{arguments()}
## Options of snakemake: --config

`--config KEY=VALUE` takes these keys. Each is read by the calls named and refused by all others;
`run` is `snakemake` without a target, or with a file to make.

{options()}"""


def write_schemas(folder: Path) -> None:
    """Write the JSON Schemas by which editors check files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (model, _) in PAGES.items():
        # Kinds of values may overlap: a list is a value too.
        schema = json.dumps(model.model_json_schema(by_alias=True), indent=1)
        (folder / f"{name}.schema.json").write_text(schema.replace('"oneOf"', '"anyOf"'))


def write() -> None:
    """Write all pages into docs/reference."""
    pages = {name: page(model, title) for name, (model, title) in PAGES.items()}
    pages["benchmark"] += reserved()
    pages["commands"] = commands()
    for name, text in pages.items():
        path = ROOT / "docs" / "reference" / f"{name}.md"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1])) if sys.argv[1:] else write()
