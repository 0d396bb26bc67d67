"""What was decided for each column of a table, in words and as the form that is saved with the network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from topiarist.data.columns.forms import CellForm

ReadAs = Literal["number", "yes or no", "category", "date", "left out", "target", "group", "weight"]


@dataclass(frozen=True, kw_only=True)
class ColumnDecision:
    """One column: what it is read as, how its gaps are written and how many there are, and remarks.

    `gaps` has a blank cell as "". `form` is None for columns that are no features. `why` is why a column is left out;
    `remarks` are what else the user should know, `details` what a table of decisions adds.
    """

    name: str
    read_as: ReadAs
    distinct: int = 0
    gaps: tuple[tuple[str, int], ...] = ()
    form: CellForm | None = None
    why: str = ""
    remarks: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """How many cells are gaps."""
        return sum(count for _, count in self.gaps)

    @property
    def shown_gaps(self) -> str:
        """The gaps in words: "12 blank, 3 '?'"."""
        return shown_gaps(dict(self.gaps))

    @property
    def said(self) -> list[str]:
        """All that is to be said of the column, beside what it is read as."""
        return [*([self.why] if self.why else []), *self.details, *self.remarks]


def notes_on(decisions: Sequence[ColumnDecision]) -> list[str]:
    """Return a line for each kind of thing that was decided on the user's behalf."""
    reasons: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.read_as == "left out":
            reasons.setdefault(decision.why, []).append(decision.name)
    notes = [f"left out, {reason}: {', '.join(names)}" for reason, names in reasons.items()]
    written = [decision for decision in decisions if decision.form and any(word for word, _ in decision.gaps)]
    if written:
        gaps = "; ".join(f"{decision.name} ({decision.shown_gaps})" for decision in written)
        notes.append(f"taken as missing: {gaps}")
    written_dates = [decision for decision in decisions if decision.read_as == "date" and decision.details]
    dates = [f"{decision.name} ({decision.details[0]})" for decision in written_dates]
    notes += [f"read as dates: {', '.join(dates)}"] if dates else []
    said: dict[str, list[str]] = {}
    for decision in decisions:
        for remark in decision.remarks:
            said.setdefault(remark, []).append(decision.name)
    return notes + [f"{', '.join(names)}: {remark}" for remark, names in said.items()]


def shown_gaps(gaps: Mapping[str, int]) -> str:
    """Return how many gaps are written how: "12 blank, 3 '?'"."""
    return ", ".join(f"{count:,} blank" if word == "" else f"{count:,} '{word}'" for word, count in gaps.items())


def forms_of(decisions: Sequence[ColumnDecision]) -> dict[str, CellForm]:
    """Return the form of each column that is a feature."""
    return {decision.name: decision.form for decision in decisions if decision.form is not None}
