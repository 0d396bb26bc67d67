"""The readings of the paper of the faces side by side: length of training × scaling, and which one matches best."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas

from topiarist.reproductions.claims import NOT_REPRODUCED, REPRODUCED, verdict_counts
from topiarist.reproductions.faces.claims import FacesClaim, FacesJudge, variant_claims
from topiarist.reproductions.faces.study import READINGS, FacesReading

_TICKS = {REPRODUCED: " ✓", NOT_REPRODUCED: " ✗"}


@dataclass(frozen=True)
class ReadingMatch:
    """The claims on the four variants in one reading."""

    reading: FacesReading
    claims: tuple[FacesClaim, ...]

    @property
    def reproduced(self) -> int:
        """How many claims came out."""
        return verdict_counts(self.claims)[REPRODUCED]

    @property
    def distance(self) -> float:
        """The mean distance from the paper's numbers: what decides between equal counts."""
        return fmean(claim.distance for claim in self.claims)


def match_readings(cells: pandas.DataFrame, judge: FacesJudge) -> list[ReadingMatch]:
    """Judge every reading by the claims on the four variants."""
    by_reading = {
        reading: (cells["length"] == reading.length) & (cells["scaling"] == reading.scaling) for reading in READINGS
    }
    return [ReadingMatch(reading, tuple(variant_claims(cells[some], judge))) for reading, some in by_reading.items()]


def best_match(matches: Sequence[ReadingMatch]) -> ReadingMatch:
    """Return the reading with most claims reproduced; of equals, the nearest."""
    return max(matches, key=lambda match: (match.reproduced, -match.distance))


def side_by_side(matches: Sequence[ReadingMatch], *, testable: bool) -> pandas.DataFrame:
    """Return one row per claim and one column per reading; a tick where it is reproduced on the paper's data."""
    first = matches[0].claims
    columns = {"claim": [claim.claim for claim in first]}
    columns |= {"paper": [claim.published for claim in first]} if testable else {}
    for match in matches:
        columns[match.reading.name] = [claim.ours + _TICKS.get(claim.verdict, "") for claim in match.claims]
    return pandas.DataFrame(columns).replace(r"^-", "−", regex=True)


def nearest_readings(matches: Sequence[ReadingMatch]) -> pandas.DataFrame:
    """Return for each claim the reading that is nearest, and those that reproduce it."""
    rows = []
    for claims in zip(*(match.claims for match in matches), strict=True):
        named = dict(zip((match.reading.name for match in matches), claims, strict=True))
        ticked = [name for name, claim in named.items() if claim.verdict == REPRODUCED]
        nearest = min(named, key=lambda name: named[name].distance)
        rows.append({"claim": claims[0].claim, "nearest": nearest, "reproduced by": "; ".join(ticked) or "none"})
    return pandas.DataFrame(rows)
