"""The tables of a right-sizing: every cell is quoted from the record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from topiarist.report.page import TableCell
from topiarist.report.rightsizing_quotes import Record, look_up, quote, quoted_cell

COMPARED = (  # what, where it is before and after, its form, and which gain says how much it changed
    ("accuracy", "test.{side}.accuracy", "percent", "accuracy"),
    ("accuracy, mean over the classes", "test.{side}.macro_accuracy", "percent", ""),
    ("log loss", "test.{side}.log_loss", "loss", ""),
    ("parameters", "{network}.parameters", "count", "parameters"),
    ("parameters that are not zero", "{network}.nonzero", "count", "nonzero"),
    ("size on disk", "{network}.file_kb", "kilobytes", "size"),
    ("size in memory", "{network}.memory_kb", "kilobytes", "memory"),
    ("multiply-accumulates", "{network}.macs", "count", "macs"),
    ("latency, torch", "{network}.latency_ms", "milliseconds", "latency"),
    ("latency, ONNX Runtime", "{network}.onnx_latency_ms", "milliseconds", "onnx_latency"),
    ("size as ONNX", "{network}.onnx_kb", "kilobytes", "onnx_size"),
)
NETWORK_COLUMNS = (
    ("method", "method", "text"),
    ("asked", "ratio", "times"),
    ("accuracy over the folds", "judged_accuracy", "percent"),
    ("parameters", "parameters", "count"),
    ("on disk", "file_kb", "kilobytes"),
    ("MACs", "macs", "count"),
    ("latency", "latency_ms", "milliseconds"),
    ("validation accuracy", "validation_accuracy", "percent"),
    ("validation loss", "validation_loss", "loss"),
    ("not zero", "nonzero", "count"),
    ("on the front", "front", "text"),
    ("best of its ratio", "winner", "text"),
    ("keeps the budget", "fits", "text"),
)
RUNG_COLUMNS = (
    ("asked", "ratio", "times"),
    ("proven", "proven", "text"),
    ("difference", "difference", "points"),
    ("lower bound", "low", "points"),
    ("p", "p", "p_value"),
    ("accuracy", "accuracy", "percent"),
    ("of the baseline", "baseline_accuracy", "percent"),
    ("answers that differ", "discordant", "percent"),
    ("samples", "samples", "count"),
    ("power", "power", "chance"),
    ("samples needed", "samples_needed", "count"),
    ("tested", "tested", "text"),
    ("method chosen in each fold", "chosen_by_fold", "text"),
)

EMPTY = TableCell(text="", value=None)
ELSEWHERE = ("classes", "command")


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table as it is shown."""

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    caption: str = ""
    highlight: frozenset[int] = frozenset()


def comparison_table(record: Record, before: str, after: str) -> Grid:
    """Give what is known of the baseline and of the chosen network, without the latter where they are one."""
    alone = before == after
    rows = []
    for label, path, form, gain in COMPARED:
        sides = [path.format(side="before", network=before), path.format(side="after", network=after)][: 2 - alone]
        if any(look_up(record, side) is not None for side in sides):
            cells = [quoted_cell(record, side, form) for side in sides]
            change = quoted_cell(record, f"gains.{gain}", "points" if gain == "accuracy" else "times")
            rows.append((TableCell(text=label, value=None), *cells, *([] if alone else [change if gain else EMPTY])))
    columns = ("figure", "baseline") if alone else ("figure", "before", "after", "change")
    return Grid(columns=columns, kinds=("text", *["number"] * (len(columns) - 1)), rows=tuple(rows))


def networks_table(record: Record, chosen: int) -> Grid:
    """Give all networks, each with a link to its card."""
    return linked_table(
        record,
        [(f"networks.{place}", f"networks.{place}.name", place) for place in range(len(record["networks"]))],
        NETWORK_COLUMNS,
        highlight=frozenset({chosen}),
    )


def rungs_table(record: Record) -> Grid:
    """Give the steps of the decision, each with a link to its network."""
    places = {network["id"]: place for place, network in enumerate(record["networks"])}
    rungs = look_up(record, "decision.rungs") or ()
    rows = [
        (f"decision.rungs.{n}", f"decision.rungs.{n}.network", places.get(r["network"])) for n, r in enumerate(rungs)
    ]
    chosen = look_up(record, "verdict.chosen")
    highlight = frozenset(number for number, rung in enumerate(rungs) if rung["network"] == chosen)
    return linked_table(record, rows, RUNG_COLUMNS, highlight=highlight)


def linked_table(
    record: Record,
    rows: Iterable[tuple[str, str, int | None]],
    columns: Sequence[tuple[str, str, str]],
    *,
    highlight: frozenset[int],
) -> Grid:
    """Give a table of networks: for each row its place in the record, that of its name, and the number of its card."""
    return Grid(
        columns=("network", *(label for label, _, _ in columns)),
        kinds=("text", *("text" if form == "text" else "number" for _, _, form in columns)),
        rows=tuple(
            (
                TableCell(text=linked(quote(record, name), card), value=None),
                *(quoted_cell(record, f"{place}.{field}", form) for _, field, form in columns),
            )
            for place, name, card in rows
        ),
        highlight=highlight,
    )


def linked(text: Markup, card: int | None) -> Markup:
    """Give a text that leads to the card of a network, where there is one."""
    return text if card is None else Markup('<a href="#network-{}">{}</a>').format(card, text)


def leaves(record: Record, path: str) -> list[tuple[str, str]]:
    """Give the names and places of all that lies below a path, except for what is listed elsewhere."""
    found = look_up(record, path)
    if not isinstance(found, Mapping):
        return []
    return [
        (f"{name}, {below}" if below else name, place)
        for key in found
        if key not in ELSEWHERE
        for name in [key.replace("_", " ")]
        for below, place in (leaves(record, f"{path}.{key}") or [("", f"{path}.{key}")])
    ]
