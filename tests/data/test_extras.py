import json

import pytest

from topiarist.data.extras import import_extra
from topiarist.errors import MissingExtraError


def test_what_is_installed_is_imported() -> None:
    assert import_extra("json", what="x", extra="y") is json


def test_what_is_missing_names_the_extra() -> None:
    with pytest.raises(
        MissingExtraError, match=r"reading harps needs the extra 'harp': pip install \"topiarist\[harp\]\""
    ):
        import_extra("no_such_harp", what="reading harps", extra="harp")
