"""Losses by name, with the one number that some of them have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

from topiarist.errors import SettingsError
from topiarist.files import JsonObject

TaskKind = Literal["classes", "numbers", "labels"]
KINDS: tuple[TaskKind, ...] = ("classes", "numbers", "labels")

LOSSES: Mapping[TaskKind, tuple[str, ...]] = {  # the first of each kind is the usual one
    "classes": ("cross-entropy", "focal"),
    "numbers": ("squared", "absolute", "huber", "quantile"),
    "labels": ("cross-entropy", "focal"),
}
USUAL: Mapping[str, float] = {
    "focal": 2.0,  # γ of Lin et al., Focal loss for dense object detection (2017)
    "huber": 1.0,  # δ in deviations of the target: beyond it, an error counts by its size and not by its square
    "quantile": 0.5,  # the level: the median
}


@dataclass(frozen=True)
class Loss:
    """A loss: `parameter` is γ of focal, δ of huber (in deviations of the target) or the level of quantile.

    Examples
    --------
    >>> Loss.parse("quantile:0.9")
    Loss(name='quantile', parameter=0.9)
    """

    name: str
    parameter: float | None = None

    def __post_init__(self) -> None:
        known = sorted({name for names in LOSSES.values() for name in names})
        if self.name not in known:
            raise SettingsError(f"no loss is called '{self.name}': choose among {', '.join(known)}")
        if self.name not in USUAL:
            if self.parameter is not None:
                raise SettingsError(f"the loss {self.name} has no number; found {self.parameter:g}")
            return
        value = USUAL[self.name] if self.parameter is None else self.parameter
        if not (0 < value < 1 if self.name == "quantile" else 0 < value < float("inf")):
            allowed = "between 0 and 1" if self.name == "quantile" else "above 0"
            raise SettingsError(f"the number of the loss {self.name} must be {allowed}; found {value:g}")
        object.__setattr__(self, "parameter", float(value))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name such as `squared`, or one with its number, such as `quantile:0.9`."""
        name, _, number = text.partition(":")
        try:
            parameter = float(number) if number else None
        except ValueError:
            raise SettingsError(f"a loss is written NAME or NAME:NUMBER, like quantile:0.9; found '{text}'") from None
        return cls(name.strip(), parameter)

    def __str__(self) -> str:
        return self.name if self.parameter is None else f"{self.name}:{self.parameter:g}"

    def check_kind(self, kind: TaskKind) -> None:
        """Raise where the loss is one of another kind of task."""
        if self.name not in LOSSES[kind]:
            owner = " and ".join(each for each in KINDS if self.name in LOSSES[each])
            raise SettingsError(
                f"the loss {self.name} is for {owner}, and these are {kind}: choose among {', '.join(LOSSES[kind])}"
            )

    @property
    def number(self) -> float:
        """The parameter of a loss that has one."""
        assert self.parameter is not None
        return self.parameter

    def to_record(self) -> JsonObject:
        """Return plain values."""
        return {"name": self.name} if self.parameter is None else {"name": self.name, "parameter": self.parameter}


def usual_loss(kind: TaskKind) -> Loss:
    """Return the loss of a task that names none."""
    return Loss(LOSSES[kind][0])
