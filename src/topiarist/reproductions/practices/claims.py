"""What the paper recommends, and whether the study supports it.

After Huang, Training Deep Neural Networks (2024), in our words. The paper names Fashion-MNIST and CIFAR-10 and gives no
figures, so that there is nothing to compare ours with but the direction of a difference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from topiarist.reproductions.practices.findings import ALPHA, NO_VERDICT, Finding, in_words
from topiarist.reproductions.practices.study import DEEP

PAPER_DATA = {"fashionmnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
Verdict = Literal["supported", "not supported", "not testable"]
RULE = (
    "Supported: at least one of the alternatives named (each of them, where the paper ranks them) is better than the"
    f" baseline, or worse where the paper says so, with p ≤ {ALPHA:g} after Holm's correction, and none is the"
    " opposite. Not supported: this was not shown. Not testable: so few runs cannot reach that p, or both sides are no"
    " better than chance, or it was not run."
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper says of some alternatives of a practice, against its first: that they are better, or worse.

    Where it ranks them, `each` of them must be so; where it leaves the choice, one is enough.
    """

    practice: str
    recommends: str
    alternatives: tuple[str, ...]
    says: Literal["better", "worse"] = "better"
    each: bool = False


def claims() -> list[Claim]:
    """Return the paper's recommendations in its order."""
    found = [
        Claim(
            practice="Learning-rate schedules",
            recommends="Change the learning rate by a schedule: power, exponential or performance.",
            alternatives=("power", "exponential", "performance"),
        )
    ]
    for depth in (2, DEEP):
        name = f"Activations with {depth} hidden layers"
        first = "SELU, then ELU, then leaky ReLU come before ReLU, unless run time has priority."
        found.append(
            Claim(practice=name, recommends=first, alternatives=("selu", "elu", "leaky_relu"), each=True),
        )
        for last in ("tanh", "sigmoid"):
            said = f"{last.capitalize()} comes after ReLU."
            found.append(Claim(practice=name, recommends=said, alternatives=(last,), says="worse"))
    return [
        *found,
        Claim(
            practice="Batch normalisation",
            recommends="Batch norm, before or after the activation, against vanishing gradients.",
            alternatives=("before the activation", "after the activation"),
        ),
        Claim(
            practice="Gradient clipping",
            recommends="Clip gradients by value or by norm against exploding gradients, and try both.",
            alternatives=("by value, 1", "by norm over all, 1", "by norm of each tensor, 1"),
        ),
        Claim(
            practice="Early stopping",
            recommends="Stop when a validation metric, loss or accuracy, no longer improves.",
            alternatives=("patience 5", "patience 20", "patience 20, by accuracy"),
        ),
        Claim(
            practice="Dropout",
            recommends="Drop 10 to 50 % of the units of the last one to three hidden layers.",
            alternatives=("0.1", "0.2", "0.3", "0.5"),
        ),
        Claim(
            practice="Monte-Carlo dropout",
            recommends="Average many predictions with dropout switched on (named as further reading).",
            alternatives=("mean of 10", "mean of 100"),
        ),
        Claim(
            practice="Transfer",
            recommends="Reuse the lower layers of a trained network: frozen first, then unfrozen at a lower rate.",
            alternatives=("base frozen, new head", "new head, then all"),
        ),
    ]


def judged_claims(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return one record for each claim and metric: what the paper recommends, what was measured, the verdict."""
    by_name = {finding.practice.name: finding for finding in findings}
    judged = []
    for claim in claims():
        finding = by_name.get(claim.practice)
        for metric in ("accuracy",) if finding is None else finding.practice.metrics:
            rows = [] if finding is None else finding.by(metric)
            judged.append(judge(claim, metric, [row for row in rows if row["alternative"] in claim.alternatives]))
    return judged


def judge(claim: Claim, metric: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the record of a claim by one metric."""
    names = ("alternative", "difference", "low", "high", "p", "verdict")
    told = [f"{row['alternative']}: {in_words(row, interval=True)}" for row in rows if row["difference"] is not None]
    return {
        "practice": claim.practice,
        "recommends": claim.recommends,
        "says": claim.says,
        "metric": metric,
        "measured": "; ".join(told) or "not run: the data have too few classes, or no run ended",
        "differences": [{name: row[name] for name in names} for row in rows],
        "verdict": verdict_of(claim, rows),
    }


def verdict_of(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """Return the verdict by the rule that the page states."""
    wanted, other = ("helped", "hurt") if claim.says == "better" else ("hurt", "helped")
    verdicts = [row["verdict"] for row in rows]
    if all(verdict in NO_VERDICT for verdict in verdicts):  # also where there is none
        return "not testable"
    shown = all(verdict == wanted for verdict in verdicts) if claim.each else wanted in verdicts
    return "supported" if shown and other not in verdicts else "not supported"


def paper_data(name: str) -> str | None:
    """Return which of the data that the paper names these are, by their name; None where they are others."""
    letters = "".join(letter for letter in name.lower() if letter.isalnum())
    return PAPER_DATA.get(letters)


def data_note(name: str) -> str:
    """Say whether the data are those that the paper names."""
    known = paper_data(name)
    if known is not None:
        return f"These figures are from {known}, which the paper names; it gives no figures of its own."
    named = " and ".join(PAPER_DATA.values())
    return f"These figures are from {name}, not from the data that the paper names ({named}); it gives no figures."
