"""Scalable figures: made small and free of a background, and put into a page without clashing with one another."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from topiarist.errors import DataError
from topiarist.report.wording import clean

INK = "#010203"  # Drawn in this colour, shown in that of the text around the figure.
MID_GREY = "#767676"  # Of equal contrast on white and on black: for a figure that stands alone.
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
NAMESPACES = {"xmlns": "http://www.w3.org/2000/svg", "xmlns:xlink": "http://www.w3.org/1999/xlink"}
SHAPES = {"svg", "g", "defs", "path", "use", "clipPath", "rect", "circle", "line"}
HARMLESS = SHAPES | {"text", "tspan", "title", "desc", "a"}
REFERENCE = re.compile(r"(?<=url\(#)[^)]+")
LINKS = ("href", "xlink:href")
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
FONT_FAMILY = re.compile(r"font-family:[^;]*(;|$)\s*")


def finish(drawn: str, *, title: str, description: str) -> str:
    """Give what matplotlib drew as a small file with a title, a description and the colour of its surroundings."""
    root = without_namespaces(parse(drawn))
    referred = {name for element in root.iter() for name in references(element)}
    for element in list(root.iter()):
        for child in [child for child in element if child.tag == "style"]:
            element.remove(child)
        if element.get("id", "") not in referred:
            element.attrib.pop("id", None)
        tidy(element)
    root.attrib |= {
        **NAMESPACES,
        "role": "img",
        "color": MID_GREY,
        "font-family": FONTS,
        "stroke-linejoin": "round",
    }
    for position, (tag, text) in enumerate([("title", title), ("desc", description)]):
        child = Element(tag)
        child.text = clean(text)
        root.insert(position, child)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def tidy(element: Element) -> None:
    """Shorten numbers, drop what says nothing, and leave fonts and ink to the surroundings."""
    for name in ("d", "x", "y", "transform"):
        if name in element.attrib:
            text = " ".join(element.attrib[name].split())
            element.attrib[name] = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", text)
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    if "style" in element.attrib:
        element.attrib["style"] = FONT_FAMILY.sub("", element.attrib["style"]).replace(INK, "currentColor")
    if element.tag not in ("text", "tspan"):
        element.text = None
    element.tail = None


def embed(svg: str, *, prefix: str) -> str:
    """Give a figure as a part of a page, every name in it begun with `prefix`; one that could do harm is refused.

    A link (`a`) leads to a part of the page, not of the figure, and is left as it is.
    """
    root = without_namespaces(parse(svg))
    check_harmless(root)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.attrib[name] = prefix + value
            elif name in LINKS:
                element.attrib[name] = value if element.tag == "a" else f"#{prefix}{value[1:]}"
            else:
                element.attrib[name] = REFERENCE.sub(lambda found: prefix + found[0], value)
    return ElementTree.tostring(root, encoding="unicode")


def references(element: Element) -> Iterator[str]:
    """Give the names of other elements that an element uses."""
    for name, value in element.attrib.items():
        yield from [value[1:]] if name in LINKS else REFERENCE.findall(value)


def check_harmless(root: Element) -> None:
    """Refuse whatever could run, load something or change the page."""
    for element in root.iter():
        if element.tag not in HARMLESS:
            raise DataError(f"a figure on a page must not contain <{element.tag}>")
        for name, value in element.attrib.items():
            if name.startswith("on") or (name in LINKS and not value.startswith("#")):
                raise DataError(f"a figure on a page must not have {name}={value!r}")


def parse(svg: str) -> Element:
    """Read a figure, or say in one line that it is none."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise DataError(f"a figure is no SVG: {error}") from error
    if local_name(root.tag) != "svg":
        raise DataError(f"a figure is no SVG: it begins with <{local_name(root.tag)}>")
    return root


def without_namespaces(root: Element) -> Element:
    """Give the tree with plain names, as HTML has them."""
    for element in root.iter():
        element.tag = local_name(element.tag)
        element.attrib = dict(plain_attributes(element))
    return root


def plain_attributes(element: Element) -> Iterator[tuple[str, str]]:
    """Give the attributes of an element; a reference keeps the prefix that older programs look for."""
    for name, value in element.attrib.items():
        yield ("xlink:href" if name.endswith("}href") else local_name(name)), value


def local_name(name: str) -> str:
    """Give a name without its namespace."""
    return name.rpartition("}")[2]
