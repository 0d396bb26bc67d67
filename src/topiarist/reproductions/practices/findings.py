"""What the study of the practices found: each alternative against the first of its practice, and each piece of advice.

After Huang, Training Deep Neural Networks (2024). The paper names Fashion-MNIST and CIFAR-10 and gives no figures, so
that there is nothing to compare ours with but the direction of a difference. A verdict is given only where there can be
one: not where both sides do no better than chance, and not where so few runs cannot reach significance, whatever the
difference.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas

from topiarist.report.cells import signed
from topiarist.reproductions.claims import NOT_SUPPORTED, NOT_TESTABLE, SUPPORTED, Claim, ClaimVerdict
from topiarist.reproductions.practices.study import Practice, PracticeAdvice, PracticesPlan
from topiarist.statistics.ranks import smallest_p_rank_sum, smallest_p_signed_rank
from topiarist.study.results import SMALLER_IS_BETTER, Results

ALPHA = 0.05  # of the tests, after Holm's correction
WORDS = {"accuracy": "test accuracy", "log_loss": "test log loss"}
AT_CHANCE, TOO_FEW, UNMEASURED, UNSHOWN = "both at chance", "too few runs", "not measured", "no difference shown"
NO_VERDICT = (AT_CHANCE, TOO_FEW, UNMEASURED)
COLUMNS = (
    *("practice", "alternative", "metric", "accuracy", "sd", "log_loss", "at_chance"),
    *("difference", "low", "high", "p", "least_p", "verdict"),
)
_TESTED = ["configuration", "difference", "low", "high", "holm_p", "test", "n", "notes"]
PAPER_DATA = {"fashionmnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
RULE = (
    "Supported: at least one of the alternatives named (each of them, where the paper ranks them) is better than the"
    f" baseline, or worse where the paper says so, with p ≤ {ALPHA:g} after Holm's correction, and none is the"
    " opposite. Not supported: this was not shown. Not testable: so few runs cannot reach that p, or both sides are no"
    " better than chance, or it was not run."
)


@dataclass(frozen=True)
class PracticesFindings:
    """A table with one row per practice, metric and alternative (`COLUMNS`), baselines first; notes by practice."""

    table: pandas.DataFrame
    notes: Mapping[str, Sequence[str]]

    def on(self, practice: Practice, metric: str) -> pandas.DataFrame:
        """Return the rows of a practice by one metric."""
        return self.table[(self.table["practice"] == practice.name) & (self.table["metric"] == metric)]


def practices_findings(plan: PracticesPlan, results: Results) -> PracticesFindings:
    """Compare the alternatives of each practice with its first, by each of its metrics."""
    accuracy, loss = (results.summary(metric).set_index("configuration") for metric in WORDS)
    means = accuracy[["mean", "sd"]].assign(log_loss=loss["mean"]).rename(columns={"mean": "accuracy"})
    tables, notes = [], {}
    for practice in plan.practices:
        if practice.alternatives:
            table, notes[practice.name] = _compare(practice, plan, results, means)
            tables.append(table)
    return PracticesFindings(pandas.concat(tables)[[*COLUMNS]], notes)


def _compare(
    practice: Practice, plan: PracticesPlan, results: Results, means: pandas.DataFrame
) -> tuple[pandas.DataFrame, list[str]]:
    labels = [plan.labels[practice.name, name] for name in practice.alternatives]
    chance = plan.chances[practice.name]
    named = pandas.DataFrame({"practice": practice.name, "alternative": [*practice.alternatives]}, index=labels)
    trained = named.join(means, how="inner")
    trained["at_chance"] = trained["accuracy"] <= chance.highest
    tables, notes = [], list[str]()
    for metric in practice.metrics:
        compared = results.compare(labels[0], metric, among=labels)
        tests = compared.reindex(columns=_TESTED)  # there are no columns where no alternative could be trained
        least = least_p(tests)
        figures = tests.set_index("configuration")[["difference", "low", "high", "holm_p"]]
        table = trained.assign(metric=metric).join(figures.rename(columns={"holm_p": "p"}))
        table["least_p"] = table["p"].mask(table["p"].notna(), least)
        at_chance = table["at_chance"] & table["at_chance"].iloc[0]
        cases = zip(table["difference"], table["p"], at_chance, strict=True)
        table["verdict"] = [verdict_on(*case, metric=metric, least=least) for case in cases]
        table.loc[labels[0], "verdict"] = "baseline"
        tables.append(table)
        notes += [note for text in tests["notes"] for note in text.split("; ") if note]
        notes += reach_notes(tests, least, metric)
    names = ", ".join(trained.loc[trained["at_chance"], "alternative"])
    if names:
        notes.append(
            f"No better than chance: {names}. Always naming the largest class is right for {chance.share:.1%} of"
            f" {chance.samples:,} test samples; up to {chance.highest:.1%} is within the 95 % binomial interval of"
            " that. Two that are both at chance get no verdict."
        )
    return pandas.concat(tables), list(dict.fromkeys(notes))


def least_p(tests: pandas.DataFrame) -> float:
    """Return the least p that any of these comparisons can have after Holm's correction, whatever the difference.

    Holm multiplies the smallest p by the number of comparisons. 5 and 5 runs have 252 rank sums, so that the exact test
    gives 2/252 or more, and 0.056 or more among 7. The t-test has no least p.
    """
    smallest = {
        "Wilcoxon rank-sum": lambda n: smallest_p_rank_sum(n, n),
        "Wilcoxon signed-rank": smallest_p_signed_rank,
    }
    found = [
        smallest[test](int(n)) if test in smallest else 0.0 for test, n in zip(tests["test"], tests["n"], strict=True)
    ]
    return min(1.0, min(found, default=0.0) * len(found))


def verdict_on(difference: float, p: float, at_chance: bool, *, metric: str, least: float) -> str:
    """Return the verdict on one comparison with the baseline, from its difference and its p by Holm."""
    if pandas.isna(difference):
        return UNMEASURED
    if at_chance or least > ALPHA:
        return AT_CHANCE if at_chance else TOO_FEW
    if p > ALPHA:
        return UNSHOWN
    better = difference < 0 if metric in SMALLER_IS_BETTER else difference > 0
    return "helped" if better else "hurt"


def reach_notes(tests: pandas.DataFrame, least: float, metric: str) -> list[str]:
    """Return a sentence that the runs cannot show a difference, where they cannot."""
    if least <= ALPHA:
        return []
    return [
        f"{tests['n'].max()} runs of each cannot show a difference in {WORDS[metric]}: the least p that the exact test"
        f" can give in {len(tests)} comparisons is {least:.3g} after Holm's correction, above {ALPHA:g}. More runs are"
        " needed."
    ]


def difference_in_words(row: "pandas.Series[Any]", *, interval: bool = False) -> str:
    """Return the difference of a row with its interval, or with its unit: points of accuracy, or log loss."""
    accuracy = row["metric"] == "accuracy"
    scale, places = (100, 2) if accuracy else (1, 4)
    value, low, high = (signed(scale * row[name], places).replace("-", "−") for name in ("difference", "low", "high"))
    unit = "points of test accuracy" if accuracy else "in test log loss"
    return f"{value} [{low}, {high}]" if interval else f"{value} {unit}"


@dataclass(frozen=True, kw_only=True)
class PracticeClaim(Claim):
    """A piece of advice judged by one metric, with the differences that decide: figures and verdict per alternative."""

    practice: str
    recommends: str
    says: str
    metric: str
    differences: list[dict[Hashable, object]]


def judge_practices(practices: Sequence[Practice], findings: PracticesFindings) -> list[PracticeClaim]:
    """Judge every piece of advice by each metric of its practice; of one that was not run there are no findings."""
    return [
        judge_advice(practice.name, advice, metric, rows[rows["alternative"].isin(advice.alternatives)])
        for practice in practices
        for advice in practice.advice
        for metric in practice.metrics
        for rows in [findings.on(practice, metric)]
    ]


def judge_advice(practice: str, advice: PracticeAdvice, metric: str, rows: pandas.DataFrame) -> PracticeClaim:
    """Judge one piece of advice by one metric, from the findings on its alternatives."""
    tested = rows[rows["difference"].notna()]
    told = [f"{row['alternative']}: {difference_in_words(row, interval=True)}" for _, row in tested.iterrows()]
    unit = "points of accuracy" if metric == "accuracy" else "log loss, less is better"
    which = "each " if advice.each else "at least one " if len(advice.alternatives) > 1 else ""
    figures = rows[["alternative", "difference", "low", "high", "p", "verdict"]].astype(object)
    return PracticeClaim(
        claim=f"{practice}: {advice.recommends}",
        published=f"{which}{advice.says}: {'; '.join(advice.alternatives)}",
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
