"""The methods of the faces: the paper's four, other readings of its search, and ours at the sizes it ends at."""

from dataclasses import dataclass
from typing import Any, Self

Overrides = dict[str, Any]
KEPT = 25  # units, about what the paper's 45° leaves of every start
FINE_TUNED_EPOCHS = 5
VARIANTS: dict[str, Overrides] = {
    "unpruned": {"name": "none"},
    "15°": {"name": "distinctiveness", "published": True, "angle_degrees": 15},
    "45°": {"name": "distinctiveness", "published": True, "angle_degrees": 45},
    "λ = 0": {"name": "genetic", "published": True},
    "λ = 50": {"name": "genetic", "published": True, "penalty": 50},
}
SEARCH_READINGS: dict[str, Overrides] = {
    "hall of fame inside, bits at 0.5": {},
    "hall of fame beside": {"elite": "beside"},
    "bits at 0.9": {"start": 0.9},
    "hall of fame beside, bits at 0.9": {"elite": "beside", "start": 0.9},
}


@dataclass(frozen=True)
class Rewound:
    """The epochs from which training is repeated: the learning rate's late in the training, the weights' early."""

    late: int
    early: int

    @classmethod
    def of(cls, steps: int, steps_per_epoch: int) -> Self:
        """Choose whole epochs near 5/6 and 1/30 of the training, the shares of 250 and 10 of 300 epochs."""
        late = (steps * 5 // 6) // steps_per_epoch
        return cls(late=late, early=min(late, round(steps / 30 / steps_per_epoch)))


def ours(size: int, rewound: Rewound) -> dict[str, Overrides]:
    """Cut to the size at which the paper's 45° ends: by the paper's method and by ours, with and without training."""
    keep: Overrides = {"name": "distinctiveness", "keep_fraction": min(1.0, KEPT / size)}
    published = VARIANTS["45°"]
    tuning: Overrides = {"kind": "fine-tuning", "epochs": FINE_TUNED_EPOCHS, "distillation": None}
    distilled: Overrides = {"kind": "fine-tuning", "epochs": FINE_TUNED_EPOCHS}
    late = {"kind": "rewinding", "epoch": rewound.late}
    early = {"kind": "rewinding", "epoch": rewound.early, "weights": True}
    return {
        "unpruned": VARIANTS["unpruned"],
        "paper, 45°": published,
        "paper, 45°, fine-tuned": {**published, "retraining": tuning},
        "paper, 45°, rate rewound": {**published, "retraining": late},
        "paper, 45°, weights rewound": {**published, "retraining": early},
        "ours": keep,
        "ours, fine-tuned": {**keep, "retraining": tuning},
        "ours, fine-tuned by distillation": {**keep, "retraining": distilled},
        "ours, rate rewound": {**keep, "retraining": late},
        "ours, weights rewound": {**keep, "retraining": early},
        "ours, in 4 rounds": {**keep, "rounds": 4, "retraining": distilled},
    }


def searches() -> dict[str, Overrides]:
    """Return the genetic searches whose final sizes are compared over all starts."""
    return {
        "relative, λ = 50": VARIANTS["λ = 50"],
        "absolute, λ = 1": {**VARIANTS["λ = 0"], "penalty": 1, "fitness": "absolute"},
        "refitted, λ = 1": {"name": "genetic", "fitness": "refitted", "penalty": 1, "judged_on": "training"},
    }
