"""Statistics of runs and answers: summaries, rank tests, effect sizes, metrics, proofs that nothing was lost.

scipy.stats is loaded when a test is first called.
"""

from topiarist.statistics.answers import PairedEvidence, compare_answers
from topiarist.statistics.calibration import (
    Calibration,
    ReliabilityBin,
    calibration_of,
    fit_temperature,
    reliability,
)
from topiarist.statistics.comparisons import (
    StatisticalResult,
    corrected_t,
    friedman,
    friedman_two_factors,
    rank_sum,
    signed_rank,
)
from topiarist.statistics.metrics import Metric, find_metric, metrics_of, own_metric
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
from topiarist.statistics.proofs import compare, compare_each, default_margin, pooled_value
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
    "Calibration",
    "Design",
    "Interval",
    "Metric",
    "NonInferiority",
    "PairedEvidence",
    "ReliabilityBin",
    "SmallestDecision",
    "StatisticalResult",
    "Summary",
    "bootstrap_macro_gain",
    "calibration_of",
    "cliffs_delta",
    "cohens_d",
    "compare",
    "compare_answers",
    "compare_each",
    "corrected_t",
    "default_margin",
    "find_metric",
    "fit_temperature",
    "friedman",
    "friedman_two_factors",
    "hedges_g",
    "holm",
    "metrics_of",
    "non_inferiority",
    "own_metric",
    "paired_d",
    "pooled_value",
    "power_of_noninferiority",
    "rank_biserial",
    "rank_sum",
    "reliability",
    "runs_needed",
    "signed_rank",
    "smallest_not_worse",
    "summarise",
]
