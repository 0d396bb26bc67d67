"""Surgery: cut, merge, refit, widen, project, deepen, fold and factorise any network, without touching the original."""

from topiarist.surgery.allotment import allot_widths
from topiarist.surgery.applying import apply
from topiarist.surgery.choice import choose_units
from topiarist.surgery.compaction import compact
from topiarist.surgery.edits import (
    DeepenNetwork,
    Edit,
    FactoriseLayer,
    FoldLayer,
    GrowSpace,
    Merge,
    MergeUnits,
    ProjectSpace,
    RemoveUnits,
    WidenSpace,
    complement,
)
from topiarist.surgery.masks import Masks, UnitMasks
from topiarist.surgery.plan import Plan, plan_of
from topiarist.surgery.recommendation import Recommendation, recommend
from topiarist.surgery.scores import Scores, paper_scores
from topiarist.surgery.selection import Strategy
from topiarist.surgery.transplant import transplant
from topiarist.surgery.verbs import deepen, factorise, fold, grow, merge_units, project, remove, remove_units, widen

__all__ = [
    "DeepenNetwork",
    "Edit",
    "FactoriseLayer",
    "FoldLayer",
    "GrowSpace",
    "Masks",
    "Merge",
    "MergeUnits",
    "Plan",
    "ProjectSpace",
    "Recommendation",
    "RemoveUnits",
    "Scores",
    "Strategy",
    "UnitMasks",
    "WidenSpace",
    "allot_widths",
    "apply",
    "choose_units",
    "compact",
    "complement",
    "deepen",
    "factorise",
    "fold",
    "grow",
    "merge_units",
    "paper_scores",
    "plan_of",
    "project",
    "recommend",
    "remove",
    "remove_units",
    "transplant",
    "widen",
]
