"""What the user asks of a rightsizing: checked, and as what tells one call from another."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import get_args

from topiarist.data import Part
from topiarist.errors import SettingsError
from topiarist.files import canonical_json
from topiarist.methods.registry import find_method, rightsizing_methods
from topiarist.models.stacked import stackable
from topiarist.rightsizing.backbone import Backbone
from topiarist.rightsizing.baseline import describe
from topiarist.rightsizing.making import Objective
from topiarist.rightsizing.planning import EFFORTS, Effort, EffortName, FewRows, WorkPlan
from topiarist.rightsizing.preparation import Setup
from topiarist.rightsizing.record import SettingsRecord
from topiarist.rightsizing.stages import data_digest, network_digest

HASH_DIGITS = 12  # as of a commit: enough to tell files apart


def check_settings(objective: Objective | None, time_limit: float | None) -> None:
    """Raise SettingsError for an objective that is none, or a limit that is no time."""
    if objective is not None and objective not in get_args(Objective):
        known = ", ".join(get_args(Objective))
        raise SettingsError(f"objective must be one of {known}; found '{objective}'", setting="objective")
    if time_limit is not None and not time_limit > 0:
        raise SettingsError(f"time_limit must be above 0 seconds; found {time_limit}", setting="time_limit")


def methods_of(methods: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of methods, each once; raise SettingsError for one that is not registered, or for none."""
    asked = rightsizing_methods() if methods is None else tuple(dict.fromkeys(methods))
    for name in asked:
        find_method(name, setting="methods")
    if not asked:
        raise SettingsError(f"methods must name at least one of {', '.join(rightsizing_methods())}", setting="methods")
    return asked


def effort_of(name: EffortName) -> Effort:
    """Return an effort by its name; raise SettingsError where there is none of that name."""
    if name not in EFFORTS:
        raise SettingsError(f"effort must be one of {', '.join(EFFORTS)}; found '{name}'", setting="effort")
    return EFFORTS[name]


def few_rows_of(job: Setup, level: Effort, *, named: bool) -> FewRows | None:
    """Return what is enough for a table of few rows, with all methods where the user named them; None for others."""
    few = level.few_rows
    table = isinstance(job.data.train, Part) and len(job.data.input_shape) == 1
    if few is None or job.trained or not table or not stackable(job.first) or len(job.data.train) >= few.rows:
        return None
    return replace(few, methods=()) if named else few


def base_words(base: Backbone) -> str:
    """Return what a backbone is: where it comes from, its kind, and the first digits of the hash of its weights."""
    return f"{base.source}: {describe(base.network)}, SHA-256 {network_digest(base.network)[:HASH_DIGITS]}"


def identity_of(job: Setup, plan: WorkPlan, settings: SettingsRecord) -> dict[str, str]:
    """Return what must be the same for work to be resumed."""
    asked = settings.model_dump(mode="json", exclude={"time_limit", "command"})
    return {
        "data": data_digest(job.data),
        "network": network_digest(job.first),
        "settings": canonical_json([asked, asdict(plan)]),
        "versions": ", ".join(f"{name} {version(name)}" for name in ("topiarist", "torch", "numpy")),
    }
