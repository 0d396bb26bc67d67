"""Surgery: cut, merge, refit, widen, deepen, fold and factorise any network, without touching the original."""

from topiarist.surgery.applying import apply
from topiarist.surgery.edits import (
    DeepenNetwork,
    Edit,
    FactoriseLayer,
    FoldLayer,
    GrowSpace,
    Merge,
    MergeUnits,
    RemoveUnits,
    WidenSpace,
    complement,
)
from topiarist.surgery.plan import Plan, plan_of
from topiarist.surgery.verbs import deepen, factorise, fold, grow, merge_units, remove, remove_units, widen

__all__ = [
    "DeepenNetwork",
    "Edit",
    "FactoriseLayer",
    "FoldLayer",
    "GrowSpace",
    "Merge",
    "MergeUnits",
    "Plan",
    "RemoveUnits",
    "WidenSpace",
    "apply",
    "complement",
    "deepen",
    "factorise",
    "fold",
    "grow",
    "merge_units",
    "plan_of",
    "remove",
    "remove_units",
    "widen",
]
