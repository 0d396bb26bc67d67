"""The claims of the scenes paper beside what was found, each with a verdict.

Counts of parameters do not depend on recordings: they are tested on any data. That an ensemble is better than its
members is tested on any clips, and what pruning costs on any clips where networks are trained and pruned as in the
paper. What depends on the recordings themselves (mixing, depth) is tested on recordings, and accuracies only on clips
of the form of the paper's, in its own setting.

Networks are counted on the paper's input: weights, biases and the scale, shift, mean and variance of batch norm. Ours
are pruned so that the zeros of all kernels together are the rounded total; the paper does not say how it rounds, and
rounding every kernel for itself differs by a few weights.
"""

import math
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pandas

from topiarist.files import BYTES_PER_KB
from topiarist.models import ModelSettings, build_network
from topiarist.models.evaluation import kernels_of
from topiarist.reproductions.claims import (
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    Claim,
    ClaimVerdict,
    decide_direction,
    decide_margin,
    difference,
    in_points,
    reach_of_mean,
)
from topiarist.reproductions.scenes import paper
from topiarist.reproductions.scenes.evaluation import ScenesFindings
from topiarist.reproductions.scenes.study import DEPTHS, FULL, INCEPTION, VGG, depth_name
from topiarist.reproductions.scenes.tables import MODELS, select
from topiarist.statistics import Interval
from topiarist.surgery.choice.weights import removed_counts

PAPER_SHAPE, PAPER_CLASSES = (1, 48, 467), 3
SPARSITY = 0.8  # s_f of the paper, section 4
LOSS_MARGIN = 0.01  # the paper, section 5: pruning costs "about 0.5–1 %"
SIGNIFICANT = 0.05  # the level of the paper's tests
FEWEST_RUNS = 5  # below, a test that finds no difference says nothing
FIVE_FOLD = 4.5  # what rounds to five; the paper's own are 4.72, 4.90 and 4.77
KB_ROUNDING = 0.15  # the paper adds up KB that are rounded to 0.1: 5 · 315.8 + 654.6 = 2233.6
MODELS_COUNTED = {
    "V(2,2,3,3)": (1, 0),
    "I(2,1,2)": (0, 1),
    "five V and one I": (5, 1),
}  # Models 1 to 3: V and I of each
MADE_UP = "synthesised scenes say nothing about recordings"


def judge_scenes_claims(findings: ScenesFindings) -> list[Claim]:
    """Return all claims with their verdicts, in the order of the paper's weight."""
    return [
        *count_claims(),
        *_pruning_claims(findings),
        *_ensemble_claims(findings),
        *_mixing_claims(findings),
        *_depth_claims(findings),
        *_accuracy_claims(findings),
        *_reported_claims(),
    ]


class NumberCounts(NamedTuple):
    """The numbers of a network: all, those left by pruning as `train` does it, those left by rounding each kernel."""

    whole: int
    pruned: int
    rounded: int
    kernels: int


@cache
def count_numbers(family: str, blocks: tuple[int, ...]) -> NumberCounts:
    """Build a network for the paper's input, and count its numbers."""
    settings = ModelSettings(family=family, blocks=blocks)
    network = build_network(settings, input_shape=PAPER_SHAPE, classes=PAPER_CLASSES)
    sizes = {name: kernel.numel() for name, kernel in kernels_of(network).items()}
    whole = sum(value.numel() for value in network.state_dict().values() if value.is_floating_point())
    return NumberCounts(
        whole=whole,
        pruned=whole - sum(removed_counts(sizes, SPARSITY).values()),
        rounded=whole - sum(round(SPARSITY * size) for size in sizes.values()),
        kernels=len(sizes),
    )


