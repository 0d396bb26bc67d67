"""The tables of a rightsizing, every cell quoted from the record, and its confusion matrices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from topiarist.report.page import TableCell
from topiarist.report.rightsizing.quotes import Quotes, forms_of
from topiarist.settings import Record

_COMPARED = (  # what, where it is before and after, its form, and the gain that tells how much it changed
    ("parameters", "{network}.parameters", "count", "parameters"),
    ("parameters that are not zero", "{network}.nonzero", "count", "nonzero"),
    ("size on disk", "{network}.file_kb", "kilobytes", "size"),
    ("size in memory", "{network}.memory_kb", "kilobytes", "memory"),
    ("multiply-accumulates", "{network}.macs", "count", "macs"),
    ("latency, torch", "{network}.latency_ms", "milliseconds", "latency"),
    ("latency, ONNX Runtime", "{network}.onnx_latency_ms", "milliseconds", "onnx_latency"),
    ("size as ONNX", "{network}.onnx_kb", "kilobytes", "onnx_size"),
)
_NETWORK_COLUMNS = (
    ("method", "method", "text"),
    ("asked", "ratio", "times"),
    ("{metric} over the folds", "judged_score", "value"),
    ("parameters", "parameters", "count"),
    ("on disk", "file_kb", "kilobytes"),
    ("MACs", "macs", "count"),
    ("latency", "latency_ms", "milliseconds"),
    ("validation {metric}", "validation_score", "value"),
    ("validation loss", "validation_loss", "loss"),
    ("not zero", "nonzero", "count"),
    ("on the front", "front", "text"),
    ("best of its size", "winner", "text"),
    ("keeps the budget", "fits", "text"),
    ("learned once more", "relearned", "text"),
)
_RUNG_COLUMNS = (
    ("asked", "ratio", "times"),
    ("verdict", "verdict", "text"),
    ("difference", "difference", "difference"),
    ("lower bound", "low", "difference"),
    ("upper bound", "high", "difference"),
    ("p", "p", "p_value"),
    ("at most", "level", "plain"),
    ("for a loss times", "times_as_far", "times"),
    ("{metric}", "score", "value"),
    ("of the baseline", "baseline_score", "value"),
    ("R² gained", "r2_difference", "loss"),
    ("won", "won", "answers"),
    ("lost", "lost", "answers"),
    ("answers that differ", "discordant", "percent"),
    ("samples", "samples", "count"),
    ("power", "power", "probability"),
    ("samples needed", "samples_needed", "count"),
    ("against a guess", "guess_difference", "difference"),
    ("its lower bound", "guess_low", "difference"),
    ("better than guessing", "beats_guess", "text"),
    ("shown to lose more", "inferior", "text"),
    ("tested", "tested", "text"),
    ("method chosen in each fold", "chosen_by_fold", "text"),
    ("remarks", "notes", "text"),
)
_TABLE_COLUMNS = (
    ("read as", "read_as", "text"),
    ("different values", "different", "count"),
    ("gaps", "missing", "count"),
    ("written as", "gaps", "text"),
    ("inputs", "inputs", "count"),
    ("remarks", "remarks", "text"),
)
_REFERENCE_COLUMNS = (
    ("{metric}, judged", "score", "value"),
    ("{metric}, test part", "test_score", "value"),
    ("parameters", "parameters", "count"),
    ("on disk", "file_kb", "kilobytes"),
    ("seconds to make", "seconds", "seconds"),
)
_OF_SOME = ("won", "lost", "discordant", "r2_difference", "notes", "relearned")  # what not every record has
_EACH = {"classes": "class", "numbers": "target", "labels": "label"}
_EMPTY = TableCell(text="", value=None)
_TABLED = ("names", "metrics", "columns", "command")  # which have a place of their own on every page
NOTED = ("notes", "left_out", "cut_short")  # which stand above the figures of a page of one result
_MOST_CLASSES = 30  # of a matrix that is still readable
_MOST_PAIRS = 15
FEW_SAMPLES = 30  # of a test part: below it, even half of them right may be a third or two thirds (Wilson's interval)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table as it is shown."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    caption: str = ""
    highlight: frozenset[int] = frozenset()


def comparison_table(quotes: Quotes, before: str, after: str) -> Grid:
    """Return what is known of the baseline and of the chosen network, without the latter where they are one."""
    alone = before == after
    rows = []
    for label, path, form, gain in (*_qualities(quotes), *_COMPARED):
        sides = [path.format(side="before", network=before), path.format(side="after", network=after)][: 2 - alone]
        if any(quotes.look(side) is not None for side in sides):
            cells = [_scored(quotes, side) if gain == "score" else quotes.cell(side, form) for side in sides]
            change = quotes.cell(f"gains.{gain}", quotes.forms.difference if gain == "score" else "times")
            said = quotes.cell(label) if label.startswith("task.") else TableCell(text=label, value=None)
            rows.append((said, *cells, *([] if alone else [change if gain else _EMPTY])))
    columns = ("figure", "baseline") if alone else ("figure", "before", "after", "change")
    return Grid(columns=columns, kinds=("text", *["number"] * (len(columns) - 1)), rows=tuple(rows))


def _qualities(quotes: Quotes) -> list[tuple[str, str, str, str]]:
    """Return the metrics of the test part as rows of the comparison, the one that decided first, with its interval.

    Of few samples it stands alone: without an interval, the others would say more than is known.
    """
    first, *others = quotes.record.task.metrics
    others = [] if few_samples(quotes) else others
    return [
        ("task.metrics.0.title", "test.score.{side}", forms_of(first).value, "score"),
        *(
            (f"task.metrics.{n}.title", f"test.{{side}}.{metric.name}", forms_of(metric).value, "")
            for n, metric in enumerate(others, start=1)
        ),
    ]


def few_samples(quotes: Quotes) -> bool:
    """Return whether the test part is so small that a value without its interval would mislead."""
    test = quotes.record.test
    return test is not None and test.samples < FEW_SAMPLES


def _scored(quotes: Quotes, place: str) -> TableCell:
    """Return a value with its interval, sorted by the value; the value alone where there is no interval."""
    cell, form = quotes.cell(f"{place}.value", quotes.forms.value), quotes.forms.value
    if quotes.look(f"{place}.low") is None:
        return cell
    sides = [quotes.quote(f"{place}.{side}", form) for side in ("low", "high")]
    return TableCell(text=Markup("{} ({} to {})").format(cell.text, *sides), value=cell.value)


def each_table(quotes: Quotes, sides: Sequence[str]) -> Grid | None:
    """Return the metric of each class, target or label on the test part; None where there is no such thing."""
    test, task = quotes.record.test, quotes.record.task
    if test is None or not test.each or len(task.names) > _MOST_CLASSES:
        return None
    return Grid(
        columns=(_EACH.get(task.kind, "name"), "samples", *(sides if len(sides) > 1 else ("baseline",))),
        kinds=("text", *["number"] * (1 + len(sides))),
        rows=tuple(
            (
                quotes.cell(f"task.names.{place}"),
                quotes.cell(f"test.each.{place}.samples", "count"),
                *(_scored(quotes, f"test.each.{place}.{side}") for side in sides),
            )
            for place in range(len(test.each))
        ),
    )


def proofs_table(quotes: Quotes, rung: str | None) -> Grid | None:
    """Return the test of each target or label by itself, of one step of the decision; None where none was asked for."""
    task, found = quotes.record.task, [] if rung is None else quotes.look(f"{rung}.each")
    if not found or len(task.names) > _MOST_CLASSES:
        return None
    shown = (("difference", quotes.forms.difference), ("low", quotes.forms.difference), ("p", "p_value"))
    return Grid(
        columns=(_EACH.get(task.kind, "name"), "difference", "at least", "p, Holm's", "proven"),
        kinds=("text", *["number"] * len(shown), "text"),
        rows=tuple(
            (
                quotes.cell(f"task.names.{place}"),
                *(quotes.cell(f"{rung}.each.{place}.{name}", form) for name, form in shown),
                quotes.cell(f"{rung}.each.{place}.proven", "truth"),
            )
            for place in range(len(found))
        ),
    )


def calibration_table(quotes: Quotes) -> Grid | None:
    """Return what the temperature does to the probabilities of the test part; None where there is none."""
    found = quotes.record.calibration
    if found is None:
        return None
    titles = {metric.name: f"task.metrics.{n}.title" for n, metric in enumerate(quotes.record.task.metrics)}
    return Grid(
        columns=("figure", "without scaling", "with scaling"),
        kinds=("text", "number", "number"),
        rows=tuple(
            (
                quotes.cell(titles[name]) if name in titles else TableCell(text=name.replace("_", " "), value=None),
                *(quotes.cell(f"calibration.{side}.{name}", "loss") for side in ("before", "after")),
            )
            for name in found.before
        ),
    )


def networks_table(quotes: Quotes, chosen: int) -> Grid:
    """Return all networks, each with a link to its card."""
    places = range(len(quotes.record.networks))
    rows = [(f"networks.{place}", f"networks.{place}.name", place) for place in places]
    all_fit = all(network.fits for network in quotes.record.networks)  # as they do where there is no budget
    columns = [column for column in _NETWORK_COLUMNS if not (all_fit and column[1] == "fits")]
    return _linked_table(quotes, rows, columns, highlight=frozenset({chosen}))


def references_table(quotes: Quotes, chosen: int) -> Grid:
    """Return the simple models, below the baseline and the chosen network."""
    record = quotes.record
    rows = [(f"references.{n}", f"references.{n}.name", None) for n in range(len(record.references))]
    grid = _linked_table(quotes, rows, _REFERENCE_COLUMNS, highlight=frozenset())
    networks = [
        (
            TableCell(text=_linked(quotes.quote(f"networks.{place}.name"), place), value=None),
            quotes.cell(f"networks.{place}.judged_score", quotes.forms.value),
            quotes.cell(f"test.score.{side}.value", quotes.forms.value),
            quotes.cell(f"networks.{place}.parameters", "count"),
            quotes.cell(f"networks.{place}.file_kb", "kilobytes"),
            TableCell(text="", value=None),
        )
        for place, side in ((0, "before"), (chosen, "after"))[: 2 if chosen else 1]
    ]
    return replace(grid, columns=("model", *grid.columns[1:]), rows=(*networks, *grid.rows))


def columns_table(quotes: Quotes) -> Grid:
    """Return what was decided for each column of the table that the data are."""
    rows = [(f"data.columns.{n}", f"data.columns.{n}.name", None) for n in range(len(quotes.record.data.columns))]
    grid = _linked_table(quotes, rows, _TABLE_COLUMNS, highlight=frozenset())
    return replace(grid, columns=("column", *grid.columns[1:]))


def rungs_table(quotes: Quotes) -> Grid:
    """Return the steps of the decision, each with a link to its network."""
    record = quotes.record
    places = {network.id: place for place, network in enumerate(record.networks)}
    rungs = record.decision.rungs
    rows = [(f"decision.rungs.{n}", f"decision.rungs.{n}.network", places.get(r.network)) for n, r in enumerate(rungs)]
    highlight = frozenset(number for number, rung in enumerate(rungs) if rung.network == record.verdict.chosen)
    return _linked_table(quotes, rows, _RUNG_COLUMNS, highlight=highlight)


def _linked_table(
    quotes: Quotes,
    rows: Iterable[tuple[str, str, int | None]],
    columns: Sequence[tuple[str, str, str]],
    *,
    highlight: frozenset[int],
) -> Grid:
    """Return a table of networks; a row has its place in the record, that of its name, and the number of its card.

    A column of which nothing is known is left out, as the won and lost answers of numbers are.
    """
    rows, forms = list(rows), {"value": quotes.forms.value, "difference": quotes.forms.difference}
    columns = [
        (label.format(metric=quotes.record.metric.title), field, forms.get(form, form))
        for label, field, form in columns
        if not rows or field not in _OF_SOME or any(quotes.look(f"{place}.{field}") for place, _, _ in rows)
    ]
    return Grid(
        columns=("network", *(label for label, _, _ in columns)),
        kinds=("text", *("text" if form == "text" else "number" for _, _, form in columns)),
        rows=tuple(
            (
                TableCell(text=_linked(quotes.quote(name), card), value=None),
                *(quotes.cell(f"{place}.{field}", form) for _, field, form in columns),
            )
            for place, name, card in rows
        ),
        highlight=highlight,
    )


def _linked(text: Markup, card: int | None) -> Markup:
    return text if card is None else Markup('<a href="#network-{}">{}</a>').format(card, text)


def leaves(quotes: Quotes, path: str, *, without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the names and places of all that is below a path, except for what is listed elsewhere, or left out."""
    found = quotes.look(path)
    keys = list(type(found).model_fields) if isinstance(found, Record) else list(found) if _is_table(found) else []
    return [
        (f"{name}, {below}" if below else name, place)
        for key in keys
        if key not in (*_TABLED, *without)
        for name in [key.replace("_", " ")]
        for below, place in (leaves(quotes, f"{path}.{key}", without=without) or [("", f"{path}.{key}")])
    ]


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


