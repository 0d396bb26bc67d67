"""What a figure says when the pointer rests on a part of it."""

from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from topiarist.report.svg import NAMESPACES, parse, without_namespaces
from topiarist.report.wording import replace_forbidden


def with_titles(svg: str, titles: Mapping[str, str]) -> str:
    """Give a figure in which every part that links to a name (an artist's `set_url`) has a title instead."""
    root = without_namespaces(parse(svg))
    for element in list(root.iter("a")):
        title = Element("title")
        title.text = replace_forbidden(titles[element.attrib["xlink:href"]])
        element.tag, element.attrib = "g", {}
        element.insert(0, title)
    root.attrib |= NAMESPACES
    return ElementTree.tostring(root, encoding="unicode") + "\n"
