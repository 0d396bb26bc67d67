import pytest

from topiarist.data import limits
from topiarist.errors import DataError


def test_the_limit_itself_is_allowed_and_one_byte_more_is_not() -> None:
    limits.check_size("it", limits.LARGEST_BYTES)
    with pytest.raises(DataError, match=r"^it takes 4,294,967,297 bytes or more"):
        limits.check_size("it", limits.LARGEST_BYTES + 1)
