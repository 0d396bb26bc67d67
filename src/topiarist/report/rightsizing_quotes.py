"""Numbers and texts of a record on a page, each with its place in the record, so that a reader can check every one."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from topiarist.report.page import TableCell

Record = Mapping[str, Any]

LEAST_P = 0.0001


def truth(value: bool) -> str:
    """Write yes or no."""
    return "yes" if value else "no"


def count(value: float) -> str:
    """Write a whole number with commas."""
    return f"{value:,.0f}"


def percent(value: float) -> str:
    """Write a share in percent."""
    return f"{100 * value:.2f} %"


def chance(value: float) -> str:
    """Write a probability of a proof in whole percent."""
    return f"{100 * value:.0f} %"


def points(value: float) -> str:
    """Write a difference of shares in points, with its sign; nothing is neither more nor less."""
    text = f"{100 * value:+.2f}"
    return f"{'0.00' if float(text) == 0 else text} points"


def drop(value: float) -> str:
    """Write a drop that is allowed, in points."""
    text = f"{100 * value:.4g}"
    return f"{text} point{'' if text == '1' else 's'}"


def kilobytes(value: float) -> str:
    """Write a size of so many times 1024 bytes."""
    return f"{value:,.1f} KB" if value >= 1 else f"{value:.2f} KB"


def milliseconds(value: float) -> str:
    """Write a latency."""
    return f"{value:,.2f} ms" if value >= 1 else f"{value:.3f} ms"


def seconds(value: float) -> str:
    """Write a duration."""
    return f"{value:,.1f} s"


def times(value: float) -> str:
    """Write a ratio with as many decimals as it needs."""
    decimals = 0 if value >= 100 or value == int(value) else 1 if value >= 2 else 2
    return f"{value:,.{decimals}f} ×"


def loss(value: float) -> str:
    """Write a log loss."""
    return f"{value:.4f}"


def p_value(value: float) -> str:
    """Write a p-value."""
    return f"< {LEAST_P}" if value < LEAST_P else f"{value:.4f}"


def plain(value: float) -> str:
    """Write a setting as it was given."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


FORMS: dict[str, Callable[[Any], str]] = {
    form.__name__: form
    for form in (
        truth,
        count,
        percent,
        chance,
        points,
        drop,
        kilobytes,
        milliseconds,
        seconds,
        times,
        loss,
        p_value,
        plain,
    )
}


def look_up(record: Record, path: str) -> Any:
    """Give what lies at a path such as "networks.2.parameters"; None where there is nothing."""
    value: Any = record
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif is_list(value):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            return None
    return value


def quote(record: Record, path: str, form: str = "plain") -> Markup:
    """Give what lies at a path as HTML: a number in its form, a text as it is, a list in a row, a dash for nothing."""
    value = look_up(record, path)
    if is_list(value) and value:
        return Markup(", ").join(quote(record, f"{path}.{place}", form) for place in range(len(value)))
    if isinstance(value, str):
        return Markup('<bdi data-path="{}">{}</bdi>').format(path, value)
    if isinstance(value, bool):
        form = "truth"
    elif not is_number(value):
        return Markup('<span class="unknown" data-path="{}">–</span>').format(path)
    text = FORMS[form](value).replace("-", "−")
    return Markup('<data value="{}" data-path="{}" data-form="{}">{}</data>').format(
        json.dumps(value), path, form, text
    )


def quoted_cell(record: Record, path: str, form: str = "plain") -> TableCell:
    """Give a cell of a table, sorted by the number itself."""
    value = look_up(record, path)
    return TableCell(text=quote(record, path, form), value=json.dumps(value) if is_number(value) else None)


def is_number(value: object) -> bool:
    """Say whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_list(value: object) -> bool:
    """Say whether a value is a list of values."""
    return isinstance(value, Sequence) and not isinstance(value, str)