@dataclass(frozen=True, kw_only=True)
class Square:
    """One count of a confusion matrix: its place in the record, its share of the true class, whether it is right."""

    path: str
    count: int
    share: float
    right: bool


def heat_map(quotes: Quotes, side: str) -> list[list[Square]] | None:
    """Return the squares of a matrix, a row for each true class; None where there is no matrix, or too large a one."""
    counts = quotes.look(f"confusion.{side}")
    if not counts or len(counts) > _MOST_CLASSES:
        return None
    return [
        [
            Square(
                path=f"confusion.{side}.{true}.{given}",
                count=count,
                share=count / max(sum(row), 1),
                right=true == given,
            )
            for given, count in enumerate(row)
        ]
        for true, row in enumerate(counts)
    ]


def confused_pairs(quotes: Quotes, sides: Sequence[str]) -> Grid | None:
    """Return the pairs of classes that are confused most, over all sides; None where all fit in a matrix."""
    matrices = {side: counts for side in sides if (counts := quotes.look(f"confusion.{side}"))}
    classes = range(len(next(iter(matrices.values()), ())))
    if len(classes) <= _MOST_CLASSES:
        return None
    pairs = [(true, given) for true in classes for given in classes if true != given]
    together = {(true, given): sum(matrix[true][given] for matrix in matrices.values()) for true, given in pairs}
    most = sorted([pair for pair in pairs if together[pair]], key=lambda pair: -together[pair])[:_MOST_PAIRS]
    return Grid(
        columns=("true class", "taken for", *matrices),
        kinds=("text", "text", *["number"] * len(matrices)),
        rows=tuple(
            (
                *(quotes.cell(f"task.names.{place}") for place in (true, given)),
                *(quotes.cell(f"confusion.{side}.{true}.{given}", "count") for side in matrices),
            )
            for true, given in most
        ),
        caption="The pairs of classes that are confused most",
    )
