import pytest

from topiarist.errors import DataError
from topiarist.report.svg import embed

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'


def test_every_name_and_every_reference_gets_the_prefix_and_nothing_else() -> None:
    figure = f"""{HEAD}<defs><path id="m"/><clipPath id="c"/></defs><text>#m</text>
    <use xlink:href="#m" fill="#abc" clip-path="url(#c)" style="clip-path: url(#c); fill: #abc"/></svg>"""
    embedded = embed(figure, prefix="f1-")
    assert '<path id="f1-m" />' in embedded
    assert '<clipPath id="f1-c" />' in embedded
    expected = '<use xlink:href="#f1-m" fill="#abc" clip-path="url(#f1-c)" style="clip-path: url(#f1-c); fill: #abc" />'
    assert expected in embedded
    assert "<text>#m</text>" in embedded
    assert "http" not in embedded
    assert '<use href="#f1-m" />' in embed(f'{HEAD}<use href="#m"/></svg>', prefix="f1-")


def test_a_link_to_a_part_of_the_page_stays() -> None:
    figure = f'{HEAD}<a xlink:href="#network-1"><use xlink:href="#m"/></a></svg>'
    assert '<a xlink:href="#network-1"><use xlink:href="#f1-m" /></a>' in embed(figure, prefix="f1-")


@pytest.mark.parametrize("figure", ["", "no figure", "<svg>", "<html/>"])
def test_what_is_not_a_figure_is_refused(figure: str) -> None:
    with pytest.raises(DataError, match="a figure is not SVG"):
        embed(figure, prefix="")
