"""The smallest configuration that is proven not to be worse than the baseline by more than a margin."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy

from topiarist.errors import SettingsError
from topiarist.statistics.correction import holm
from topiarist.statistics.noninferiority import Design, Verdict, check_settings, non_inferiority
from topiarist.statistics.samples import Values


@dataclass(frozen=True)
class Decision:
    """The configuration chosen, and the verdicts on all that are smaller than the baseline, the smallest first."""

    chosen: str
    verdicts: tuple[Verdict, ...]
    baseline: str
    margin: float
    alpha: float


def smallest_not_worse(
    scores: Mapping[str, Values],
    sizes: Mapping[str, float],
    *,
    baseline: str,
    margin: float,
    design: Design = "folds",
    test_to_train: float = 0.0,
    alpha: float = 0.05,
) -> Decision:
    """Test every configuration smaller than the baseline, with Holm's correction, and choose the smallest proven one.

    Where none is proven, the baseline is chosen. Of two of the same size, that with the better mean comes first.
    """
    check_settings(margin=margin, design=design, test_to_train=test_to_train, alpha=alpha)
    check_names(scores, sizes, baseline)
    smaller = [name for name in scores if sizes[name] < sizes[baseline]]
    verdicts = [
        non_inferiority(
            scores[name],
            scores[baseline],
            margin=margin,
            design=design,
            test_to_train=test_to_train,
            alpha=alpha,
            name=name,
            comparisons=len(smaller),
        )
        for name in smaller
    ]
    adjusted = holm([verdict.p for verdict in verdicts])
    verdicts = [replace(v, adjusted_p=p, proven=p <= alpha) for v, p in zip(verdicts, adjusted, strict=True)]
    verdicts.sort(key=lambda verdict: (sizes[verdict.name], -verdict.difference, verdict.name))
    chosen = next((verdict.name for verdict in verdicts if verdict.proven), baseline)
    return Decision(chosen, tuple(verdicts), baseline, margin, alpha)


def check_names(scores: Mapping[str, Values], sizes: Mapping[str, float], baseline: str) -> None:
    """Refuse an unknown baseline, a configuration without a size, and a size that is none."""
    if baseline not in scores:
        raise SettingsError(f"baseline must be one of {', '.join(scores) or 'no configurations'}; found {baseline!r}")
    for name in scores:
        if name not in sizes:
            raise SettingsError(f"sizes must name every configuration; {name!r} is missing")
        if not numpy.isfinite(sizes[name]):
            raise SettingsError(f"sizes must be finite; found {sizes[name]} for {name!r}")
