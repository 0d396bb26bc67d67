"""The claims of the scenes paper beside what was found, each with a verdict.

Counts of parameters hang on no recording: they are tested on any data. That an ensemble is better than its members is
tested on any clips, and what pruning costs on any clips where networks are trained and pruned as in the paper. What
hangs on the recordings themselves (mixing, depth) is tested on recordings, and accuracies only on clips of the form of
the paper's, in its own setting.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pandas

from topiarist.reproductions.claims import (
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    decide_direction,
    decide_margin,
    difference,
    in_points,
    reach_of_mean,
)
from topiarist.reproductions.claims import Claim as Verdict
from topiarist.reproductions.claims import ClaimVerdict as Decided
from topiarist.reproductions.scenes import paper
from topiarist.reproductions.scenes.counts import (
    kernels_in,
    kilobytes,
    numbers_of,
    pruned_numbers_of,
    rounded_numbers_of,
)
from topiarist.reproductions.scenes.judging import Judged
from topiarist.reproductions.scenes.scope import DEPTHS, FULL, INCEPTION, VGG, Scope
from topiarist.reproductions.scenes.study import depth_name
from topiarist.reproductions.scenes.tables import MODELS, select
from topiarist.statistics import Finding

LOSS_MARGIN = 0.01  # the paper, section 5: pruning costs "about 0.5–1 %"
SIGNIFICANT = 0.05  # the level of the paper's tests
FEWEST_RUNS = 5  # below, a test that finds no difference says nothing
FIVE_FOLD = 4.5  # what rounds to five; the paper's own are 4.72, 4.90 and 4.77
KB_ROUNDING = 0.15  # the paper adds up KB that are rounded to 0.1: 5 · 315.8 + 654.6 = 2233.6
BLOCKS = {"vgg": VGG, "inception": INCEPTION}
COUNTED: Mapping[str, Mapping[str, int]] = {  # Models 1, 2 and 3: how many of each family
    "V(2,2,3,3)": {"vgg": 1},
    "I(2,1,2)": {"inception": 1},
    "five V and one I": {"vgg": 5, "inception": 1},
}
MADE_UP = "synthesised scenes say nothing about recordings"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that the verdicts follow from; `like_the_paper` says whether the clips have the form of the paper's."""

    scope: Scope
    judged: Judged
    depths: pandas.DataFrame | None
    mixing: tuple[Finding, Finding] | None
    stand_in: bool
    like_the_paper: bool

    @property
    def in_the_papers_setting(self) -> bool:
        """Return whether networks were trained as in the paper on clips of the paper's form, all of them."""
        scope = self.scope
        whole = scope.sound == FULL.sound and scope.clips is None and scope.folds is None and not scope.inception_norms
        return self.like_the_paper and not self.other_training and whole

    @property
    def other_training(self) -> str:
        """Say what differs from the training of the paper, which decides what pruning costs; "" where nothing does."""
        scope, full = self.scope, FULL
        if scope.training["epochs"] != full.training["epochs"]:
            return f"trained for {scope.training['epochs']} epochs, the paper for {full.training['epochs']}"
        same = scope.training == full.training and scope.prunings == full.prunings
        return "" if same else "trained or pruned with other settings than the paper's"


def scenes_verdicts(evidence: Evidence) -> list[Verdict]:
    """Return all claims with their verdicts, in the order of the paper's weight."""
    return [
        *count_verdicts(),
        *pruning_verdicts(evidence),
        *ensemble_verdicts(evidence),
        *mixing_verdicts(evidence),
        *depth_verdicts(evidence),
        *accuracy_verdicts(evidence),
        *reported_verdicts(),
    ]


