"""From raw samples to parts with fitted preprocessing, without torch: all that can be said of data before training."""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from topiarist.data.columns.decisions import forms_of
from topiarist.data.columns.fitting import category_notes
from topiarist.data.preprocessing import Preprocessing, fit_preprocessing
from topiarist.data.source import Scaling, Source, is_table
from topiarist.data.split import Split, SplitRule, split_originals, with_copies, with_fewer_rows
from topiarist.data.targets import Targets, effect_targets, targets_of
from topiarist.errors import TopiaristWarning
from topiarist.tasks import Task

if TYPE_CHECKING:
    from topiarist.data.projection import BlockSizes

DEFAULT_RULE = SplitRule()


class PreparationOptions(TypedDict, total=False):
    """What `prepare`, `Data.from_source` and `Data.from_arrays` take beside the samples."""

    seed: int
    test_fraction: float
    validation_fraction: float
    input_shape: tuple[int, ...] | None
    samples: int | None
    projection: "BlockSizes | None"


@dataclass(frozen=True, kw_only=True)
class PreparedSource:
    """Raw samples, their targets, the rows of each part, and preprocessing and task fitted on the training rows."""

    source: Source
    targets: Targets
    task: Task
    split: Split
    preprocessing: Preprocessing
    notes: tuple[str, ...] = ()
    rule: SplitRule | None = None


def prepare(
    source: Source,
    *,
    seed: int = DEFAULT_RULE.seed,
    test_fraction: float = DEFAULT_RULE.test_fraction,
    validation_fraction: float = DEFAULT_RULE.validation_fraction,
    scaling: Scaling | None = None,
    input_shape: tuple[int, ...] | None = None,
    samples: int | None = None,
    projection: "BlockSizes | None" = None,
) -> PreparedSource:
    """Split what a reader found, fit its preprocessing, and warn of what was decided; see `Data.from_source`."""
    targets = targets_of(source)
    rule = SplitRule(seed=seed, test_fraction=test_fraction, validation_fraction=validation_fraction)
    chosen = split_originals(source, targets.strata, rule)
    notes = (*source.notes, *targets.notes(chosen))
    if samples is not None:
        classes = targets.kind == "classes"
        chosen = with_fewer_rows(chosen, targets.strata, samples=samples, seed=seed, classes=classes)
    settled = source if scaling is None else replace(source, scaling=scaling)
    found = fit_split(settled, targets, chosen, input_shape, projection, notes=notes, rule=rule)
    found = replace(found, notes=(*notes, *category_notes(found.preprocessing.columns)))
    for note in found.notes:
        warnings.warn(note, TopiaristWarning, stacklevel=3)
    return found


def fit_split(
    source: Source,
    targets: Targets,
    of_originals: Split,
    input_shape: tuple[int, ...] | None,
    projection: "BlockSizes | None",
    *,
    notes: tuple[str, ...] = (),
    rule: SplitRule | None = None,
) -> PreparedSource:
    """Add the copies to the training part of a split of originals, and fit preprocessing and task on it."""
    split = with_copies(of_originals, source.originals)
    preprocessing = fit_preprocessing(
        source.features,
        split.train,
        scaling=source.scaling,
        input_shape=input_shape,
        projection=projection,
        forms=forms_of(source.columns),
        targets=effect_targets(source, targets) if is_table(source.features) else None,
    )
    ignored = tuple(decision.name for decision in source.columns if decision.form is None)
    preprocessing = replace(preprocessing, ignored=ignored) if preprocessing.columns else preprocessing
    preprocessing = replace(preprocessing, sound=source.sound) if source.sound is not None else preprocessing
    task = targets.task(split.train, name=source.name, scaled=not source.raw_targets)
    return PreparedSource(
        source=source,
        targets=targets,
        task=task,
        split=split,
        preprocessing=preprocessing,
        notes=notes,
        rule=rule,
    )
