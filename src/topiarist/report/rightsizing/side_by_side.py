"""Two results of rightsizing on one page: sizes, scores and settings side by side."""

from collections.abc import Iterator, Sequence

from topiarist.report.page import Section, Table, render_page
from topiarist.report.rightsizing.quotes import FORMS, Quotes
from topiarist.report.rightsizing.tables import leaves
from topiarist.rightsizing.record import RightsizingRecord

Row = tuple[str | None, ...]
_NETWORK = (  # what, its place in the record of a network, and its form
    ("parameters", "parameters", "count"),
    ("size on disk", "file_kb", "kilobytes"),
    ("size in memory", "memory_kb", "kilobytes"),
    ("multiply-accumulates", "macs", "count"),
    ("latency, torch", "latency_ms", "milliseconds"),
    ("latency, ONNX Runtime", "onnx_latency_ms", "milliseconds"),
)
_ASKED = ("data", "task", "settings", "plan", "seconds", "versions")


def side_by_side_page(records: Sequence[RightsizingRecord], names: Sequence[str]) -> str:
    """Return a page that compares results; rows in which they differ are highlighted."""
    said = [f"{name}: {record.verdict.sentence}" for name, record in zip(names, records, strict=True)]
    return render_page(
        title=" beside ".join(names),
        summary="\n\n".join([*said, *_cautions(records)]),
        sections=[
            Section(title="Networks and scores", tables=(_table(names, list(_results(records))),)),
            Section(
                title="Sizes that were tested",
                text="The verdict on each size, with the difference from the baseline of its own result.",
                tables=tuple(_tested(name, record) for name, record in zip(names, records, strict=True)),
            ),
            Section(title="Settings", tables=(_table(names, list(_settings(records))),)),
        ],
        footer={
            name: record.settings.command or "made from Python" for name, record in zip(names, records, strict=True)
        },
    )


def _cautions(records: Sequence[RightsizingRecord]) -> Iterator[str]:
    """Yield what forbids comparing scores."""
    if len({record.metric.name for record in records}) > 1:
        yield "They were judged by different metrics: their scores cannot be compared."
    sizes = {(record.data.name, record.data.training, record.data.validation, record.data.test) for record in records}
    if len(sizes) > 1:
        yield "They are of different data or parts: a difference of scores may be that of the samples."
    elif len({record.settings.seed for record in records}) > 1:
        yield "They are of different seeds, which may split the samples otherwise."


def _results(records: Sequence[RightsizingRecord]) -> Iterator[Row]:
    quotes = [Quotes(record) for record in records]
    chosen = [[network.id for network in record.networks].index(record.verdict.chosen) for record in records]
    yield "status", *(record.verdict.status for record in records)
    yield "network", *(record.verdict.chosen for record in records)
    for side, places in (("baseline", [0] * len(records)), ("result", chosen)):
        for label, field, form in (("{metric}, judged", "judged_score", ""), *_NETWORK):
            title = label.format(metric=records[0].metric.title)
            yield (
                f"{side}: {title}",
                *(
                    _shown(quote, f"networks.{place}.{field}", form)
                    for quote, place in zip(quotes, places, strict=True)
                ),
            )
        scored = "before" if side == "baseline" else "after"
        yield f"{side}: {records[0].metric.title}, test part", *(_estimate(quote, scored) for quote in quotes)


def _shown(quotes: Quotes, path: str, form: str = "") -> str | None:
    value = quotes.look(path)
    if value is None or isinstance(value, str):
        return value
    return FORMS[form or quotes.forms.value](value).replace("-", "−")


def _estimate(quotes: Quotes, side: str) -> str | None:
    value, low, high = (_shown(quotes, f"test.score.{side}.{part}") for part in ("value", "low", "high"))
    return value if low is None else f"{value} ({low} to {high})"


def _tested(name: str, record: RightsizingRecord) -> Table:
    quotes, rungs = Quotes(record), range(len(record.decision.rungs))
    fields = {"ratio": "times", "verdict": "", "difference": quotes.forms.difference, "p": "p_value"}
    fields |= {"samples": "count", "power": "probability"}
    return Table(
        columns=("size", "verdict", "difference", "p", "samples", "power"),
        rows=tuple(
            tuple(_shown(quotes, f"decision.rungs.{n}.{field}", form) for field, form in fields.items()) for n in rungs
        ),
        caption=name,
        highlight=frozenset(n for n in rungs if record.decision.rungs[n].network == record.verdict.chosen),
    )


def _settings(records: Sequence[RightsizingRecord]) -> Iterator[Row]:
    quotes = [Quotes(record) for record in records]
    for part in _ASKED:
        paths = dict.fromkeys(place for quote in quotes for place in leaves(quote, part))
        for name, path in paths:
            yield f"{part}: {name}", *(_plain(quote.look(path)) for quote in quotes)


def _plain(value: object) -> str | None:
    if value is None or value == ():
        return None
    if isinstance(value, bool):
        return FORMS["truth"](value)
    if isinstance(value, tuple):
        return ", ".join(str(_plain(each)) for each in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _table(names: Sequence[str], rows: Sequence[Row]) -> Table:
    """Return rows of which at least one side is known; where the sides differ, they are highlighted."""
    known = [row for row in rows if any(cell is not None for cell in row[1:])]
    differing = frozenset(number for number, row in enumerate(known) if len(set(row[1:])) > 1)
    return Table(columns=("", *names), rows=tuple(known), highlight=differing)