def count_verdicts() -> Iterator[Verdict]:
    """Compare numbers and KB of the networks on the paper's input with the paper's."""
    exact = "counted with batch norm's moving averages"
    for number, (name, members) in enumerate(COUNTED.items(), start=1):
        whole, pruned, rounded = (
            counted(rule, members) for rule in (numbers_of, pruned_numbers_of, rounded_numbers_of)
        )
        kernels = counted(kernels_in, members)
        together = len(members) > 1
        added = "; the paper's is 2 above the sum of its parts" if together else ""
        known, sparse = paper.TABLE_3[number, False], paper.TABLE_3[number, True]
        yield count_verdict(f"size of {name}", known, whole, slack=2 * together, why=exact + added)
        rule = f"within one weight for each of {kernels} kernels; rounding each for itself gives {rounded:,}"
        yield count_verdict(f"size of {name}, pruned", sparse, pruned, slack=kernels, why=rule)
        ratio, ours = known.nonzero / sparse.nonzero, whole / pruned
        decided = REPRODUCED if ours >= FIVE_FOLD else NOT_REPRODUCED
        claim = f"pruning makes {name} five times as small"
        yield Verdict(claim, f"{ratio:.2f} ×", f"{ours:.2f} ×", None, decided, "on the paper's input; rounds to five")
    for family, depths in DEPTHS.items():
        for blocks in depths:
            if blocks not in (VGG, INCEPTION):
                known, ours = paper.TABLE_4[depth_name(family, blocks)], numbers_of(family, blocks)
                why = exact if known.nonzero == ours else "the paper counts what is not zero"
                yield count_verdict(f"size of {depth_name(family, blocks)}", known, ours, slack=1, why=why)


def counted(rule: Callable[[str, tuple[int, ...]], int], members: Mapping[str, int]) -> int:
    """Add up a count over the members of an ensemble, so many of each family."""
    return sum(number * rule(family, BLOCKS[family]) for family, number in members.items())


def count_verdict(claim: str, known: paper.Model, ours: int, *, slack: int, why: str) -> Verdict:
    """Compare two counts, which may differ by so many, and their KB, which are rounded."""
    gap, size = ours - known.nonzero, kilobytes(ours)
    close = abs(gap) <= slack and abs(size - known.kilobytes) <= KB_ROUNDING
    note = f"{'equal' if not gap else f'differs by {gap:+d}'}: {why}"
    published, found = f"{known.nonzero:,} ({known.kilobytes:,.1f} KB)", f"{ours:,} ({size:,.1f} KB)"
    return Verdict(claim, published, found, None, REPRODUCED if close else NOT_REPRODUCED, note)


def pruning_verdicts(evidence: Evidence) -> Iterator[Verdict]:
    """Test that pruning costs a point at most, and that it makes I better, where all is trained as in the paper."""
    for (network, mixed), (name, number) in MODELS.items():
        whole, pruned = (select(evidence.judged.rows, network, mixed, cut)["macro"].tolist() for cut in (False, True))
        if number is None or not whole or not pruned:
            continue
        gap = difference(pruned, whole)
        known = paper.TABLE_3[number, True].macro - paper.TABLE_3[number, False].macro
        shown = (f"{100 * known:+.2f} points", *in_points(gap))
        runs = f"{len(pruned)} pruned and {len(whole)} unpruned networks"
        claims = {f"pruning costs Model {number}, {name}, one point at most": False}
        claims |= {"pruning makes Model 2, I(2,1,2), better": True} if number == 2 else {}
        for claim, direction in claims.items():
            decided, why = NOT_TESTABLE, evidence.other_training
            if not why and gap is not None:
                decided, why = decide_direction(gap, known) if direction else decide_margin(gap, LOSS_MARGIN)
            yield Verdict(claim, *shown, decided, f"{why or 'one run says nothing of others'}; {runs}")


def ensemble_verdicts(evidence: Evidence) -> Iterator[Verdict]:
    """Test that an ensemble is better than its mean member, clip by clip."""
    members = 5 * paper.TABLE_3[1, True].macro + paper.TABLE_3[2, True].macro
    known = paper.TABLE_3[3, True].macro - members / 6
    gain = evidence.judged.gains.get("pruned")
    if gain is not None:
        decided, why = decide_direction(gain, known)
        note = f"{why}; bootstrap over clips, means over {evidence.scope.runs} ensembles"
        claim = "the pruned ensemble is better than its mean member"
        yield Verdict(claim, f"{100 * known:+.2f} points", *in_points(gain), decided, note)


