"""What the pages share: their templates' environment, scripts of locked packages, and their policy.

A page is one file that works without a network. Its scripts are those of the packages that are
installed, taken as they are: Vega-Lite from vl-convert-python, DataTables from itables. Browsers
run a script only if its digest is in the page's policy, so that nothing that comes in with a
name or a log is ever run.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import counted, duration, listed, number
from scalesweep.core.paths import RESOURCES
from scalesweep.core.visible import visible
from scalesweep.experiment.cells import unbroken

VENDOR = RESOURCES / "vendor"  # made from packages, not committed
_CHARTS = "vl-convert-python"
LIBRARIES = "libraries.js"  # what runs the others; the first of a page's scripts


def assets(own: Sequence[str], charts: bool = True) -> dict[str, Any]:
    """Scripts and styles of a page, ready to be embedded, and its Content-Security-Policy.

    ``libraries`` run when one is needed: modules without exports, as scripts that run where they
    are put with names of their own. ``scripts`` are our ``own`` (names of files in resources/).
    """
    modules = {"tables": _tables(), **({"charts": _vega()} if charts else {})}
    libraries = {
        name: _inline_script(f'(function(){{"use strict";\n{module}\n}}).call(undefined)')
        for name, module in modules.items()
    }
    own_texts = ((RESOURCES / name).read_text("utf-8") for name in (LIBRARIES, *own))
    scripts = [_inline_script(text) for text in own_texts]
    every = (hashlib.sha256(text.encode()).digest() for text in (*libraries.values(), *scripts))
    digests = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in every)
    styles = _bundle("dt_bundle.css"), (RESOURCES / "report.css").read_text("utf-8")
    return {
        "libraries": libraries, "scripts": scripts, "styles": [Markup(style) for style in styles],
        "policy": Markup(
            "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:;"
            f" script-src {digests}"
        ),
    }  # fmt: skip


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed; leaves ``window.vegaEmbed``.

    Bundled once for an installed version, which takes a second, and kept where that is possible.
    """
    path = VENDOR / f"vega-{version(_CHARTS)}.js"
    with suppress(OSError):
        return path.read_text("utf-8")
    import vl_convert

    script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed"))
    with suppress(OSError):
        VENDOR.mkdir(exist_ok=True)
        write_atomic(path, script, durable=False)
    return script


@cache
def _tables() -> str:
    """DataTables with its buttons; leaves ``window.jQuery``."""
    script = _bundle("dt_bundle.js")
    # Its last statement hands its parts to other modules.
    match = re.search(r"\bexport\s*\{[^{}]*?([\w$]+) as jQuery\b[^{}]*\}\s*;?", script)
    if match is None:
        raise UserError("itables: its bundle of DataTables exports no jQuery; run `make setup`")
    return f"{script[: match.start()]}window.jQuery={match[1]};{script[match.end() :]}"


def _bundle(name: str) -> str:
    """A file that itables brings along; the package itself is not needed."""
    spec = find_spec("itables")
    if spec is None or spec.origin is None:
        raise UserError("itables is not installed; run `make setup`")
    return (Path(spec.origin).parent / "html" / name).read_text("utf-8")


def _inline_script(text: str) -> Markup:
    """A script that no HTML parser ends early; escapes mean the same in strings and patterns."""
    text = text.replace("\r\n", "\n")  # as a browser reads it, which then makes its digest
    text = re.sub(r"<(?=/script|script)", r"\\x3c", text, flags=re.IGNORECASE)
    return Markup(text.replace("<!--", r"\x3c!--"))


_SCRIPT = re.compile(r"(<script\b.*?</script>)", re.DOTALL)


def embedded(data: Any) -> Markup:
    """JSON for a ``script`` element: numbers with all their digits, no ``<``."""
    return htmlsafe_json_dumps(_visible(data), separators=(",", ":"), allow_nan=False)


def _visible(data: Any) -> Any:
    """JSON whose texts, and names, can be seen."""
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, Mapping):
        return {visible(str(name)): _visible(value) for name, value in data.items()}
    return [_visible(value) for value in data] if isinstance(data, list | tuple) else data


def with_code(text: str) -> Markup:
    """A text in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def render(template: str, context: Mapping[str, Any], filters: Mapping[str, Any]) -> str:
    """A page from a template in resources/; every value is escaped unless it is Markup."""
    environment = Environment(
        loader=FileSystemLoader(RESOURCES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": counted,
        "listed": lambda items, limit=8: listed([str(item) for item in items], limit),
        "seconds": duration,
        "figure_number": number,
        "with_code": with_code,
        "embedded": embedded,
        "unbroken": unbroken,
        **filters,
    }
    page = environment.get_template(template).render(context)
    # Scripts are ours, but for data, which ``embedded`` has looked at; their digests hold.
    parts = _SCRIPT.split(page)
    return "".join(part if part.startswith("<script") else visible(part) for part in parts)
