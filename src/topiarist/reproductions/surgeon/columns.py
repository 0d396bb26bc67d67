"""The tables of the Surgeon's page: which columns each shows, and how numbers are written."""

import math

import pandas

from topiarist.reproductions.surgeon.study import KINDS, PAPER_REPEATS, PAPER_SEEDS
from topiarist.reproductions.surgeon.tables import AT_CHANCE

Frame = pandas.DataFrame
HEADINGS = {"sgd": "SGD", "adam": "Adam", "surgeon": "Surgeon", "final": "final topology"}
PAPER_RUNS = len(PAPER_SEEDS) * PAPER_REPEATS


def accuracy_columns(rows: Frame) -> Frame:
    """Return how good all four are on the test part; where a run ended at chance, that is said in place of a mean."""
    shown = first_columns(rows)
    for kind in KINDS:
        means, dead = with_spread(rows, f"{kind}, test", 3), rows[f"{kind}, at chance"]
        shown[HEADINGS[kind]] = [
            f"at chance in {count} of {runs}" if count else mean
            for mean, count, runs in zip(means, dead, rows["runs"], strict=True)
        ]
    return shown


def gain_columns(rows: Frame) -> Frame:
    """Return what the Surgeon gains on the better plain training, and on that of its final topology."""
    shown = first_columns(rows)
    shown["baseline"] = [HEADINGS[kind] for kind in rows["baseline"]]
    shown["gain on it, points"] = with_interval(rows, "gain, test", rows["at chance"])
    shown["gain on final topology, points"] = with_interval(rows, "gain on final, test", rows["at chance on final"])
    return shown


def paper_columns(rows: Frame) -> Frame:
    """Return Table 3 with its four lines as columns, the paper's row below ours; validation part, as the paper."""
    shown = first_columns(rows)
    shown["runs"] = shown["runs"].astype(str)
    shown["baseline"] = baseline_cells(rows)
    shown["Surgeon"] = with_spread(rows, "surgeon, validation", 3)
    shown["relative gain, %"] = [
        AT_CHANCE if dead else signed(value, 1)
        for value, dead in zip(rows["relative gain, validation, %"].astype(float), rows["at chance"], strict=True)
    ]
    shown["parameters, %"] = with_spread(rows, "change, %", 1, sign="+")
    known = rows[rows["paper, baseline"].notna()].drop_duplicates("topology")
    return pandas.concat([shown, rows_of_the_paper(known)]).sort_index(kind="stable")


def rows_of_the_paper(rows: Frame) -> Frame:
    """Return the paper's rows in the same columns, each to stand below ours of the same topology."""
    shown = Frame({"topology": rows["topology"], "setting": "paper", "runs": str(PAPER_RUNS)})
    shown["baseline"] = with_spread(rows, "paper, baseline", 2)
    shown["Surgeon"] = with_spread(rows, "paper, surgeon", 2)
    shown["relative gain, %"] = [signed(value, 2) for value in rows["paper, relative gain, %"].astype(float)]
    shown["parameters, %"] = with_spread(rows, "paper, change, %", 1, sign="+")
    return shown


def baseline_cells(rows: Frame) -> list[str]:
    """Write the accuracy of the better plain training with its optimizer."""
    found = []
    for number, kind in enumerate(rows["baseline"]):
        (text,) = with_spread(rows.iloc[[number]], f"{kind}, validation", 3)
        found.append(f"{text} ({kind.upper() if kind == 'sgd' else kind.title()})")
    return found


def size_columns(rows: Frame) -> Frame:
    """Return how large the networks are."""
    shown = first_columns(rows)
    shown["before"], shown["after"] = rows["parameters before"], with_spread(rows, "parameters after", 0)
    shown["change, %"] = with_spread(rows, "change, %", 1, sign="+")
    return shown


def cost_columns(rows: Frame) -> Frame:
    """Return what the networks took: work that no processor changes, and seconds."""
    shown = first_columns(rows)
    for kind in KINDS:
        shown[HEADINGS[kind]] = rows[f"{kind}, sample MACs"].astype(float) / 1e9
    shown["Surgeon / baseline"] = times(rows, "work ratio")
    shown["Surgeon / final"] = times(rows, "work ratio to final")
    return shown


def time_columns(rows: Frame) -> Frame:
    """Return the seconds."""
    shown = first_columns(rows)
    for kind in KINDS:
        shown[HEADINGS[kind]] = rows[f"{kind}, s"].astype(float)
    shown["Surgeon / baseline"] = times(rows, "time ratio")
    shown["Surgeon / final"] = times(rows, "time ratio to final")
    return shown


def first_columns(rows: Frame) -> Frame:
    """Return what tells the rows of a table apart."""
    return rows[["topology", "setting", "runs"]].copy()


def times(rows: Frame, name: str) -> list[str | None]:
    """Write ratios."""
    return [None if math.isnan(value) else f"{value:.2f} ×" for value in rows[name].astype(float)]


def signed(value: float, places: int) -> str | None:
    """Write a number with its sign, None where it is not known."""
    return None if math.isnan(value) else f"{value:+.{places}f}".replace("-", "−")


def with_interval(rows: Frame, name: str, at_chance: "pandas.Series[int]") -> list[str | None]:
    """Write a difference with its interval; where what it is a difference from is at chance, say so."""
    written: list[str | None] = []
    columns = (rows[f"{name}{end}"].astype(float) for end in ("", ", low", ", high"))
    for mean, low, high, dead, runs in zip(*columns, at_chance, rows["runs"], strict=True):
        if dead:
            written.append(f"{AT_CHANCE} ({dead} of {runs} runs)")
        elif math.isnan(low):
            written.append(signed(mean, 1))
        else:
            written.append(f"{signed(mean, 1)} [{signed(low, 1)}, {signed(high, 1)}]")
    return written


def with_spread(rows: Frame, name: str, places: int, *, sign: str = "") -> list[str | None]:
    """Write a column with its spread, where there is one; without spaces, at which lines would break."""
    written: list[str | None] = []
    for mean, sd in zip(rows[name].astype(float), rows[f"{name}, sd"].astype(float), strict=True):
        text = None if math.isnan(mean) else f"{mean:{sign},.{places}f}".replace("-", "−")
        written.append(text if text is None or math.isnan(sd) else f"{text}±{sd:,.{places}f}")
    return written
