"""Numbers and texts of a record on a page, each with its place in the record, so that a reader can check every one."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from topiarist.report.page import TableCell
from topiarist.rightsizing.record import MetricRecord, RightsizingRecord

_LEAST_P = 0.0001
_FOUR_DIGITS = 10_000  # from which on no decimals are shown
_WITH_UNIT = re.compile(r"\d+(\.\d+)? (%|×|KB|points?\b)")


def _points(value: float) -> str:
    """Return a difference of shares in points, with its sign; nothing is neither more nor less."""
    text = f"{100 * value:+.2f}"
    return f"{'0.00' if float(text) == 0 else text} points"


def _drop(value: float) -> str:
    text = f"{100 * value:.4g}"
    return f"{text} point{'' if text == '1' else 's'}"


def _times(value: float) -> str:
    """Return a ratio with as many decimals as it needs."""
    decimals = 0 if value >= 100 or value == int(value) else 1 if value >= 2 else 2
    return f"{value:,.{decimals}f} ×"


FORMS: dict[str, Callable[[Any], str]] = {
    "truth": lambda value: "yes" if value else "no",
    "count": lambda value: f"{value:,.0f}",
    "answers": lambda value: f"{value:,.1f}",  # sums of shares, where several networks answer
    "percent": lambda value: f"{100 * value:.2f} %",
    "probability": lambda value: f"{100 * value:.0f} %",
    "points": _points,
    "drop": _drop,
    "kilobytes": lambda value: f"{value:,.1f} KB" if value >= 1 else f"{value:.2f} KB",
    "milliseconds": lambda value: f"{value:,.2f} ms" if value >= 1 else f"{value:.3f} ms",
    "seconds": lambda value: f"{value:,.1f} s",
    "times": _times,
    "loss": lambda value: f"{value:.4f}",
    "number": lambda value: f"{value:,.0f}" if abs(value) >= _FOUR_DIGITS else f"{value:.4g}",
    "change": lambda value: f"{100 * value:+.2f} %",
    "difference": lambda value: f"{value:+.4f}",
    "share": lambda value: f"{100 * value:.4g} %",
    "p_value": lambda value: f"< {_LEAST_P}" if value < _LEAST_P else f"{value:.4f}",
    "plain": lambda value: str(value) if isinstance(value, int) else f"{value:.6g}",
}


@dataclass(frozen=True)
class MetricForms:
    """The forms of a metric's values, of differences of it, and of the loss that is allowed."""

    value: str
    difference: str
    drop: str


def forms_of(metric: MetricRecord) -> MetricForms:
    """Return how a metric is shown: as per cent and points, as per cent of the baseline's value, or as it is."""
    if metric.share:
        return MetricForms("percent", "points", "drop")
    return MetricForms("number", "change", "share") if metric.relative else MetricForms("number", "difference", "plain")


@dataclass(frozen=True)
class Quotes:
    """A record whose values are looked up by paths such as "networks.2.parameters"."""

    record: RightsizingRecord

    @property
    def forms(self) -> MetricForms:
        """The forms of the metric that decided."""
        return forms_of(self.record.metric)

    def look(self, path: str) -> Any:
        """Return what is at a path; None where there is nothing."""
        value: Any = self.record
        for part in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(part)
            elif _is_list(value):
                value = value[int(part)] if int(part) < len(value) else None
            else:
                value = getattr(value, part, None)
        return value

    def quote(self, path: str, form: str = "plain") -> Markup:
        """Return what is at a path as HTML: a number in its form, a text as it is, a dash for nothing."""
        value = self.look(path)
        if _is_list(value) and value:
            return Markup(", ").join(self.quote(f"{path}.{place}", form) for place in range(len(value)))
        if isinstance(value, str):
            return Markup('<bdi data-path="{}">{}</bdi>').format(path, _kept_together(value))
        if isinstance(value, bool):
            form = "truth"
        elif not is_number(value):
            return Markup('<span class="unknown" data-path="{}">–</span>').format(path)
        text = FORMS[form](value).replace("-", "−")
        return Markup('<data value="{}" data-path="{}" data-form="{}">{}</data>').format(
            json.dumps(value), path, form, text
        )

    def cell(self, path: str, form: str = "plain") -> TableCell:
        """Return a cell of a table, sorted by the number itself."""
        value = self.look(path)
        return TableCell(text=self.quote(path, form), value=json.dumps(value) if is_number(value) else None)


def _kept_together(text: str) -> Markup:
    """Return a text as HTML in which no line ends between a number and its unit."""
    return Markup(_WITH_UNIT.sub(r'<span class="together">\g<0></span>', str(escape(text))))


def is_number(value: object) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
