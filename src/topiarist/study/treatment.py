"""What is done to a trained network of a study: nothing, or a registered method with a budget and with retraining."""

from typing import Any

from pydantic import NonNegativeInt, SerializationInfo, SerializeAsAny, model_serializer

from topiarist.errors import SettingsError
from topiarist.files import JsonObject
from topiarist.measurement import Budget
from topiarist.methods import Method, find_method, registered
from topiarist.methods.retraining import Retraining
from topiarist.settings import Settings

NONE = "none"


class Treatment(Settings):
    """A method by its name with its settings, and what `resize` takes beside it; "none" leaves a network as it is.

    Networks are settled only in as many steps as are declared: what a study compares is what it says.
    In a declaration and in a ledger all of it is one table: `{name = …, keep_fraction = 0.5}`.
    """

    name: str = NONE
    budget: Budget | None = None
    retraining: Retraining | None = None
    settling: NonNegativeInt = 0
    method: SerializeAsAny[Method] | None = None

    @model_serializer(mode="plain")
    def _one_table(self, info: SerializationInfo) -> JsonObject:
        how: JsonObject = {"mode": info.mode, "exclude_defaults": info.exclude_defaults}
        table = {} if self.method is None else self.method.model_dump(**how)
        beside = {"budget": self.budget, "retraining": self.retraining}
        dumped = {key: None if value is None else value.model_dump(**how) for key, value in beside.items()}
        kept = {key: value for key, value in dumped.items() if value is not None or not info.exclude_defaults}
        settled = {"settling": self.settling} if self.settling else {}  # cells of earlier studies keep their hashes
        return {"name": self.name, **table, **kept, **settled}


def treatment(**values: Any) -> Treatment:
    """Return a treatment by its name, none without one; raise SettingsError for an unknown name or setting."""
    given = dict(values)
    name = given.pop("name", NONE)
    if name == NONE:
        for key, value in given.items():
            raise SettingsError(f"method: {key}: there is no such setting; found {value!r}", setting=key)
        return Treatment()
    beside = {key: given.pop(key) for key in ("budget", "retraining", "settling") if key in given}
    if not isinstance(name, str) or name not in registered():
        known = ", ".join([NONE, *registered()])
        raise SettingsError(f"method: name: must be one of {known}; found {name!r}", setting="name")
    method = find_method(name)
    if method.traits.own_training and beside.get("retraining") is not None:
        raise SettingsError(f"method: the {name} trains by its own settings: give training instead of retraining")
    return Treatment(name=name, **beside, method=method.in_study(given))
