"""The registry: methods by name, in their order; a name stands for one class."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, get_args

import pytest

from topiarist import methods
from topiarist.errors import SettingsError
from topiarist.methods import Method, Proposal, Request, Traits, find_method, register, registered
from topiarist.methods.method import Marker
from topiarist.methods.registry import _METHODS, rightsizing_methods

OURS = ["distinctiveness", "genetic", "genetic-front", "factorisation", "magnitude", "surgeon"]
PUBLISHED = ["published-distinctiveness", "published-genetic", "published-magnitude", "published-surgeon"]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = dict(_METHODS)
    yield
    _METHODS.clear()
    _METHODS.update(before)


def made(name: str, *, in_rightsizing: bool = True) -> type[Method]:
    """Return a new method of this name."""

    class Idle(Method):
        """Leaves a network as it is."""

        name: ClassVar[str] = "idle"
        traits: ClassVar[Traits] = Traits(summary="Do nothing.")

        def propose(self, request: Request) -> Proposal:
            """Propose nothing."""
            return Proposal(())

    Idle.name, Idle.traits = name, Traits(summary="Do nothing.", in_rightsizing=in_rightsizing)
    Idle.__qualname__ = f"made.{name}"
    return Idle


def test_all_methods_are_registered_in_the_order_of_tables() -> None:
    assert list(registered()) == [*OURS, *PUBLISHED]
    assert rightsizing_methods() == ("distinctiveness", "genetic-front", "factorisation", "magnitude", "surgeon")
    for name in OURS:
        assert find_method(name) in (getattr(methods, each) for each in methods.__all__)
    for name in PUBLISHED:
        assert find_method(name) in (getattr(methods.published, each) for each in methods.published.__all__)


@pytest.mark.parametrize("name", registered())
def test_names_and_traits_are_fit_to_print(name: str) -> None:
    method = find_method(name)
    assert method.name == name and name == name.lower() and " " not in name
    assert method.traits.summary.endswith(".") and "\n" not in method.traits.summary
    assert method.traits.marker in get_args(Marker) and method.traits.relative_cost > 0
    assert method().round_count >= 1, "a method can be made without settings"


def test_a_method_is_found_by_its_name() -> None:
    idle = register(made("idle"))
    assert find_method("idle") is idle and list(registered())[-1] == "idle"
    assert rightsizing_methods()[-1] == "idle"
    register(made("lazy", in_rightsizing=False))
    assert "lazy" not in rightsizing_methods()


def test_a_class_may_be_registered_twice_and_a_name_stands_for_one_class() -> None:
    idle = register(made("idle"))
    assert register(idle) is idle and list(registered()).count("idle") == 1
    again = register(made("idle"))
    assert find_method("idle") is again, "a module that is loaded again replaces its method"
    other = made("idle")
    other.__qualname__ = "Another"
    with pytest.raises(SettingsError, match=r"a method called 'idle' is registered already: made\.idle"):
        register(other)
    other.name = "genetic"
    with pytest.raises(SettingsError, match="a method called 'genetic' is registered already: Genetic"):
        register(other)


def test_an_unknown_name_is_one_line_that_lists_the_known() -> None:
    with pytest.raises(SettingsError, match=r"method must be one of distinctiveness, .*; found 'luck'") as refused:
        find_method("luck")
    assert refused.value.setting == "method" and isinstance(refused.value, ValueError)
    assert all(name in str(refused.value) for name in registered())
    with pytest.raises(SettingsError, match="methods must be one of") as other:
        find_method("luck", setting="methods")
    assert other.value.setting == "methods"


@pytest.mark.parametrize("name", OURS)
def test_a_methods_name_is_written_in_its_own_file_and_in_few_others(name: str) -> None:
    """All else reads the registry. A reproduction is about methods, and `WeightScore` has a magnitude of its own."""
    root = Path(methods.__file__).parents[1]
    own = ("methods/", "reproductions/", "training/", "cli/reproduce.py")
    quoted = re.compile(rf"""["'`]{name}["'`]""")
    found = [
        path.relative_to(root).as_posix() for path in sorted(root.rglob("*.py")) if quoted.search(path.read_text())
    ]
    assert [path for path in found if not path.startswith(own)] == []
    assert len([path for path in found if path.startswith("methods/")]) <= 3


def test_what_is_returned_cannot_change_the_registry() -> None:
    found = dict(registered())
    registered().pop("genetic", None)  # type: ignore[attr-defined]
    assert dict(registered()) == found
