"""Whole tables as they come: three locales of a spreadsheet, ids, gaps, lone classes, odd headers."""

import json
import warnings
from pathlib import Path

import pandas
import pytest

from topiarist import load_data
from topiarist.data import Data, Preprocessing
from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.load import find_source
from topiarist.data.source import Source
from topiarist.errors import DataError, TopiaristWarning

ROWS = [
    (1, 1234.5, "2024-01-31", 0.05, "yes", "Köln", "a"),
    (2, 99.25, "2023-12-01", 0.125, "no", "Bonn", "b"),
    (3, None, "2022-05-17", 0.5, "yes", "Köln", "a"),
    (4, 2000.0, "2021-02-28", 0.75, "no", None, "b"),
]
HEADER = ["id", "price", "day", "share", "paid", "city", "y"]


def written(locale: str) -> bytes:
    """Return the table as a spreadsheet writes it: in the United States, in Germany, in France."""
    lines: list[str] = []
    for _, price, day, share, paid, city, label in ROWS * 6:
        year, month, date = day.split("-")
        american = "" if price is None else f"{price:,.2f}"
        swapped = american.replace(",", "T").replace(".", ",")
        row = {
            "us": (f'"${american}"' if american else "", f"{int(month)}/{int(date)}/{year}", f"{100 * share:g}%", paid),
            "de": (f"{swapped.replace('T', '.')} €" if swapped else "-", f"{date}.{month}.{year}",
                   f"{100 * share:g} %".replace(".", ","), {"yes": "WAHR", "no": "FALSCH"}[paid]),
            "fr": (swapped.replace("T", "\u00a0"), f"{date}/{month}/{year}", f"{100 * share:g} %".replace(".", ","),
                   {"yes": "oui", "no": "non"}[paid]),
        }[locale]  # fmt: skip
        lines.append(",;;"[["us", "de", "fr"].index(locale)].join([str(len(lines) + 1), *row, city or "", label]))
    text = "\r\n".join([(",", ";", ";")[["us", "de", "fr"].index(locale)].join(HEADER), *lines])
    return text.encode({"us": "utf-8-sig", "de": "cp1252", "fr": "utf-16"}[locale])


def source(tmp_path: Path, content: bytes | str, **how: object) -> Source:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return find_source(path, **{"target": "y", **how})  # type: ignore[arg-type]


