"""Statistics of runs: summaries, exact rank tests, effects, power, and proof that nothing was lost."""

from topiarist.statistics.answers import Evidence, compare_answers
from topiarist.statistics.bootstrap import Interval, bootstrap_macro_gain
from topiarist.statistics.correction import holm
from topiarist.statistics.decision import Decision, smallest_not_worse
from topiarist.statistics.effects import cliffs_delta, cohens_d, hedges_g, paired_d, rank_biserial
from topiarist.statistics.finding import Finding
from topiarist.statistics.friedman_tests import friedman, friedman_two_factors
from topiarist.statistics.noninferiority import Design, Verdict, non_inferiority
from topiarist.statistics.power import (
    power_of_noninferiority,
    reach_note,
    runs_needed,
    smallest_p_rank_sum,
    smallest_p_signed_rank,
)
from topiarist.statistics.rank_tests import rank_sum, signed_rank
from topiarist.statistics.samples import Alternative
from topiarist.statistics.summary import Summary, summarise
from topiarist.statistics.t_tests import corrected_t

__all__ = [
    "Alternative",
    "Decision",
    "Design",
    "Evidence",
    "Finding",
    "Interval",
    "Summary",
    "Verdict",
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
    "reach_note",
    "runs_needed",
    "signed_rank",
    "smallest_not_worse",
    "smallest_p_rank_sum",
    "smallest_p_signed_rank",
    "summarise",
]