def mixing_verdicts(evidence: Evidence) -> Iterator[Verdict]:
    """Test that neither the number of pieces nor the class of mixing matters."""
    if evidence.mixing is None:
        return
    for name, found in zip(("pieces", "class"), evidence.mixing, strict=True):
        decided: Decided = REPRODUCED if found.p >= SIGNIFICANT else NOT_REPRODUCED
        note = "Friedman's test with two factors"
        if evidence.stand_in or evidence.scope.runs < FEWEST_RUNS:
            decided = NOT_TESTABLE
            note = MADE_UP if evidence.stand_in else f"{evidence.scope.runs} run(s): no difference found says nothing"
        claim = f"the {'number of pieces' if name == 'pieces' else 'class mixed within'} makes no difference"
        yield Verdict(claim, f"p = {paper.TABLE_2_P[name]:.4f}", f"p = {found.p:.4f}", None, decided, note)


def depth_verdicts(evidence: Evidence) -> Iterator[Verdict]:
    """Test that the paper's best depths are better than the other depths of their family."""
    rows = evidence.depths
    if rows is None or not len(rows):
        return
    for name, known in paper.TABLE_4.items():
        best = paper.BEST_DEPTH[name[0]]
        gap = difference(*(rows[rows["network"] == some]["macro"].tolist() for some in (best, name)))
        if name == best:
            continue
        published = paper.TABLE_4[best].macro - known.macro
        decided, why = (
            (NOT_TESTABLE, "one run says nothing of others") if gap is None else decide_direction(gap, published)
        )
        if evidence.stand_in:
            decided, why = NOT_TESTABLE, MADE_UP
        yield Verdict(f"{best} is better than {name}", f"{100 * published:+.2f} points", *in_points(gap), decided, why)


def accuracy_verdicts(evidence: Evidence) -> Iterator[Verdict]:
    """Compare macro accuracies, where the clips and the setting are those of the paper."""
    for (network, mixed), (name, number) in MODELS.items():
        for pruned in (False, True):
            some = select(evidence.judged.rows, network, mixed, pruned)["macro"]
            if number is None or not len(some):
                continue
            known = paper.TABLE_3[number, pruned]
            claim = f"macro accuracy of {name}, {'pruned' if pruned else 'unpruned'} (Model {number})"
            yield accuracy_verdict(claim, known, some, testable=evidence.in_the_papers_setting)


def accuracy_verdict(claim: str, known: paper.Model, some: "pandas.Series[float]", *, testable: bool) -> Verdict:
    """Compare one accuracy: reproduced where the two means differ by no more than both spreads explain."""
    error = reach_of_mean(float(some.std()), len(some))
    interval = None if error is None else f"{max(0.0, some.mean() - error):.4f} to {min(1.0, some.mean() + error):.4f}"
    published = f"{known.macro:.4f} ± {known.macro_sd:.4f}"
    decided: Decided = NOT_TESTABLE
    note = "other recordings, or another setting, than the paper's: accuracies are not comparable"
    published_error = reach_of_mean(known.macro_sd, paper.RUNS)
    if testable and error is not None and published_error is not None:
        reach = math.hypot(error, published_error)
        decided = REPRODUCED if abs(some.mean() - known.macro) <= reach else NOT_REPRODUCED
        note = f"the means may differ by {reach:.4f}; the clips have the form of the paper's recordings"
    return Verdict(claim, published, f"{some.mean():.4f}", interval, decided, note)


def reported_verdicts() -> Iterator[Verdict]:
    """List what only the challenge's organisers can measure."""
    for row in paper.REPORTED:
        loss = "" if row.log_loss is None else f", log loss {row.log_loss:.3f}"
        claim = f"macro accuracy of {row.system} on the challenge's {row.recordings}"
        note = "the paper's own figure; nothing is run for it here"
        yield Verdict(claim, f"{row.macro:.3f}{loss}", "–", None, NOT_TESTABLE, note)


def counts_of(verdicts: list[Verdict]) -> Mapping[Decided, int]:
    """Count the verdicts of each kind."""
    kinds: tuple[Decided, ...] = (REPRODUCED, NOT_REPRODUCED, NOT_TESTABLE)
    return {kind: sum(row.verdict == kind for row in verdicts) for kind in kinds}