def prepared(tmp_path: Path, content: bytes | str, **how: object) -> Data:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)
        return load_data(path, target="y", **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("locale", ["us", "de", "fr"])
def test_a_spreadsheet_means_the_same_in_every_locale(tmp_path: Path, locale: str) -> None:
    found = source(tmp_path, written(locale))
    frame = pandas.DataFrame(found.features)  # type: ignore[arg-type]  # a table
    assert list(frame.columns) == ["price", "day", "share", "paid", "city"]
    expected = pandas.DataFrame(ROWS, columns=HEADER).iloc[[0, 1, 2, 3] * 6].reset_index(drop=True)
    assert frame["price"].fillna(-1).tolist() == expected["price"].fillna(-1).tolist()
    assert frame["share"].tolist() == pytest.approx(expected["share"].tolist())
    assert frame["day"].dt.strftime("%Y-%m-%d").tolist() == expected["day"].tolist()
    assert frame["paid"].tolist() == [1.0, 0.0, 1.0, 0.0] * 6
    assert frame["city"].fillna("").tolist() == ["Köln", "Bonn", "Köln", ""] * 6
    assert [decision.read_as for decision in found.columns] == [
        *("left out", "number", "date", "number", "yes or no", "category", "target"),
    ]
    assert dict(found.columns[1].gaps) == ({"-": 6} if locale == "de" else {"": 6})


def test_a_first_line_may_name_the_separator(tmp_path: Path) -> None:
    for locale, encoding in (("de", "cp1252"), ("fr", "utf-16")):
        text = written(locale).decode(encoding)
        expected = source(tmp_path, written(locale))
        found = source(tmp_path, f"sep=;\r\n{text}".encode(encoding))
        assert found.notes == expected.notes and found.columns == expected.columns
        assert pandas.DataFrame(found.features).equals(pandas.DataFrame(expected.features))  # type: ignore[arg-type]


def test_what_a_german_table_says(tmp_path: Path) -> None:
    assert source(tmp_path, written("de")).notes == (
        "not UTF-8: read as Windows-1252; if letters are wrong, save it as UTF-8",
        "left out, its name and its numbers, all different, are those of an id: id",
        "taken as missing: price (6 '-')",
        "read as dates: day (day.month.year)",
        "price, share: decimal comma",
    )


def test_a_network_trained_in_one_locale_reads_single_rows_in_it(tmp_path: Path) -> None:
    data = prepared(tmp_path, written("de"))
    assert data.preprocessing is not None and data.source is not None
    again = Preprocessing.from_json(json.loads(json.dumps(data.preprocessing.to_json())))
    assert again == data.preprocessing and again.ignored == ("id", "y")
    expected = again(data.source.features)
    whole = pandas.DataFrame(source(tmp_path, written("de"), labelled=False).features)  # type: ignore[arg-type]
    assert again(whole[whole.columns[::-1]]).equal(expected)
    for row in range(4):
        assert again(whole.iloc[[row]]).equal(expected[[row]])
    assert again.unknown_columns([*whole.columns, "more"]) == ["more"]


def test_every_fold_has_one_shape(tmp_path: Path) -> None:
    data = prepared(tmp_path, written("us"))
    assert {fold.input_shape for fold in data.folds(3)} == {data.input_shape}


def test_a_class_with_one_row_is_put_aside_by_name(tmp_path: Path) -> None:
    rows = "".join(f"{number % 7},{'uv'[number % 2]}\n" for number in range(20))
    found = source(tmp_path, f"a,y\n{rows}3,lone\n4,alone\n")
    assert found.labels is not None and set(found.labels.tolist()) == {"u", "v"} and len(found) == 20
    assert found.notes == ("put aside, 2 class(es) with one row each: 'alone', 'lone'",)
    few = source(tmp_path, "a,y\n1,u\n2,v\n2,v\n")  # fewer than two classes would be left
    assert len(few) == 3 and few.notes == ()


def test_a_label_may_be_a_dash_and_a_question_mark_is_none(tmp_path: Path) -> None:
    found = source(tmp_path, "a,y\n1,+\n2,-\n2,+\n3,-\n4,?\n")
    assert found.labels is not None and found.labels.tolist() == ["+", "-", "+", "-"]
    assert found.notes == ("1 row(s) without a label in y left out",)


def test_blanks_around_labels_and_groups_are_no_part_of_them(tmp_path: Path) -> None:
    labels = ["yes ", " yes", "no", "no  ", '"no\t"', "yes", " NA ", "  ", "Yes", "Yes "]
    rows = "".join(f"{number},{'gh'[number % 2]}{' ' * (number % 3)},{label}\n" for number, label in enumerate(labels))
    found = source(tmp_path, f"a,g,y\n{rows}", group="g")
    assert found.labels is not None and found.labels.tolist() == [
        *("yes", "yes", "no", "no", "no", "yes", "Yes", "Yes")
    ]
    assert found.groups is not None and set(found.groups.tolist()) == {"g", "h"}
    assert found.notes[:2] == (
        "2 row(s) without a label in y left out",
        "y: letter case alone tells 2 texts apart, such as 'yes' and 'Yes'; write them alike if they are the same",
    )
    assert {column.name: column.distinct for column in found.columns}["y"] == 3


def test_a_table_without_a_header_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--target y is not a column.*some of these are numbers: the first line must"):
        source(tmp_path, "5.1,red,u\n4.9,blue,v\n")


def test_choices_go_with_every_reader(tmp_path: Path) -> None:
    table = "a,b,c,y\n" + "".join(f"{number},{number % 3},x{number % 4},{number % 2}\n" for number in range(40))
    choices = ColumnChoices(number=("a",), category=("b",), drop=("c",))
    found = source(tmp_path, table, columns=choices)
    assert [decision.read_as for decision in found.columns] == ["number", "category", "left out", "target"]
    assert prepared(tmp_path, table, columns=choices).input_shape == (4,)
    with pytest.raises(DataError, match="y is the column of --target, and no feature to choose a reading for"):
        source(tmp_path, table, columns=ColumnChoices(drop=("y",)))
    with pytest.raises(DataError, match="iris has no columns to choose from: leave out --drop a"):
        find_source("iris", columns=ColumnChoices(drop=("a",)))


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ('"a ";"b"\n"1,5";"x;z"\n"2,5";"w"\n"2,5";"w"\n', {"a": [1.5, 2.5, 2.5], "b": ["x;z", "w", "w"]}),
        ("a\tb\n1,234\tx\n5\tw\n5\tw\n", {"a": [1234, 5, 5], "b": ["x", "w", "w"]}),
        ("a|b\n1|x\n5|w\n5|w\n", {"a": [1, 5, 5], "b": ["x", "w", "w"]}),
        ('a,b\n"1,234.5",x\n5,"w, w"\n5,"w, w"\n', {"a": [1234.5, 5, 5], "b": ["x", "w, w", "w, w"]}),
        ("\ufeffa,b,\n1,x,\n5,w,\n5,w,\n", {"a": [1, 5, 5], "b": ["x", "w", "w"]}),
    ],
)
def test_separators_quotes_and_marks(tmp_path: Path, content: str, columns: dict[str, list[object]]) -> None:
    delimiter = next(mark for mark in ";\t|," if mark in content)
    lines = [line + delimiter + label for line, label in zip(content.splitlines(), ["y", "u", "v", "u"], strict=True)]
    found = source(tmp_path, "\n".join(lines))
    assert pandas.DataFrame(found.features).to_dict("list") == columns  # type: ignore[arg-type]  # a table


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="columns must have distinct names, found more than once: a"):
        source(tmp_path, "a,b,a,y\n1,2,3,u\n4,5,6,v\n")


def test_workbooks_and_parquet_are_read_like_text(tmp_path: Path) -> None:
    typed = pandas.DataFrame(ROWS * 6, columns=HEADER)
    typed["day"] = pandas.to_datetime(typed["day"])
    typed["id"] = range(24)
    mixed = typed.assign(price=typed["price"].astype(object).fillna("?"))
    typed.to_parquet(tmp_path / "t.parquet")
    mixed.to_excel(tmp_path / "t.xlsx", index=False)
    first, second = (find_source(tmp_path / name, target="y") for name in ("t.parquet", "t.xlsx"))
    pandas.testing.assert_frame_equal(first.features, second.features)  # type: ignore[arg-type]  # tables
    assert [dict(one.columns[1].gaps) for one in (first, second)] == [{"": 6}, {"?": 6}]
