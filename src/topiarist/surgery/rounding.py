"""Widths that are multiples of a number, as fast hardware likes them."""

from topiarist.errors import SettingsError


def round_up(width: int, multiple_of: int) -> int:
    """Give the smallest multiple that is at least the width."""
    check(multiple_of)
    return -(-width // multiple_of) * multiple_of


def put_back(units: tuple[int, ...], size: int, multiple_of: int) -> tuple[int, ...]:
    """Give the units to remove without the last of them, so that what stays of `size` is a multiple, or all of it."""
    stays = min(round_up(size - len(units), multiple_of), size)
    return units[: size - stays]


def check(multiple_of: int) -> None:
    """Refuse what is no multiple."""
    if multiple_of < 1:
        raise SettingsError(f"multiple_of must be at least 1; found {multiple_of}")