def count_claims() -> Iterator[Claim]:
    """Compare numbers and KB of the networks on the paper's input with the paper's."""
    exact = "counted with batch norm's moving averages"
    both = tuple(zip(count_numbers("vgg", VGG), count_numbers("inception", INCEPTION), strict=True))
    for number, (name, (vgg, inception)) in enumerate(MODELS_COUNTED.items(), start=1):
        ours = NumberCounts(*(vgg * of_vgg + inception * of_inception for of_vgg, of_inception in both))
        together = vgg > 0 and inception > 0
        added = "; the paper's is 2 above the sum of its parts" if together else ""
        known, sparse = paper.TABLE_3[number, False], paper.TABLE_3[number, True]
        yield _count_claim(f"size of {name}", known, ours.whole, slack=2 * together, why=exact + added)
        rule = f"within one weight for each of {ours.kernels} kernels; rounding each for itself gives {ours.rounded:,}"
        yield _count_claim(f"size of {name}, pruned", sparse, ours.pruned, slack=ours.kernels, why=rule)
        published, ratio = f"{known.nonzero / sparse.nonzero:.2f} ×", ours.whole / ours.pruned
        decided = REPRODUCED if ratio >= FIVE_FOLD else NOT_REPRODUCED
        claim, why = f"pruning makes {name} five times as small", "on the paper's input; rounds to five"
        yield Claim(claim, published, f"{ratio:.2f} ×", None, decided, why)
    for family, blocks in ((family, blocks) for family, depths in DEPTHS.items() for blocks in depths):
        if blocks not in (VGG, INCEPTION):
            name, whole = depth_name(family, blocks), count_numbers(family, blocks).whole
            why = exact if paper.TABLE_4[name].nonzero == whole else "the paper counts what is not zero"
            yield _count_claim(f"size of {name}", paper.TABLE_4[name], whole, slack=1, why=why)


def _count_claim(claim: str, known: paper.PublishedModel, ours: int, *, slack: int, why: str) -> Claim:
    """Compare two counts, which may differ by so many, and their KB at 4 bytes a number, which are rounded."""
    gap, size = ours - known.nonzero, ours * 4 / BYTES_PER_KB
    close = abs(gap) <= slack and abs(size - known.kilobytes) <= KB_ROUNDING
    note = f"{'equal' if not gap else f'differs by {gap:+d}'}: {why}"
    published, found = f"{known.nonzero:,} ({known.kilobytes:,.1f} KB)", f"{ours:,} ({size:,.1f} KB)"
    return Claim(claim, published, found, None, REPRODUCED if close else NOT_REPRODUCED, note)


def _other_training(findings: ScenesFindings) -> str:
    """Return what differs from the training of the paper, which decides what pruning costs; "" where nothing does."""
    scope = findings.scope
    if scope.training.epochs != FULL.training.epochs:
        return f"trained for {scope.training.epochs} epochs, the paper for {FULL.training.epochs}"
    same = scope.training == FULL.training and scope.prunings == FULL.prunings
    return "" if same else "trained or pruned with other settings than the paper's"


def _pruning_claims(findings: ScenesFindings) -> Iterator[Claim]:
    """Test that pruning costs a point at most, and that it makes I better, where all is trained as in the paper."""
    for (network, mixed), (name, number) in MODELS.items():
        whole, pruned = (select(findings.networks, network, mixed, cut)["macro"].tolist() for cut in (False, True))
        if number is None or not whole or not pruned:
            continue
        gap = difference(pruned, whole)
        known = paper.TABLE_3[number, True].macro - paper.TABLE_3[number, False].macro
        runs = f"{len(pruned)} pruned and {len(whole)} unpruned networks"
        claims: dict[str, float | None] = {f"pruning costs Model {number}, {name}, one point at most": LOSS_MARGIN}
        claims |= {"pruning makes Model 2, I(2,1,2), better": None} if number == 2 else {}
        for claim, margin in claims.items():
            yield _difference_claim(claim, known, gap, margin=margin, why_not=_other_training(findings), note=runs)


def _difference_claim(
    claim: str, known: float, gap: Interval | None, *, margin: float | None = None, why_not: str = "", note: str = ""
) -> Claim:
    """Decide whether a difference has the published sign, or where there is a margin, whether it keeps to that."""
    decided, why = NOT_TESTABLE, why_not or "one run says nothing of others"
    if gap is not None and not why_not:
        decided, why = decide_direction(gap, known) if margin is None else decide_margin(gap, margin)
    published = f"{100 * known:+.2f} points"
    return Claim(claim, published, *in_points(gap), decided, "; ".join(filter(None, [why, note])))


