"""The readings of the paper of the faces side by side: length of training × scaling, and which one matches best."""

from dataclasses import dataclass

import pandas

from topiarist.reproductions.faces.claims import Verdict, counted
from topiarist.reproductions.faces.study import READINGS, Reading
from topiarist.reproductions.faces.verdicts import variant_verdicts

Frame = pandas.DataFrame


@dataclass(frozen=True)
class Match:
    """The verdicts on the four variants in one reading."""

    reading: Reading
    verdicts: tuple[Verdict, ...]

    @property
    def reproduced(self) -> int:
        """How many claims came out."""
        return counted(self.verdicts)["reproduced"]

    @property
    def distance(self) -> float:
        """The mean distance from the paper's numbers, in tolerances with caps: what decides between equal counts."""
        return sum(distance(verdict) for verdict in self.verdicts) / len(self.verdicts)


def distance(verdict: Verdict) -> float:
    """Return how far our mean is from the paper's range, in units of tolerance + cap."""
    claim, mean = verdict.claim, verdict.ours.mean
    return max(claim.low - mean, mean - claim.high, 0.0) / (claim.tolerance + claim.cap)


def matches(cells: Frame, *, test_to_train: float, testable: bool) -> list[Match]:
    """Judge every reading by the claims on the four variants."""
    found = []
    for reading in READINGS:
        some = cells[(cells["length"] == reading.length) & (cells["scaling"] == reading.scaling)]
        found.append(Match(reading, tuple(variant_verdicts(some, test_to_train, testable))))
    return found


def best_of(found: list[Match]) -> Match:
    """Return the reading with most claims reproduced; of equals, the nearest."""
    return max(found, key=lambda match: (match.reproduced, -match.distance))


def side_by_side(found: list[Match], *, testable: bool) -> Frame:
    """Return a row per claim and a column per reading; a tick where it is reproduced on the paper's data."""
    rows = []
    for verdicts in zip(*(match.verdicts for match in found), strict=True):
        claim = verdicts[0].claim
        row = {"claim": claim.name}
        if testable:
            row["paper"] = claim.number.replace("-", "−")
        for match, verdict in zip(found, verdicts, strict=True):
            tick = {"reproduced": " ✓", "not reproduced": " ✗"}.get(verdict.answer, "")
            row[match.reading.name] = f"{verdict.ours.mean:.1f}{tick}".replace("-", "−")
        rows.append(row)
    return pandas.DataFrame(rows)


def best_per_claim(found: list[Match]) -> Frame:
    """Return for each claim the readings that reproduce it, and the nearest of all."""
    rows = []
    for verdicts in zip(*(match.verdicts for match in found), strict=True):
        claim = verdicts[0].claim
        named = dict(zip((match.reading.name for match in found), verdicts, strict=True))
        ticked = [name for name, verdict in named.items() if verdict.answer == "reproduced"]
        nearest = min(named, key=lambda name: distance(named[name]))
        rows.append(
            {
                "claim": claim.name,
                "nearest": nearest,
                "reproduced by": "; ".join(ticked) or "none",
            }
        )
    return pandas.DataFrame(rows)
