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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Assets:
    """Scripts and styles of a page, ready to be embedded; ``libraries`` run when one is needed."""

    libraries: Mapping[str, Markup]
    scripts: tuple[Markup, ...]
    styles: tuple[Markup, ...]

    @property
    def policy(self) -> Markup:
        """Content of the page's Content-Security-Policy."""
        every = (*self.libraries.values(), *self.scripts)
        hashed = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in every)
        digests = " ".join(f"'sha256-{digest}'" for digest in hashed)
        return Markup(
            "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:;"
            f" script-src {digests}"
        )


def assets(own: Sequence[str], charts: bool = True) -> Assets:
    """Scripts of the libraries, then our ``own`` (names of files in resources/), and styles."""
    libraries = {"tables": _tables(), **({"charts": _vega()} if charts else {})}
    scripts = [(RESOURCES / name).read_text("utf-8") for name in (LIBRARIES, *own)]
    styles = [_bundle("dt_bundle.css")]
    styles += [(RESOURCES / "report.css").read_text("utf-8")]
    return Assets(
        {name: _inline_script(_enclosed(text)) for name, text in libraries.items()},
        tuple(map(_inline_script, scripts)),
        tuple(map(Markup, styles)),
    )


def _enclosed(module: str) -> str:
    """A module without exports as a script that runs where it is put, with names of its own."""
    return f'(function(){{"use strict";\n{module}\n}}).call(undefined)'


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


def breakable(text: str) -> Markup:
    """A heading that may break behind an underscore."""
    return Markup(str(escape(text)).replace("_", "_<wbr>"))


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
        "breakable": breakable,
        "embedded": embedded,
        "unbroken": unbroken,
        **filters,
    }
    page = environment.get_template(template).render(context)
    # Scripts are ours, but for data, which ``embedded`` has looked at; their digests hold.
    parts = _SCRIPT.split(page)
    return "".join(part if part.startswith("<script") else visible(part) for part in parts)
