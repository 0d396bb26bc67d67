"""How many examples a costly property is tried on: few that are always the same, and more in `make fuzz`."""

from hypothesis import settings

MORE = 4  # times as many, where every run tries others


def examples(few: int) -> settings:
    """Return the setting of a property that is tried on so many examples in `make test`."""
    steady = settings.get_current_profile_name() == "steady"
    return settings(max_examples=few if steady else MORE * few)
