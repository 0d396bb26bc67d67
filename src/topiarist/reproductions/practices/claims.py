"""What the paper recommends, and whether the study supports it.

After Huang, Training Deep Neural Networks (2024), in our words. The paper names Fashion-MNIST and CIFAR-10 and gives no
figures, so that there is nothing to compare ours with but the direction of a difference.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import pandas

from topiarist.reproductions.claims import NOT_SUPPORTED, NOT_TESTABLE, SUPPORTED, Claim, ClaimVerdict
from topiarist.reproductions.practices.findings import ALPHA, NO_VERDICT, difference_in_words
from topiarist.reproductions.practices.study import Practice, PracticeAdvice

PAPER_DATA = {"fashionmnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
RULE = (
    "Supported: at least one of the alternatives named (each of them, where the paper ranks them) is better than the"
    f" baseline, or worse where the paper says so, with p ≤ {ALPHA:g} after Holm's correction, and none is the"
    " opposite. Not supported: this was not shown. Not testable: so few runs cannot reach that p, or both sides are no"
    " better than chance, or it was not run."
)


@dataclass(frozen=True, kw_only=True)
class PracticeClaim(Claim):
    """A piece of advice judged by one metric, with the differences that decide: figures and verdict per alternative."""

    practice: str
    recommends: str
    says: str
    metric: str
    differences: list[dict[Hashable, object]]


def judge_practices(practices: Sequence[Practice], findings: pandas.DataFrame) -> list[PracticeClaim]:
    """Judge every piece of advice by each metric of its practice; of one that was not run there are no findings."""
    claims = []
    for practice in practices:
        for advice in practice.advice:
            for metric in practice.metrics if practice.alternatives else ("accuracy",):
                named = (findings["practice"] == practice.name) & findings["alternative"].isin(advice.alternatives)
                claims.append(
                    judge_advice(practice.name, advice, metric, findings[named & (findings["metric"] == metric)])
                )
    return claims


def judge_advice(practice: str, advice: PracticeAdvice, metric: str, rows: pandas.DataFrame) -> PracticeClaim:
    """Judge one piece of advice by one metric, from the findings on its alternatives."""
    tested = rows[rows["difference"].notna()]
    told = [f"{row['alternative']}: {difference_in_words(row, interval=True)}" for _, row in tested.iterrows()]
    unit = "points of accuracy" if metric == "accuracy" else "log loss, less is better"
    which = "each " if advice.each else "at least one " if len(advice.alternatives) > 1 else ""
    figures = rows[["alternative", "difference", "low", "high", "p", "verdict"]].astype(object)
    return PracticeClaim(
        claim=f"{practice}: {advice.recommends}",
        published=f"{', '.join(advice.alternatives)}: {which}{advice.says}",
        ours=f"{'; '.join(told)} ({unit})" if told else "not run: the data have too few classes, or no run ended",
        interval=None,
        verdict=_verdict(advice, rows["verdict"].tolist()),
        practice=practice,
        recommends=advice.recommends,
        says=advice.says,
        metric=metric,
        differences=figures.where(figures.notna(), None).to_dict("records"),
    )


def _verdict(advice: PracticeAdvice, verdicts: Sequence[str]) -> ClaimVerdict:
    wanted, other = ("helped", "hurt") if advice.says == "better" else ("hurt", "helped")
    if all(verdict in NO_VERDICT for verdict in verdicts):  # also where there is none
        return NOT_TESTABLE
    shown = all(verdict == wanted for verdict in verdicts) if advice.each else wanted in verdicts
    return SUPPORTED if shown and other not in verdicts else NOT_SUPPORTED


def paper_data(name: str) -> str | None:
    """Return which of the data that the paper names these are, by their name; None where they are others."""
    return PAPER_DATA.get("".join(letter for letter in name.lower() if letter.isalnum()))


def data_note(name: str) -> str:
    """Return a sentence on whether the data are those that the paper names."""
    known = paper_data(name)
    if known is not None:
        return f"These figures are from {known}, which the paper names; it gives no figures of its own."
    named = " and ".join(PAPER_DATA.values())
    return f"These figures are from {name}, not from the data that the paper names ({named}); it gives no figures."
