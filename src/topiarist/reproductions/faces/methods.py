"""The methods of the faces: the paper's four, other readings of them, and ours at the sizes that the paper's end at."""

from dataclasses import dataclass
from typing import Self

from topiarist.reproductions.findings import Overrides

KEPT = 25  # units, about what the paper's 45° leaves of every start
FINE_TUNED_EPOCHS = 5
PAIR_ORDERS = ("in order", "most similar first", "all at once")
_DEFAULTS = {"penalty": 0, "fitness": "relative", "pairs": "in order"}


def distinctive(angle_degrees: int, pairs: str = "in order") -> Overrides:
    """Return the paper's distinctiveness pruning."""
    return _method({"name": "published-distinctiveness", "angle_degrees": angle_degrees, "pairs": pairs})


def genetic(penalty: float, fitness: str = "relative", **search: object) -> Overrides:
    """Return the paper's genetic pruning, by equation 5 (relative) or 6 (absolute)."""
    return _method({"name": "published-genetic", "penalty": penalty, "fitness": fitness, **search})


def _method(settings: Overrides) -> Overrides:
    """Leave out what is the default, so that what is the same is run once."""
    return {name: value for name, value in settings.items() if _DEFAULTS.get(name) != value}


UNPRUNED: Overrides = {}
VARIANTS: dict[str, Overrides] = {
    "unpruned": UNPRUNED,
    "15°": distinctive(15),
    "45°": distinctive(45),
    "λ = 0": genetic(0),
    "λ = 50": genetic(50),
}
SEARCH_READINGS: dict[str, Overrides] = {
    "hall of fame inside, bits at 0.5": {},
    "hall of fame beside": {"elite": "beside"},
    "bits at 0.9": {"start": 0.9},
    "hall of fame beside, bits at 0.9": {"elite": "beside", "start": 0.9},
}
# The searches that are tried in those readings: by both equations, with a small and a large penalty.
READ_SEARCHES: dict[str, Overrides] = {
    "λ = 0": genetic(0),
    "equation 5, λ = 50": genetic(50),
    "equation 6, λ = 0.1": genetic(0.1, "absolute"),
    "equation 6, λ = 10": genetic(10, "absolute"),
}
# The searches whose final sizes are compared over all starts.
SEARCHES: dict[str, Overrides] = {
    "relative, λ = 50": genetic(50),
    "absolute, λ = 1": genetic(1, "absolute"),
    "refitted, λ = 1": {"name": "genetic", "fitness": "refitted", "penalty": 1, "judged_on": "training"},
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
    distilled: Overrides = {"kind": "fine-tuning", "epochs": FINE_TUNED_EPOCHS}
    tuning: Overrides = {**distilled, "distillation": None}
    late = {"kind": "rewinding", "epoch": rewound.late}
    early = {"kind": "rewinding", "epoch": rewound.early, "weights": True}
    return {
        "unpruned": UNPRUNED,
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
