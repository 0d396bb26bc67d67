"""The result of a rightsizing, and the error where there is none."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from topiarist.data import Data
from topiarist.measurement import BudgetError
from topiarist.notebooks import html_table
from topiarist.rightsizing.choice import Status
from topiarist.rightsizing.listing import tested_rows
from topiarist.rightsizing.record import RightsizingRecord


class UnreachableError(BudgetError):
    """No network fits the budget and is good enough; `nearest` are those that come nearest, `record` has it all."""

    def __init__(self, record: RightsizingRecord) -> None:
        super().__init__(record.verdict.sentence)
        self.record = record
        self.nearest = tuple(f"{near.id}: {near.text}" for near in record.nearest)


@dataclass(frozen=True, kw_only=True)
class Rightsizing:
    """The result of a rightsizing.

    Attributes
    ----------
    model, baseline : nn.Module
        The network, and the baseline that it was made of.
    networks : mapping
        All networks that could be kept, by name.
    status : {"proven", "unproven", "unchanged", "no better than guessing"}
        "unproven": it was not shown that nothing is lost, nor that something is; "unchanged": the baseline stays;
        "no better than guessing": it stays, and was not shown to be better than the best constant answer.
    data : Data
    record : RightsizingRecord
        How it came about: everything that the report shows.
    linear_will_do : bool
        Whether `networks["linear"]`, without hidden units, is proven not to be worse either, and smaller than `model`.
    sentence : str
        The result in a sentence.
    """

    model: nn.Module
    baseline: nn.Module
    networks: Mapping[str, nn.Module]
    status: Status
    data: Data
    record: RightsizingRecord
    linear_will_do: bool = False

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        return self.record.verdict.sentence

    def _repr_html_(self) -> str:
        rows, why = tested_rows(self.record), self.record.verdict.why
        return html_table(rows, heading=self.sentence, notes=[*why, *self.record.notes])
