"""The settings that only the published Surgeon has; the values unless given are those of the paper's appendix."""

from typing import Literal

from pydantic import Field

from topiarist.settings import Settings
from topiarist.surgery.advice.spectra import ABSOLUTE_FLOOR, RELATIVE_FLOOR

Memory = Literal["none", "cycle", "lineage"]


class PaperSettings(Settings):
    """What can be set of the paper's Algorithm 1.

    `initial` is how many epochs come before the first decision (the interval unless given). `branches` are kept side
    by side; others are drawn up to `redraws` times; an edit recuperates for `batches`, or ten times as many. A singular
    value is negligible below `relative_floor` (ε₁) of the largest or below `absolute_floor` (ε₂). The `top` ranking
    edits are tried in the place of the best of each kind. `memory`: with "cycle" new branches stay only if they reach
    the accuracy of before; with "none" they always stay and nothing is drawn again; with "lineage" it is as with
    "cycle", and no edit is tried again that an earlier decision on the way to a branch tried.
    """

    initial: int | None = Field(default=None, ge=1)
    branches: int = Field(default=2, ge=1)
    redraws: int = Field(default=2, ge=0)
    batches: int = Field(default=25, ge=1)
    relative_floor: float = Field(default=RELATIVE_FLOOR, ge=0, le=1)
    absolute_floor: float = Field(default=ABSOLUTE_FLOOR, ge=0)
    top: int | None = Field(default=None, ge=1)
    memory: Memory = "cycle"

    def check_paper_only(self, *, published: bool) -> None:
        """Raise ValueError for a setting of the paper's algorithm without that algorithm, or one without effect."""
        given = [name for name in PaperSettings.model_fields if name in self.model_fields_set]
        if given and not published:
            raise ValueError(f"{given[0]} belongs to the paper's algorithm: it has no effect without published")
        if self.memory == "none" and "redraws" in given and self.redraws:
            raise ValueError("redraws has no effect with memory 'none', which keeps new branches whatever they reach")
