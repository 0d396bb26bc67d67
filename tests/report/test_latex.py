import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist.report import format_table
from topiarist.report.tables import LATEX_ESCAPES
from topiarist.report.wording import clean

HOSTILE = '\\{}$&#%_^~<>|"[]*-'
# What may stand in an escaped text: commands with an empty group, escaped signs, groups of one sign, harmless signs.
SAFE = re.compile(r"(\\text[a-z]+\{\}|\$\\infty\$|\\[{}$&#%_]|\{[][*]\}|-\{\}|[^\\{}$&#%_^~<>|\"\[\]*-])*")


def escaped(text: str) -> str:
    return clean(text).translate(LATEX_ESCAPES)


def lines(frame: pd.DataFrame, caption: str | None = None) -> list[str]:
    return format_table(frame, "latex", caption=caption).decode().splitlines()


@pytest.mark.slow
@given(st.text(st.one_of(st.sampled_from(HOSTILE), st.characters())))
def test_no_special_character_is_left(text: str) -> None:
    assert SAFE.fullmatch(escaped(text))


@pytest.mark.parametrize("sign", HOSTILE)
def test_each_special_character_is_escaped(sign: str) -> None:
    assert escaped(f"a{sign}b") not in (f"a{sign}b", "ab")


def test_a_whole_table() -> None:
    frame = pd.DataFrame({"name_1": ["a & b", None], "score": [-0.25, float("nan")], "parameters": [12_345, 7]})
    assert lines(frame, "50 % cut") == [
        r"\begin{table}",
        r"\centering",
        r"\caption{50 \% cut}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name\_1 & score & parameters \\",
        r"\midrule",
        r"a \& b & $-$0.25 & 12,345 \\",
        r"-- & -- & 7 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


@pytest.mark.slow
@given(st.text(), st.lists(st.tuples(st.text(), st.floats()), max_size=4), st.text())
def test_the_structure_is_balanced_whatever_the_names(column: str, rows: list[tuple[str, float]], caption: str) -> None:
    frame = pd.DataFrame(rows, columns=[f"n{column}", "x"])
    written = lines(frame, caption)
    text = "\n".join(written)
    begun, ended = re.findall(r"\\begin\{(\w+)\}", text), re.findall(r"\\end\{(\w+)\}", text)
    assert begun == ended[::-1] == ["table", "tabular"]
    bare = re.sub(r"\\[\\{}$&#%_]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    body = [line for line in written if line.endswith(r"\\")]
    assert len(body) == 1 + len(rows)
    assert all(len(re.findall(r"(?<!\\)&", line)) == 1 for line in body)
