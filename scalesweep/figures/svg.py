"""Make matplotlib's SVG small, deterministic and safe to be inline in a page."""

import re
import xml.etree.ElementTree as ET

from scalesweep.core.visible import visible

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_FAMILIES = re.compile(r"font-family:[^;]*;?\s*")
_UNTURNED = re.compile(r"rotate\(-?0 [^)]*\)")
_URL = re.compile(r"url\(#([^)]+)\)")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
FAMILY = "'DejaVu Sans', Verdana, 'Segoe UI', Helvetica, Arial, sans-serif"


def tidy_svg(text: str, prefix: str, alt: str) -> str:
    """Rewrite an SVG for inline use.

    Ids get ``prefix``, so that one page can hold several; the fixed size gives way to the
    viewBox; the long font list is said once; coordinates lose invisible digits; metadata and
    prolog go.
    """
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    root = ET.fromstring(text)
    for child in list(root):
        if child.tag == f"{{{SVG}}}metadata":
            root.remove(child)
    for parent in root.iter():
        for child in list(parent):
            # Empty <defs/> and the style sheet matplotlib repeats in every file.
            if child.tag == f"{{{SVG}}}defs" and not len(child):
                parent.remove(child)
    used = _references(root)
    for element in root.iter():
        _tidy_element(element, prefix, used)
    root.attrib.pop("height", None)
    root.set("width", "100%")
    root.set("role", "img")
    root.set("aria-label", visible(alt))
    root.set("font-family", FAMILY)
    return ET.tostring(root, encoding="unicode") + "\n"


def _references(root: ET.Element) -> set[str]:
    names: set[str] = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            names.update(_URL.findall(value))
            if name.endswith("href") and value.startswith("#"):
                names.add(value[1:])
    return names


def _tidy_element(element: ET.Element, prefix: str, used: set[str]) -> None:
    for name, value in list(element.attrib.items()):
        if name == "id":
            if value in used:
                element.set(name, prefix + value)
            else:
                del element.attrib[name]
        elif name.endswith("href") and value.startswith("#"):
            element.set(name, f"#{prefix}{value[1:]}")
        elif name == "transform" and _UNTURNED.fullmatch(value):
            del element.attrib[name]
        elif name in ("d", "points", "x", "y", "transform", "width"):
            element.set(name, _NUMBER.sub(lambda match: f"{float(match[0]):.2f}", value))
        elif "url(#" in value:
            element.set(name, _URL.sub(rf"url(#{prefix}\1)", value))
        elif name == "style" and "font-family:" in value:
            element.set(name, _FAMILIES.sub("", value))
