"""Statistics of runs: summaries, exact rank tests, effect sizes, power, and proof that nothing was lost.

scipy.stats is loaded when a test is first called.
"""

from topiarist.statistics.answers import PairedEvidence, compare_answers
from topiarist.statistics.comparisons import (
    StatisticalResult,
    corrected_t,
    friedman,
    friedman_two_factors,
    rank_sum,
    signed_rank,
)
from topiarist.statistics.noninferiority import (
    Design,
    NonInferiority,
    SmallestDecision,
    holm,
    non_inferiority,
    power_of_noninferiority,
    runs_needed,
    smallest_not_worse,
)
from topiarist.statistics.samples import Alternative
from topiarist.statistics.summaries import (
    Interval,
    Summary,
    bootstrap_macro_gain,
    cliffs_delta,
    cohens_d,
    hedges_g,
    paired_d,
    rank_biserial,
    summarise,
)

__all__ = [
    "Alternative",
    "Design",
    "Interval",
    "NonInferiority",
    "PairedEvidence",
    "SmallestDecision",
    "StatisticalResult",
    "Summary",
    "bootstrap_macro_gain",
    "cliffs_delta",
    "cohens_d",
    "compare_answers",
    "corrected_t",
    "friedman",
    "friedman_two_factors",
    "hedges_g",
    "holm",
    "non_inferiority",
    "paired_d",
    "power_of_noninferiority",
    "rank_biserial",
    "rank_sum",
    "runs_needed",
    "signed_rank",
    "smallest_not_worse",
    "summarise",
]
