"""How results look in a notebook: small tables in the colours of the page around them, and a bar while one waits."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Protocol

MOST_ROWS = 30  # of a table in a notebook, about a screen; what has more is printed as text
_LEFT, _RIGHT = "text-align:left", "text-align:right;font-variant-numeric:tabular-nums"
_CELL = "padding:2px 12px 2px 0;border:0;background:none;vertical-align:top"
# Half of the text's own colour is a line that is seen on white and on black.
_LINE = "border-bottom:1px solid color-mix(in srgb, currentColor 35%, transparent)"


def html_table(rows: Sequence[Mapping[str, str]], *, heading: str = "", notes: Sequence[str] = ()) -> str:
    """Return rows of names and values as HTML: a heading above, notes below, everything escaped.

    Columns whose every value begins with a digit or a sign are aligned to the right.

    Examples
    --------
    >>> "&lt;b&gt;" in html_table([{"name": "<b>", "units": "8"}])
    True
    """
    parts = [f'<div style="font-weight:600;margin-bottom:4px">{escape(heading)}</div>'] if heading else []
    if rows:
        looks = {name: _RIGHT if all(_is_number(row[name]) for row in rows) else _LEFT for name in rows[0]}
        head = "".join(f'<th style="{_CELL};{look};{_LINE}">{escape(name)}</th>' for name, look in looks.items())
        lines = [
            "".join(f'<td style="{_CELL};{look}">{escape(row[name])}</td>' for name, look in looks.items())
            for row in rows[:MOST_ROWS]
        ]
        body = "".join(f'<tr style="background:none">{line}</tr>' for line in lines)
        parts.append(
            '<div style="overflow-x:auto">'
            '<table style="border-collapse:collapse;margin:0;color:inherit;font-size:inherit">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )
    left_out = len(rows) - MOST_ROWS
    more = [f"… and {left_out} more: print it to see them all."] if left_out > 0 else []
    parts += [f'<div style="margin-top:4px">{escape(note)}</div>' for note in (*more, *notes)]
    return f'<div class="topiarist" style="font-size:0.9em">{"".join(parts)}</div>'


def _is_number(text: str) -> bool:
    return not text or text[0] in "0123456789-−+"


class Bar(Protocol):
    """What draws a bar: to be called with the share that is done and, if one likes, what is next."""

    def __call__(self, share: float, now: str = "", /) -> None:
        """Draw it."""
        ...


@contextmanager
def progress_bar(what: str = "") -> Iterator[Bar]:
    """Yield a function for `on_progress`: it draws a bar on a terminal or in a notebook, and nothing elsewhere.

    A notebook needs ipywidgets for it: `pip install "topiarist[notebooks]"`.

    Parameters
    ----------
    what : str
        What is under way, shown before the bar.

    Yields
    ------
    Bar

    Examples
    --------
    >>> with progress_bar("counting") as show:
    ...     for number in range(3):
    ...         show(number / 2)
    """
    from rich.console import Console  # noqa: PLC0415  # nobody waits for a table
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
    console = Console(stderr=True)
    shown = console.is_terminal or console.is_jupyter
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task(what, total=1.0, now="")

        def show(share: float, now: str = "", /) -> None:
            bar.update(task, completed=share, now=now)

        yield show
