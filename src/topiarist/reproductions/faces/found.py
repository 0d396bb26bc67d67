"""Everything that the page of the faces shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas

from topiarist.reproductions.faces.claims import Verdict
from topiarist.reproductions.faces.readings import Match, best_of

Frame = pandas.DataFrame
Epochs = Mapping[str, Sequence[Sequence[float | None]]]


@dataclass(frozen=True, kw_only=True)
class Found:
    """Tidy tables by name, the long training by epochs, the verdicts, the readings, and what the data are."""

    tables: Mapping[str, Frame]
    cells: Mapping[str, Frame]
    losses: Epochs
    accuracies: Epochs
    verdicts: tuple[Verdict, ...]
    matches: tuple[Match, ...]
    data: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def testable(self) -> bool:
        """Whether the samples are the paper's, so that its numbers can be compared."""
        return bool(self.data["papers_data"])

    @property
    def matching(self) -> Match | None:
        """The reading that matches the paper best; None on other data."""
        return best_of(list(self.matches)) if self.testable else None
