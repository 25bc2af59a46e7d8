"""Write the generated parts of docs/reference (--check: only compare).

Keys of YAML files come from workflow/schemas, where ``doc``, ``form`` (the type in words) and
``default`` stand beside what is checked; columns of tables from their declarations.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.aspects.registry import parts, shown_tables
from scalesweep.commands.interface import COMMANDS, parser_of
from scalesweep.config.overrides import OVERRIDES, VERBS
from scalesweep.config.reserved_names import OF_RUNS, OF_TABLES
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.paths import SCHEMAS
from scalesweep.importers.table_map import MapFile, Metric, Parameter
from scalesweep.table.declared import columns_of

PAGES = ROOT / "docs" / "reference"
TITLES = {
    "benchmark": "Keys of benchmark.yaml",
}
# Objects whose keys have a table of their own: place in the schema -> heading.
SECTIONS = {
    ("benchmark", "parameters.NAME"): "A parameter",
    ("benchmark", "metrics.NAME"): "A metric",
    ("benchmark", "layout"): "Names of layouts",
    ("benchmark", "layout.words[]"): "Words of a layout's name: an entry of `layout.words`",
    ("benchmark", "transformer"): "A transformer",
    ("benchmark", "memory"): "Memory of a rank",
    ("benchmark", "data"): "A data set",
    ("benchmark", "result.stamps"): "How stamps are read: `result.stamps`",
    ("benchmark", "result.extract[]"): "A metric that is extracted: an entry of `result.extract`",
}
WORDS = {
    "integer": "integer",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "array": "list",
    "object": "map",
    "null": "null",
}
TYPES = {
    bool: "true or false", int: "integer", float: "number", str: "text", list: "list (JSON)",
    object: "number or text",
}  # fmt: skip
DECLARED = re.compile(
    r"(<!-- declared tables: tools/reference.py writes what follows -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
HEAD = "| key | type | default | meaning |\n|---|---|---|---|\n"


def allowed(schema: dict[str, Any]) -> str:
    """The type of a key in words, with its bounds."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kinds = schema.get("type", [])
    text = schema.get("form") or " or ".join(
        WORDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)
    )
    if "form" in schema:
        return text
    low, high = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    if low is not None and high is not None and high < 1e5:
        return f"{text}, {low} to {high}"
    if low is not None:
        return f"{text}, {low} or more"
    return f"{text} above {above}" if above is not None else text


def inner(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects within a key that have keys of their own, with what is added to the key's name."""
    for addition, within in (
        ("", schema),
        (".NAME", schema.get("additionalProperties")),
        ("[]", schema.get("items")),
    ):
        if isinstance(within, dict) and within.get("properties"):
            yield addition, within


def rows(name: str, schema: dict[str, Any], prefix: str, later: list[tuple[str, Any]]) -> list[str]:
    """A row for each key of an object that has words; objects with a section go to ``later``."""
    lines = []
    for key, content in schema["properties"].items():
        place = f"{prefix}{key}"
        if not {"doc", "form", "default"} & content.keys():
            for addition, within in inner(content):
                later.append((place + addition, within))
            continue
        default = content.get("default", "")
        if key in schema.get("required", ()):
            default = "required"
        headings = [f"{heading}." for section, heading in SECTIONS if section == name]
        shown = place.removeprefix(max(filter(place.startswith, headings), key=len, default=""))
        cells = (f"`{shown}`", allowed(content), default, content.get("doc", ""))
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |")
        for addition, within in inner(content):
            if (name, place + addition) in SECTIONS or addition:
                later.append((place + addition, within))
            else:
                lines += rows(name, within, f"{place}.", later)
    return lines


def keys(name: str) -> str:
    """The page of the keys of a kind of YAML file."""
    schema = load_yaml(SCHEMAS / f"{name}.yaml")
    text = [
        f"<!-- tools/reference.py writes this page from workflow/schemas/{name}.yaml. -->",
        f"# {TITLES[name]}\n\n{schema['doc']}\n",
    ]
    later: list[tuple[str, Any]] = []
    text.append(HEAD + "\n".join(rows(name, schema, "", later)) + "\n")
    while later:
        place, within = later.pop(0)
        lines = rows(name, within, f"{place}.", later)
        if lines:
            text.append(f"## {SECTIONS[name, place]}\n\n{HEAD}" + "\n".join(lines) + "\n")
    return "\n".join(text)


def keys_of_map() -> str:
    """The page of the keys of a map of a table, by its models."""
    text = [
        "<!-- tools/reference.py writes this page from scalesweep/importers/table_map.py. -->",
        f"# Keys of a map of a table\n\n{MapFile.__doc__}\n",
    ]
    for title, model in (("", MapFile), ("A parameter", Parameter), ("A metric", Metric)):
        lines = []
        for name, field in model.model_fields.items():
            default = "required" if field.is_required() else str(field.default or "none")
            default = "found out" if default.startswith("separator=") else default
            words = (field.description or "").replace("|", "\\|")
            lines.append(f"| `{name}` | {default} | {words} |")
        head = "| key | default | meaning |\n|---|---|---|\n"
        text.append((f"## {title}\n\n" if title else "") + head + "\n".join(lines) + "\n")
    return "\n".join(text)


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


def columns() -> str:
    """Declared tables: caption, and a row for each column."""
    captions = shown_tables()
    makers = [maker for part in parts("table") for maker in part.MAKERS]
    kinds = {kind.TABLE: kind for maker in makers for kind in maker.kinds}
    lines = []
    for name, kind in sorted(kinds.items()):
        lines += [f"### {name}\n", f"{captions[name]}\n" if name in captions else ""]
        lines += ["| column | type | unit | meaning |", "|---|---|---|---|"]
        for item in columns_of(kind):
            cells = (f"`{item.name}`", TYPES[item.kind], item.unit, item.text)
            lines.append("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def tables() -> str:
    """The page of tables with what is declared in its place."""
    page = (PAGES / "tables.md").read_text()
    made = columns()
    if twice := [name for name in re.findall("^### (.*)$", made, re.M) if f"* `{name}`" in page]:
        sys.exit(f"error: docs/reference/tables.md: declared and by hand: {', '.join(twice)}")
    return DECLARED.sub(lambda match: f"{match[1]}\n{made}\n{match[2]}", page)


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
<!-- tools/reference.py writes this page from commands/interface.py and config/overrides.py. -->
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


def main() -> None:
    """Write all pages, or say which are stale."""
    wanted = {f"{name}.md": keys(name) for name in TITLES}
    wanted["benchmark.md"] += reserved()
    wanted |= {"tables.md": tables(), "commands.md": commands(), "table_map.md": keys_of_map()}
    stale = [
        name
        for name, text in wanted.items()
        if not (PAGES / name).is_file() or (PAGES / name).read_text() != text
    ]
    if "--check" in sys.argv:
        sys.exit(
            f"error: docs/reference: {', '.join(stale)} is stale: python tools/reference.py"
            if stale
            else 0
        )
    for name in stale:
        (PAGES / name).write_text(wanted[name])


if __name__ == "__main__":
    main()
