"""How much memory a file may ask for when it is expanded."""

from topiarist.errors import DataError

LARGEST_BYTES = 4 * 1024**3


def check_size(what: str, size: int) -> None:
    """Refuse what would take more than `LARGEST_BYTES`, before any of it is expanded."""
    if size > LARGEST_BYTES:
        raise DataError(
            f"{what} takes {size:,} bytes or more when expanded, at most {LARGEST_BYTES:,} are allowed:"
            " give a smaller part of the data"
        )
