"""Surgery: cut, merge, refit, widen, project, deepen, fold and factorise any network; the original is left alone."""

from topiarist.surgery.advice.recommendation import Recommendation, recommend
from topiarist.surgery.advice.spectra import Scores, paper_scores
from topiarist.surgery.applying import apply
from topiarist.surgery.choice.allotment import allot_widths
from topiarist.surgery.choice.choosing import choose_units
from topiarist.surgery.choice.selection import Strategy
from topiarist.surgery.depth.blocks import Block, Blocks, blocks
from topiarist.surgery.depth.verbs import deepen, factorise, fold, remove_block
from topiarist.surgery.edits.kinds import (
    DeepenNetwork,
    Edit,
    FactoriseLayer,
    FoldLayer,
    GrowSpace,
    Merge,
    MergeUnits,
    Passage,
    ProjectSpace,
    RemoveBlock,
    RemoveUnits,
    SettleNetwork,
    WidenSpace,
    complement,
)
from topiarist.surgery.edits.plan import Plan, plan_of
from topiarist.surgery.masks import Masks, UnitMasks
from topiarist.surgery.proving import proven
from topiarist.surgery.transplant import transplant
from topiarist.surgery.width.verbs import compact, grow, merge_units, project, remove, widen

__all__ = [
    "Block",
    "Blocks",
    "DeepenNetwork",
    "Edit",
    "FactoriseLayer",
    "FoldLayer",
    "GrowSpace",
    "Masks",
    "Merge",
    "MergeUnits",
    "Passage",
    "Plan",
    "ProjectSpace",
    "Recommendation",
    "RemoveBlock",
    "RemoveUnits",
    "Scores",
    "SettleNetwork",
    "Strategy",
    "UnitMasks",
    "WidenSpace",
    "allot_widths",
    "apply",
    "blocks",
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
    "proven",
    "recommend",
    "remove",
    "remove_block",
    "transplant",
    "widen",
]
