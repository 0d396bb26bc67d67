"""SVG figures: small, in the colours of their surroundings, and several on one page without clashing names."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from topiarist.errors import DataError
from topiarist.report.wording import clean, replace_forbidden

INK = "#010203"  # Drawn in this colour, shown in that of the text around the figure.
_MID_GREY = "#767676"  # Of equal contrast on white and on black (4.5 : 1), for a figure that stands alone.
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_USED = re.compile(r'(?<=href="#)[^"]+|(?<=url\(#)[^)]+')
_REFERENCE = re.compile(r"(?<=url\(#)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_FONT_FAMILY = re.compile(r"font-family:[^;]*(;|$)\s*")


def finish(drawn: str, *, title: str, description: str, hover: Mapping[str, str]) -> str:
    """Return what matplotlib drew as a small file with a title, a description and the colour of its surroundings.

    `hover` has the titles of parts of the figure, by the names of their artists (`gid`).
    """
    root = parse(drawn)
    for sheet in root.findall("defs[style]"):
        root.remove(sheet)  # It would rule the whole page.
    used = set(_USED.findall(drawn))
    for element in list(root.iter()):
        name = element.get("id", "")
        if name not in used:
            element.attrib.pop("id", None)
        _shorten(element)
        if name in hover:
            _insert(element, 0, "title", replace_forbidden(hover[name]))
    root.attrib |= {"role": "img", "color": _MID_GREY, "font-family": _FONTS, "stroke-linejoin": "round"}
    _insert(root, 0, "title", clean(title))
    _insert(root, 1, "desc", clean(description))
    return write(root)


def embed(svg: str, *, prefix: str) -> str:
    """Return a figure as a part of a page, every name in it begun with `prefix`.

    A link (`a`) leads to a part of the page, not of the figure, and is left as it is.
    """
    root = parse(svg)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.attrib[name] = prefix + value
            elif name in ("href", "xlink:href") and element.tag != "a" and value.startswith("#"):
                element.attrib[name] = f"#{prefix}{value[1:]}"
            else:
                element.attrib[name] = _REFERENCE.sub(prefix, value)
    return ElementTree.tostring(root, encoding="unicode")


def parse(svg: str) -> Element:
    """Return the root of a figure, its names without namespaces, as HTML has them."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise DataError(f"a figure is not SVG: {error}") from error
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        # Programs that are older than SVG 2 look for the prefix.
        element.attrib = {name.replace(_XLINK, "xlink:"): value for name, value in element.attrib.items()}
    if root.tag != "svg":
        raise DataError(f"a figure is not SVG: it begins with <{root.tag}>")
    return root


def write(root: Element) -> str:
    """Return the text of a figure that stands alone."""
    root.attrib |= {"xmlns": _SVG[1:-1], "xmlns:xlink": _XLINK[1:-1]}
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _shorten(element: Element) -> None:
    """Round numbers, drop blanks, and leave fonts and ink to the surroundings."""
    for name in ("d", "x", "y", "transform"):
        if name in element.attrib:
            text = " ".join(element.attrib[name].split())
            element.attrib[name] = _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", text)
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    if "style" in element.attrib:
        element.attrib["style"] = _FONT_FAMILY.sub("", element.attrib["style"]).replace(INK, "currentColor")
    if element.tag not in ("text", "tspan"):
        element.text = None
    element.tail = None


def _insert(parent: Element, place: int, tag: str, text: str) -> None:
    child = Element(tag)
    child.text = text
    parent.insert(place, child)
