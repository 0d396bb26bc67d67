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


@pytest.mark.parametrize(
    ("inside", "complaint"),
    [
        ("<script>alert(1)</script>", "must not contain <script>"),
        ("<foreignObject/>", "must not contain <foreignObject>"),
        ("<style>body { display: none }</style>", "must not contain <style>"),
        ('<h:script xmlns:h="http://www.w3.org/1999/xhtml"/>', "must not contain <script>"),
        ('<g onclick="alert(1)"/>', "must not have onclick='alert"),
        ('<use href="http://example.org/x#y"/>', "must not have href='http"),
        ('<use xlink:href="javascript:alert(1)"/>', "must not have xlink:href='javascript"),
    ],
)
def test_a_figure_that_could_do_harm_is_refused(inside: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        embed(f"{HEAD}{inside}</svg>", prefix="")


@pytest.mark.parametrize("figure", ["", "no figure", "<svg>", "<html/>"])
def test_what_is_no_figure_is_refused(figure: str) -> None:
    with pytest.raises(DataError, match="a figure is no SVG"):
        embed(figure, prefix="")
