"""The cells of a table as inputs of an ONNX file: one per column, text as text, numbers as numbers.

A text has a place among those of its column, by a list that is part of the file; the input that belongs to a place is 1
where the text has it, so that no matrix of ones and zeros is written. Two kinds of columns are beyond the operators of
ONNX: dates, whose parts the file reads, and columns whose rarer texts share places by a hash, of which it reads the
place. `CODE` computes both with Python's and numpy's own means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.column import FIRST_TEXT, MISSING_TEXT, UNSEEN_TEXT, Column, check_columns
from topiarist.data.columns.texts import texts_of
from topiarist.data.columns.truths import truth_words
from topiarist.data.extras import import_extra

if TYPE_CHECKING:
    import pandas

Reads = Literal["number", "text", "date parts", "text place"]
Cells = Mapping[str, NDArray[Any]]

CODE = '''
import hashlib
import numpy


def date_parts(dates, parts):
    """dates: numpy.datetime64, NaT for gaps; parts: as this file lists them. Returns (n_samples, n_parts)."""
    dates = numpy.asarray(dates, dtype="datetime64[us]")
    gap, day = numpy.isnat(dates), dates.astype("datetime64[D]")
    days = (dates - numpy.datetime64("1970-01-01", "us")) / numpy.timedelta64(1, "D")
    year = dates.astype("datetime64[Y]").astype(float) + 1970
    month = (dates.astype("datetime64[M]") - dates.astype("datetime64[Y]")).astype(float)
    hour = (dates - day) / numpy.timedelta64(1, "h")
    turns = {"month": month / 12, "weekday": (day.astype(float) + 3) % 7 / 7, "hour": hour / 24}
    numbers = {"elapsed days": days, "year": year}
    for name, turn in turns.items():
        numbers[name + " sine"] = numpy.sin(2 * numpy.pi * turn)
        numbers[name + " cosine"] = numpy.cos(2 * numpy.pi * turn)
    return numpy.stack([numpy.where(gap, numpy.nan, numbers[part]) for part in parts], axis=1)


def text_place(text, categories, shared):
    """text: without blanks around it, None for a gap; categories and shared: as this file lists them."""
    if text is None:
        return 0
    if text in categories:
        return 2 + categories.index(text)
    place = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % shared
    return 2 + len(categories) + place
'''


@dataclass(frozen=True)
class CellInput:
    """One input of a file: what it is called, what it reads, and how wide it is.

    `parts` are those of a date; `categories` and `shared` say which place a text has.
    """

    name: str
    reads: Reads
    width: int = 1
    parts: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    shared: int = 0


def cell_inputs(columns: Sequence[Column]) -> tuple[CellInput, ...]:
    """Return the inputs of a file for a table; none where all its columns are numbers, which are one input together."""
    if all(column.kind == "number" and not _is_truth(column) for column in columns):
        return ()
    return tuple(_input_of(column) for column in columns)


def _is_truth(column: Column) -> bool:
    return column.form is not None and column.form.kind == "truth"


def _input_of(column: Column) -> CellInput:
    if column.kind == "date":
        return CellInput(column.name, "date parts", len(column.parts), parts=column.parts)
    if column.kind == "text" and len(column.shared) > 1:
        return CellInput(column.name, "text place", categories=column.categories, shared=len(column.shared))
    return CellInput(column.name, "text" if column.kind == "text" or _is_truth(column) else "number")


def cells_of(table: "pandas.DataFrame", columns: Sequence[Column], numbers: type[Any]) -> Cells:
    """Return a table as a file reads it: (n_samples, 1) of text for a column of text, and so on."""
    check_columns(table, columns)
    return {column.name: _cells(table[column.name], column, numbers) for column in columns}


def _cells(values: "pandas.Series[Any]", column: Column, numbers: type[Any]) -> NDArray[Any]:
    reads = _input_of(column).reads
    if reads == "text":
        texts = texts_of(values)
        return texts.spread(texts.words.astype(object), "").astype(object)[:, None]
    if reads == "text place":
        return column.places_of(values)[:, None].astype(numpy.int64)
    return column.numbers(values).astype(numbers)


@dataclass(frozen=True)
class TextLookup:
    """Which place each text has, and what the places become as inputs; all other texts have the place `unseen`.

    An input is 1 where the place is the one in `equals`, −1 for none. `gathered` (n_places, n_more) are inputs that
    follow, of which each place has its own.
    """

    places: Mapping[str, int]
    unseen: int
    equals: NDArray[numpy.int64]
    gathered: NDArray[numpy.float64]

    def inputs(self, places: NDArray[Any]) -> NDArray[numpy.float64]:
        """Return what texts with these places become (n_samples, raw_width), as the graph computes it."""
        return numpy.concatenate([places[:, None] == self.equals, self.gathered[places]], axis=1)


def lookup_of(column: Column) -> TextLookup:
    """Return what each text of a column becomes."""
    gaps = column.gap_words()
    if _is_truth(column):
        true, false = truth_words()
        found = dict.fromkeys(gaps, 0) | dict.fromkeys(false, 1) | dict.fromkeys(true, 2)
        return TextLookup(found, 0, numpy.empty(0, dtype=numpy.int64), numpy.array([[numpy.nan], [0.0], [1.0]]))
    known = {text.strip(): column.place_of(text.strip()) for text in column.categories}
    unseen = column.place_of(_unheard(known))
    if column.encoding != "one-hot":
        shown_places = enumerate((*column.counts, *column.shared), FIRST_TEXT)
        places = [MISSING_TEXT, UNSEEN_TEXT, *(place if count else UNSEEN_TEXT for place, count in shown_places)]
        table = column.of_places(numpy.array(places))
        return TextLookup(dict.fromkeys(gaps, 0) | known, unseen, numpy.empty(0, dtype=numpy.int64), table)
    shown = numpy.array((*column.counts, *column.shared), dtype=numpy.int64)
    own = numpy.where(shown > 0, numpy.arange(FIRST_TEXT, FIRST_TEXT + len(shown)), -1)
    equals = numpy.append(own, [MISSING_TEXT] * column.indicator)
    rows = numpy.array((0, 0, *column.counts, *(int(count > 0) for count in column.shared)))
    gathered = numpy.log1p(rows)[:, None] if column.frequency else numpy.empty((len(rows), 0))
    return TextLookup(dict.fromkeys(gaps, 0) | known, unseen, equals, gathered)


def _unheard(known: Mapping[str, int]) -> str:
    """Return a text that is no category."""
    return next(text for text in (f"\x00{number}" for number in range(len(known) + 1)) if text not in known)


def with_cells(model: Any, columns: Sequence[Column], *, old: str) -> Any:
    """Let an ONNX graph read cells, one input per column, in the place of its input `old` of all their numbers."""
    helper = import_extra("onnx.helper", what="ONNX export", extra="onnx")
    given = next(each for each in model.graph.input if each.name == old)
    kind = given.type.tensor_type.elem_type
    numbers = helper.tensor_dtype_to_np_dtype(kind)
    nodes, inputs, pieces = [], [], []
    for place, (column, read) in enumerate(zip(columns, cell_inputs(columns), strict=True)):
        types = {"text": helper.np_dtype_to_tensor_dtype(numpy.dtype(object)), "text place": _INT64}
        inputs.append(helper.make_tensor_value_info(read.name, types.get(read.reads, kind), ["samples", read.width]))
        made = read.name
        if read.reads in ("text", "text place"):
            made, more = _looked_up(helper, model, column, read, f"{old}_{place}", numbers)
            nodes += more
        pieces.append(made)
    nodes.append(helper.make_node("Concat", pieces, [old], axis=1, name=f"{old}_joined"))
    kept = list(model.graph.node)
    del model.graph.input[:], model.graph.node[:]
    model.graph.input.extend(inputs)
    model.graph.node.extend([*nodes, *kept])
    if not any(each.domain == _ML for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_ML, 2))
    return model


_ML, _INT64 = "ai.onnx.ml", 7


def _looked_up(
    helper: Any, model: Any, column: Column, read: CellInput, name: str, numbers: Any
) -> tuple[str, list[Any]]:
    """Return the nodes that turn texts, or their places, into inputs, and the name of the result."""
    numpy_helper = import_extra("onnx.numpy_helper", what="ONNX export", extra="onnx")
    found, nodes, places, pieces = lookup_of(column), [], read.name, []

    def constant(value: NDArray[Any], what: str) -> str:
        model.graph.initializer.append(numpy_helper.from_array(value, f"{name}_{what}"))
        return f"{name}_{what}"

    if read.reads == "text":
        places = f"{name}_places"
        nodes.append(
            helper.make_node(
                "LabelEncoder",
                [read.name],
                [places],
                domain=_ML,
                name=places,
                keys_strings=list(found.places),
                values_int64s=list(found.places.values()),
                default_int64=found.unseen,
            )
        )

    def node(operator: str, given: Sequence[str], what: str, **settings: Any) -> str:
        nodes.append(helper.make_node(operator, given, [f"{name}_{what}"], name=f"{name}_{what}", **settings))
        return f"{name}_{what}"

    if len(found.equals):
        equal = node("Equal", [places, constant(found.equals[None].astype(numpy.int64), "equals")], "equal")
        kind = helper.np_dtype_to_tensor_dtype(numpy.dtype(numbers))
        pieces.append(node("Cast", [equal], "ones", to=kind))
    if found.gathered.shape[1]:
        flat = node("Squeeze", [places, constant(numpy.array([1]), "axis")], "flat")
        pieces.append(node("Gather", [constant(found.gathered.astype(numbers), "table"), flat], "rows"))
    return (pieces[0] if len(pieces) == 1 else node("Concat", pieces, "inputs", axis=1)), nodes