def _ensemble_claims(findings: ScenesFindings) -> Iterator[Claim]:
    """Test that an ensemble is better than its mean member, clip by clip."""
    members = 5 * paper.TABLE_3[1, True].macro + paper.TABLE_3[2, True].macro
    if "pruned" in findings.gains:
        claim, known = "the pruned ensemble is better than its mean member", paper.TABLE_3[3, True].macro - members / 6
        note = f"bootstrap over clips, means over {findings.scope.runs} ensembles"
        yield _difference_claim(claim, known, findings.gains["pruned"], note=note)


def _mixing_claims(findings: ScenesFindings) -> Iterator[Claim]:
    """Test that neither the number of pieces nor the class of mixing matters."""
    factors = {"pieces": "number of pieces", "class": "class mixed within"}
    for (name, factor), found in zip(factors.items(), findings.mixing or (), strict=False):
        decided: ClaimVerdict = REPRODUCED if found.p >= SIGNIFICANT else NOT_REPRODUCED
        note, runs = "Friedman's test with two factors", findings.scope.runs
        if findings.stand_in or runs < FEWEST_RUNS:
            decided = NOT_TESTABLE
            note = MADE_UP if findings.stand_in else f"{runs} run(s): no difference found says nothing"
        published, ours = f"p = {paper.TABLE_2_P[name]:.4f}", f"p = {found.p:.4f}"
        yield Claim(f"the {factor} makes no difference", published, ours, None, decided, note)


def _depth_claims(findings: ScenesFindings) -> Iterator[Claim]:
    """Test that the paper's best depths are better than the other depths of their family."""
    if findings.depths is None or findings.depths.empty:
        return
    macros = {name: rows["macro"].tolist() for name, rows in findings.depths.groupby("network")}
    for name, known in paper.TABLE_4.items():
        best = paper.BEST_DEPTH[name[0]]
        if name != best:
            gap, published = (
                difference(macros.get(best, []), macros.get(name, [])),
                paper.TABLE_4[best].macro - known.macro,
            )
            why_not = MADE_UP if findings.stand_in else ""
            yield _difference_claim(f"{best} is better than {name}", published, gap, why_not=why_not)


def _accuracy_claims(findings: ScenesFindings) -> Iterator[Claim]:
    """Compare macro accuracies, where the clips and the setting are those of the paper."""
    scope = findings.scope
    whole = scope.sound == FULL.sound and scope.clips is None and scope.folds is None and not scope.inception_norms
    testable = findings.like_the_paper and not _other_training(findings) and whole
    for (network, mixed), (name, number) in MODELS.items():
        for pruned in (False, True):
            some = select(findings.networks, network, mixed, pruned)["macro"]
            if number is not None and len(some):
                claim = f"macro accuracy of {name}, {'pruned' if pruned else 'unpruned'} (Model {number})"
                yield _accuracy_claim(claim, paper.TABLE_3[number, pruned], some, testable=testable)


def _accuracy_claim(claim: str, known: paper.PublishedModel, some: "pandas.Series[float]", *, testable: bool) -> Claim:
    """Compare one accuracy: reproduced where the two means differ by no more than both spreads explain."""
    mean, error = float(some.mean()), reach_of_mean(float(some.std()), len(some))
    interval = None if error is None else f"{max(0.0, mean - error):.4f} to {min(1.0, mean + error):.4f}"
    decided: ClaimVerdict = NOT_TESTABLE
    note = "other recordings, or another setting, than the paper's: accuracies are not comparable"
    published_error = reach_of_mean(known.macro_sd, paper.RUNS)
    if testable and error is not None and published_error is not None:
        reach = math.hypot(error, published_error)
        decided = REPRODUCED if abs(mean - known.macro) <= reach else NOT_REPRODUCED
        note = f"the means may differ by {reach:.4f}; the clips have the form of the paper's recordings"
    return Claim(claim, f"{known.macro:.4f} ± {known.macro_sd:.4f}", f"{mean:.4f}", interval, decided, note)


def _reported_claims() -> Iterator[Claim]:
    """List what only the challenge's organisers can measure."""
    for row in paper.REPORTED:
        loss = "" if row.log_loss is None else f", log loss {row.log_loss:.3f}"
        claim = f"macro accuracy of {row.system} on the challenge's {row.recordings}"
        note = "the paper's own figure; nothing is run for it here"
        yield Claim(claim, f"{row.macro:.3f}{loss}", "–", None, NOT_TESTABLE, note)
