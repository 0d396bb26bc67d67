from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError, model_validator

from topiarist.errors import SettingsError
from topiarist.settings import Settings


class Inner(Settings):
    factor: float = Field(default=2.0, gt=1)


class Example(Settings):
    rate: float = Field(default=0.1, gt=0)
    count: int = 1
    kind: Literal["a", "b"] = "a"
    inner: Inner = Inner()

    @model_validator(mode="after")
    def _together(self) -> "Example":
        if self.kind == "b" and self.count == 1:
            raise ValueError("kind b needs a count above 1")
        return self


class Needed(Settings):
    name: str


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": -1}, "Example: rate must be greater than 0; found -1"),
        ({"rate": float("nan")}, "Example: rate must be a finite number; found nan"),
        ({"rate": float("inf")}, "Example: rate must be a finite number; found inf"),
        ({"kind": "c"}, "Example: kind must be 'a' or 'b'; found 'c'"),
        ({"kind": "b"}, "Example: kind b needs a count above 1"),
        ({"inner": {"factor": 1}}, "Example: inner.factor must be greater than 1; found 1"),
        ({"rat": 1}, "Example: rat: there is no such setting; found 1"),
    ],
)
def test_a_bad_value_is_one_line_that_names_it(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Example(**values)
    assert str(caught.value) == message
    with pytest.raises(SettingsError) as caught:
        Example.model_validate(values)
    assert str(caught.value) == message


def test_a_value_that_is_missing_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^Needed: name: Field required$"):
        Needed(**{})


def test_settings_cannot_be_changed() -> None:
    example = Example(count=3)
    with pytest.raises(ValidationError, match="frozen"):
        example.count = 4  # type: ignore[misc]  # that is the point
    assert example == Example(count=3) != Example(count=4)
    assert Example.model_validate_json(example.model_dump_json()) == example


def test_changed_settings_are_checked_and_keep_what_is_not_named() -> None:
    example = Example(count=3, inner={"factor": 4})
    assert example.changed(kind="b", rate=None) == Example(count=3, kind="b", inner=Inner(factor=4))
    assert example.changed(inner={"factor": 5}).inner.factor == 5 and example.inner.factor == 4
    assert example.changed(rate=1.0).model_fields_set == {"count", "inner", "rate"}, "the rest follows the defaults"
    with pytest.raises(SettingsError, match=r"^Example: inner.factor must be greater than 1; found 0$"):
        example.changed(inner={"factor": 0})
    with pytest.raises(SettingsError, match=r"^Example: rat: there is no such setting; found 1$"):
        example.changed(rat=1)
