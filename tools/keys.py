"""Write the reference pages of YAML keys and of commands, which are in no commit (`make setup`).

    python tools/keys.py [FOLDER]

With a FOLDER: the JSON Schemas of the files instead, by which editors check and complete them.
Types, bounds and defaults of keys are those of the models, words are the texts below their fields.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic._internal._docs_extraction import extract_docstrings_from_cls
from pydantic.json_schema import GenerateJsonSchema

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from pages import table

from scalesweep.commands.interface import COMMANDS
from scalesweep.config.benchmark_keys import BenchmarkKeys
from scalesweep.config.campaign_keys import CampaignKeys
from scalesweep.config.site import Site
from scalesweep.importers.table_map import MapFile
from scalesweep.smk.config_keys import ALLOWED, OVERRIDES

PAGES: dict[str, tuple[type[BaseModel], str]] = {
    "campaign": (CampaignKeys, "Keys of a campaign"),
    "site": (Site, "Keys of a site"),
    "benchmark": (BenchmarkKeys, "Keys of benchmark.yaml"),
    "table_map": (MapFile, "Keys of a map of a table"),
}
WORDS = {
    "integer": "integer", "number": "number", "string": "text", "boolean": "true or false",
    "array": "list", "object": "map", "null": "null",
}  # fmt: skip


class Documented(GenerateJsonSchema):
    """A JSON Schema whose keys have the texts below the fields."""

    def model_schema(self, schema: Any) -> Any:
        """That of a model."""
        made, model = super().model_schema(schema), schema["cls"]
        for name, text in extract_docstrings_from_cls(model, use_inspect=True).items():
            key = model.model_fields[name].alias or name
            made["properties"][key]["description"] = " ".join(text.split())
        return made


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
        return f"{text}, {low} or more" if high is None else f"{text}, {low} to {high}"
    above = schema.get("exclusiveMinimum")
    return text if above is None else f"{text} above {above}"


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
    schema = model.model_json_schema(by_alias=True, schema_generator=Documented)
    text = f"# {title}\n\n{' '.join((model.__doc__ or '').split())}\n\n"
    later = [("", schema)]
    for place, content in later:
        rows = []
        for key, value in content["properties"].items():
            default = value.get("default")
            plain = isinstance(default, bool | int | float | str) and default != ""
            shown = f"`{yaml.safe_dump(default).split()[0]}`" if plain else ""
            shown = "required" if key in content.get("required", ()) else shown
            rows.append((f"`{key}`", kind_of(value), shown, value.get("description", "")))
            for at, name in within(value, f"{place}.{key}".lstrip(".")):
                if "properties" in schema["$defs"][name]:
                    later.append((at, schema["$defs"][name]))
        text += f"## `{place}`\n\n" if place else ""
        text += table("key | type | default | meaning", rows) + "\n"
    return text


def commands() -> str:
    """The page of commands."""
    os.environ["COLUMNS"] = "100"  # of what argparse prints
    helps = "\n".join(
        f"### scalesweep {name}\n\n```\n{it.format_help()}```\n" for name, it in COMMANDS.items()
    )
    keys = table(
        "key | values | meaning",
        ((f"`{key}`", ", ".join(ALLOWED.get(key, ())), text) for key, text in OVERRIDES.items()),
    )
    return f"""\
# Commands

`snakemake` runs what is missing and writes the report, `snakemake plan` lists what is missing,
`snakemake report` reports on the results so far. `--configfile FILE` names the campaign,
`--profile slurm` submits jobs. `scalesweep` has a command for each question beyond that.

## Commands of scalesweep

{helps}
## Options of snakemake: --config

`--config KEY=VALUE` takes these keys.

{keys}"""


def main(folder: Path | None) -> None:
    """Write all pages into docs/reference, or the JSON Schemas into a folder."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (model, _) in PAGES.items():
            schema = model.model_json_schema(by_alias=True, schema_generator=Documented)
            # Kinds of values may overlap: a list is a value too.
            text = json.dumps(schema, indent=1).replace('"oneOf"', '"anyOf"')
            (folder / f"{name}.schema.json").write_text(text)
        return
    pages = {name: page(model, title) for name, (model, title) in PAGES.items()}
    for name, text in {**pages, "commands": commands()}.items():
        (ROOT / "docs" / "reference" / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)
