"""Write the reference pages of YAML keys from the models of scalesweep.config (`make docs`).

Types, bounds and defaults are those of the models' JSON Schemas, words the texts below the fields.
"""

import ast
import inspect
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.config.campaign_keys import CampaignKeys
from scalesweep.config.models import Model
from scalesweep.config.site import Site

PAGES: dict[str, tuple[type[Model], str]] = {
    "campaign": (CampaignKeys, "Keys of a campaign"),
    "site": (Site, "Keys of a site"),
}
WORDS = {
    "integer": "integer", "number": "number", "string": "text", "boolean": "true or false",
    "array": "list", "object": "map", "null": "null",
}  # fmt: skip
HEAD = "| key | type | default | meaning |\n|---|---|---|---|\n"


def texts_of(model: type[Model]) -> dict[tuple[str, str], str]:
    """The texts below the fields of all models in a model's file, by model and field."""
    texts = {}
    for node in ast.parse(Path(inspect.getfile(model)).read_text()).body:
        body = node.body if isinstance(node, ast.ClassDef) else []
        for field, text in pairwise(body):
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
    text = WORDS[schema["type"]] if "type" in schema else "map" if "$ref" in schema else "value"
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


def page(model: type[Model], title: str) -> str:
    """The page of the keys of a kind of file."""
    schema = model.model_json_schema(by_alias=True)
    texts = texts_of(model)
    fields = {
        (each.__name__, field.alias or name): name
        for each in Model.__subclasses__()
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
            text = texts.get((owner, fields[owner, key]), "")
            cells = (f"`{key}`", kind_of(value), shown, text)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            for at, name in within(value, f"{place}.{key}".lstrip(".")):
                later.append((at, schema["$defs"][name], name))
        lines.append("")
    return "\n".join(lines)


def write() -> None:
    """Write all pages into docs/reference."""
    for name, (model, title) in PAGES.items():
        path, text = ROOT / "docs" / "reference" / f"{name}.md", page(model, title)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write()
